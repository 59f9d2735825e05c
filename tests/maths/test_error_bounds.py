"""Bounds of mean errors against means over many draws, and against formulas for single entries."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import kafeat
from kafeat.evaluation.error_bounds import known_bounds
from kafeat.evaluation.kernel_error import kernel_error
from kafeat.maths.error_bounds import of_random_frequencies, of_uniform_landmarks

GAMMA, DRAWS = 0.5, 60


def rows(rng, n):
    return rng.normal(size=(n, 3))


def nystroem_error(rng, n, m):
    X, L = rows(rng, n), rows(rng, m)
    C = rbf_kernel(X, L, gamma=GAMMA)
    return rbf_kernel(X, gamma=GAMMA) - C @ np.linalg.pinv(rbf_kernel(L, gamma=GAMMA), hermitian=True) @ C.T


@pytest.mark.parametrize("m", [2, 5, 20])
def test_uniform_landmarks_keep_below_the_bound(m):
    rng = np.random.default_rng(m)
    n = 60
    errors = [nystroem_error(rng, n, m) for _ in range(DRAWS)]
    bound = of_uniform_landmarks(rbf_kernel(rows(rng, n), gamma=GAMMA), m)
    assert np.mean([np.linalg.norm(E, 2) for E in errors]) < bound.spectral
    assert np.mean([np.linalg.norm(E) for E in errors]) < bound.frobenius
    # a kernel of ones and zeros: n√(1/m + 1/n) and, for tr K = n, its geometric mean with n
    apart = of_uniform_landmarks(np.eye(n), m)
    assert apart.spectral == pytest.approx(n * np.sqrt(1 / m + 1 / n))
    assert apart.frobenius == pytest.approx(np.sqrt(n * apart.spectral))


def test_the_mean_square_in_the_proof_is_that_of_draws():
    """‖XXᵀ − (n/m)LLᵀ‖_F² of polynomial features, whose coordinates are known."""
    rng, n, m = np.random.default_rng(0), 40, 8
    squares, estimates = [], []
    for _ in range(4000):
        X, L = (
            np.stack([x**i for i in range(3)], axis=1) for x in (rng.uniform(-1, 1, n), rng.uniform(-1, 1, m))
        )
        squares.append(np.square(X.T @ X - n / m * L.T @ L).sum())
        estimates.append(of_uniform_landmarks(X @ X.T, m).spectral ** 2)
    # both are means of 4,000 draws; five standard errors of their difference
    apart = np.array(squares) - estimates
    assert abs(apart.mean()) < 5 * apart.std() / np.sqrt(len(apart))


@pytest.mark.parametrize(("features", "moment"), [("paired", 1.0), ("offset", 1.5)])
def test_random_frequencies_keep_below_the_bound(features, moment):
    rng, m = np.random.default_rng(1), 16
    X = rows(rng, 30)
    K, sums = rbf_kernel(X, gamma=GAMMA), X[:, None] - X[None]
    errors = []
    for _ in range(DRAWS):
        W, b = rng.normal(size=(m, 3)) * np.sqrt(2 * GAMMA), rng.uniform(0, 2 * np.pi, m)
        if features == "paired":
            errors.append(np.cos(sums @ W.T).mean(axis=2) - K)
        else:
            Z = np.sqrt(2 / m) * np.cos(X @ W.T + b)
            errors.append(Z @ Z.T - K)
    bound = of_random_frequencies(K, m, moment)
    mean = np.mean([np.linalg.norm(E) for E in errors])
    # E cos² = ½(1 + k(2δ)) is at least ½, so the bound is less than twice the error
    assert 0.5 * bound.frobenius < mean < bound.frobenius
    assert bound.spectral == bound.frobenius


UNIFORM = {"kind": "nystroem", "landmarks": "uniform", "n_components": 16}
IID = {"kind": "fourier", "frequencies": "iid", "weights": "uniform", "n_components": 16}


@pytest.mark.parametrize(("steps", "known"), [
    ([UNIFORM], True), ([{"kind": "standardize"}, UNIFORM], True), ([IID], True),
    ([{**IID, "features": "offset"}], True),
    ([{**UNIFORM, "landmarks": "kmeans"}], False), ([{**UNIFORM, "n_landmarks": 20}], False),
    ([{**UNIFORM, "weights": "fitted"}], False), ([{**IID, "frequencies": "orthogonal"}], False),
    ([{**IID, "weights": "fitted"}], False), ([UNIFORM, IID], False), ([{"kind": "standardize"}], False),
])  # fmt: skip
def test_bounds_are_told_of_the_maps_that_theorems_are_about(steps, known):
    X = rows(np.random.default_rng(2), 200)
    fm = kafeat.fit({"steps": steps}, X[:100])
    K = fm.exact_kernel(X[100:])
    bounds, error = known_bounds(fm, K), kernel_error(K, fm.transform(X[100:]).astype(float))
    assert bool(bounds) is known
    if known:
        assert 0.0 < error["relative_spectral"] < bounds["bound_spectral"]
        assert 0.0 < error["relative_frobenius"] < bounds["bound_frobenius"]
