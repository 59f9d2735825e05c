"""Learned landmarks: the gradient by differences, and never worse than where they started."""

from __future__ import annotations

import numpy as np
import pytest

from kafeat.maths.nystroem.landmarks import FitSample, Profile
from kafeat.maths.nystroem.landmarks.kmeans import gradient, kmeans, learned
from tests.maths.nystroem.landmarks.views import rbf, rbf_view


def profile(gamma: float) -> Profile:
    return Profile(lambda s: (np.exp(-gamma * s), -gamma * np.exp(-gamma * s)), gamma**-0.5)


def view(X: np.ndarray, gamma: float = 0.3) -> FitSample:
    K = rbf(X, X, gamma)
    return FitSample(X, lambda i, j: K[np.ix_(i, j)], lambda i: K[i, i], profile=profile(gamma))


def test_the_gradient_is_that_of_the_error() -> None:
    rng = np.random.default_rng(0)
    X, L = rng.standard_normal((25, 3)), rng.standard_normal((4, 3))
    error, G = gradient(X, L, profile(0.3))
    K, C = rbf(X, X, 0.3), rbf(X, L, 0.3)
    R = K - C @ np.linalg.solve(rbf(L, L, 0.3), C.T)
    # the jitter of 1e-7 moves K̂ by as much times ‖A‖²
    assert error == pytest.approx((R**2).sum() - (np.diag(R) ** 2).sum(), rel=1e-5)
    h = 1e-5
    for i in range(4):
        for j in range(3):
            step = np.zeros((4, 3))
            step[i, j] = h
            slope = (gradient(X, L + step, profile(0.3))[0] - gradient(X, L - step, profile(0.3))[0]) / (
                2 * h
            )
            # central differences: h² times the third derivative, and eps/h
            assert G[i, j] == pytest.approx(slope, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_better_than_kmeans_on_rows_it_has_not_seen(dtype: str) -> None:
    rng = np.random.default_rng(0)
    mix = rng.standard_normal((3, 8))
    X, new = ((rng.standard_normal((n, 3)) @ mix + 5).astype(dtype) for n in (1500, 400))
    error = {}
    for select in (kmeans, learned):
        L = select(view(X, 0.05), 30, np.random.default_rng(0))
        assert L.dtype == dtype
        C, K = rbf(new, L, 0.05), rbf(new, new, 0.05)
        error[select] = np.linalg.norm(K - C @ np.linalg.pinv(rbf(L, L, 0.05), rcond=1e-10) @ C.T)
    assert error[learned] < 0.9 * error[kmeans]


def test_the_guard_keeps_the_start_where_learning_fails() -> None:
    X = np.random.default_rng(0).standard_normal((200, 3))
    honest = profile(0.3)
    # a slope of the wrong sign climbs
    liar = FitSample(X, None, None, profile=Profile(lambda s: (honest.of(s)[0], -honest.of(s)[1]), 100.0))
    found = learned(liar, 10, np.random.default_rng(0))
    np.testing.assert_array_equal(found, kmeans(liar, 10, np.random.default_rng(0)))


def test_needs_a_kernel_of_the_distance() -> None:
    X = np.zeros((5, 1))
    with pytest.raises(TypeError, match="learned landmarks need a kernel of the distance"):
        learned(FitSample(X, None, None), 2, np.random.default_rng(0))


@pytest.mark.parametrize("apart", [1e8, 1e200])
def test_rows_that_are_far_apart_are_stood(apart: float) -> None:
    """r² between near rows is then rounding, and K_mm not positive definite."""
    X = np.random.default_rng(0).standard_normal((300, 3))
    X[:150] += apart
    with np.errstate(over="ignore"):
        view = rbf_view(X)
    found = learned(view, 20, np.random.default_rng(1))
    assert found.shape == (20, 3)
    assert np.isfinite(found).all()
