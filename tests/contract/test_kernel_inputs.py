"""Pairs of samples: what coordinates and Gram matrices say alike."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from kafeat.contract.kernel_inputs import Coordinates, Gram, squared_distances

EPS = np.finfo(float).eps


def test_coordinates_by_their_definitions() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((4, 3)), rng.standard_normal((5, 3))
    pair = Coordinates(x, y)
    np.testing.assert_allclose(pair.dots, [[a @ b for b in y] for a in x], rtol=0, atol=16 * EPS)
    np.testing.assert_allclose(pair.squared_norms[0], [a @ a for a in x], rtol=8 * EPS)
    np.testing.assert_allclose(pair.squared_norms[1], [b @ b for b in y], rtol=8 * EPS)
    np.testing.assert_allclose(
        pair.squared_distances, [[((a - b) ** 2).sum() for b in y] for a in x], rtol=8 * EPS
    )


def test_distances_of_coordinates_do_not_cancel() -> None:
    x = np.array([[1e8], [1e8 + 1.0]])
    assert Coordinates(x, x).squared_distances.tolist() == [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("size", [1.0, 1e-120, 1e120])
def test_distances_of_wide_rows_do_not_cancel(offset: float, size: float) -> None:
    """They come from a matrix product, apart from those of rows that are near each other."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 64)) + offset
    x[:9] = x[9] + 1e-6 * rng.standard_normal((9, 64))
    x[20] = x[21]
    x *= size
    expected = cdist(x, x[:40], "sqeuclidean")
    # d rounding errors of 1.1e-16, times 1/1e-3 for the nearest pair of a product; the mean rounds `offset`.
    rtol = 64 * EPS / 1e-3 * (1.0 + offset * 1e-3)
    np.testing.assert_allclose(squared_distances(x, x[:40]), expected, rtol=rtol)
    assert squared_distances(x, x[:40])[21, 20] == 0.0


def test_equal_rows_have_no_distance() -> None:
    x = np.full((50, 64), 0.1)
    assert not squared_distances(x, x[:30]).any()
    assert squared_distances(x[:0], x).shape == (0, 50)


def test_a_gram_matrix_knows_distances_and_never_a_negative_one() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((4, 3)), rng.standard_normal((5, 3))
    both = np.vstack([x, y])
    pair = Coordinates(both, both)
    gram = Gram(pair.dots, pair.squared_norms)
    # three terms of at most max‖x‖² each
    np.testing.assert_allclose(
        gram.squared_distances, pair.squared_distances, rtol=0, atol=16 * EPS * pair.squared_norms[0].max()
    )
    assert gram.squared_distances.min() >= 0.0
