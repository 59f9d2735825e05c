"""From kernel values to features: which matrices have the same products."""

from __future__ import annotations

import numpy as np
import pytest

from kafeat.maths.nystroem.projection import trapezoid

EPS = np.finfo(float).eps


@pytest.mark.parametrize(("m", "rank"), [(8, 8), (8, 5), (1, 1)])
def test_a_trapezoid_has_the_same_products_and_zeros_above_its_diagonal(m: int, rank: int) -> None:
    P = np.random.default_rng(0).standard_normal((m, rank))
    T = trapezoid(P)
    assert T.shape == P.shape
    assert not np.triu(T, 1).any()
    assert (T.diagonal() >= 0.0).all()
    # a Householder factorization is backward stable: each entry of PPᵀ is off by a few eps·‖P‖²
    np.testing.assert_allclose(T @ T.T, P @ P.T, rtol=0, atol=20 * EPS * np.linalg.norm(P) ** 2)
