"""Pairs of samples: what coordinates and Gram matrices say alike."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from kafeat.contract.kernel_inputs import Coordinates, Gram, squared_distances

EPS = np.finfo(float).eps


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
