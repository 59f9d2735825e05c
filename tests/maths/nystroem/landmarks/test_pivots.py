"""Greedy pivots are those of a fully pivoted Cholesky factorisation."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy.linalg.lapack import dpstrf
from scipy.stats import chi2

from kafeat.maths.nystroem.landmarks.pivots import PartialCholesky, farthest, greedy, rpcholesky
from tests.maths.nystroem.landmarks.views import kernel_view, rbf_view


def test_pivots_are_lapacks() -> None:
    X = np.random.default_rng(0).standard_normal((60, 3))
    # no two diagonal entries alike, so that no tie decides
    scale = 1 + 0.5 * np.random.default_rng(1).random(60)
    view = rbf_view(X)
    K = view.kernel(np.arange(60), np.arange(60)) * scale[:, None] * scale
    from tests.maths.nystroem.landmarks.views import kernel_view

    _, pivots, _, _ = dpstrf(K)
    found = greedy(kernel_view(X, K), 25, np.random.default_rng(0))
    np.testing.assert_array_equal(found, pivots[:25] - 1)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_each_is_the_farthest_of_those_before(kernel: str) -> None:
    X = np.random.default_rng(0).standard_normal((80, 2))
    view = rbf_view(X) if kernel == "rbf" else kernel_view(X, X @ X.T)
    found = farthest(view, 15, np.random.default_rng(3))
    for step in range(1, 15):
        # the kernel distance 2 − 2k of rbf grows with the Euclidean one; that of x·y, whose diagonal varies, is it
        nearest = np.sqrt(((X[:, None] - X[found[:step]][None]) ** 2).sum(-1)).min(axis=1)
        assert found[step] == nearest.argmax()


def test_covers_within_twice_the_best_radius() -> None:
    # Gonzalez: every m + 1 landmarks are at least the radius apart, so that no m balls of half of it cover them
    X = np.random.default_rng(0).standard_normal((200, 2))
    found = farthest(rbf_view(X), 11, np.random.default_rng(0))
    apart = np.sqrt(((X[found][:, None] - X[found][None]) ** 2).sum(-1))[np.triu_indices(11, 1)].min()
    radius = np.sqrt(((X[:, None] - X[found[:10]][None]) ** 2).sum(-1)).min(axis=1).max()
    assert apart == radius


def residual_of(K: np.ndarray, pivots: list[int]) -> np.ndarray:
    """K − K_S K_SS⁻¹ K_Sᵀ."""
    if not pivots:
        return K
    return K - K[:, pivots] @ np.linalg.solve(K[np.ix_(pivots, pivots)], K[pivots])


@pytest.mark.slow
def test_pivots_follow_the_law_of_the_algorithm() -> None:
    # P(i, j, l) by the definition: each pivot with its share of the diagonal that is left
    rng = np.random.default_rng(0)
    A = rng.standard_normal((5, 5)) * np.array([3.0, 2.0, 1.0, 1.0, 0.5])[:, None]
    K = A @ A.T
    law = {}
    for triple in permutations(range(5), 3):
        p = 1.0
        for step, pivot in enumerate(triple):
            left = np.diag(residual_of(K, list(triple[:step])))
            p *= left[pivot] / left.sum()
        law[triple] = p
    assert abs(sum(law.values()) - 1.0) < 1e-9
    view, draws = kernel_view(np.zeros((5, 1)), K), 6000
    counts = dict.fromkeys(law, 0)
    for _ in range(draws):
        counts[tuple(rpcholesky(view, 3, rng).tolist())] += 1
    # Pearson: cells with fewer than 5 expected are one
    large = [t for t in law if draws * law[t] >= 5]
    rest = draws * (1 - sum(law[t] for t in large))
    statistic = sum((counts[t] - draws * law[t]) ** 2 / (draws * law[t]) for t in large)
    cells = len(large)
    if rest >= 1:
        statistic += (draws - sum(counts[t] for t in large) - rest) ** 2 / rest
        cells += 1
    assert chi2.ppf(1e-5, cells - 1) < statistic < chi2.ppf(1 - 1e-5, cells - 1)


def test_the_residual_keeps_the_papers_bound() -> None:
    # Theorem 2.3 of Chen et al.: E tr(K − K̂) ≤ (1 + ε) tr(K − K_r) once m ≥ r/ε + r log(1/(ε η)), η = tr(K − K_r)/tr K
    X = np.random.default_rng(0).standard_normal((300, 2))
    view = rbf_view(X, 0.5)
    K = view.kernel(np.arange(300), np.arange(300))
    values = np.linalg.eigvalsh(K)[::-1]
    r, eps = 10, 1.0
    eta = values[r:].sum() / values.sum()
    m = int(np.ceil(r / eps + r * np.log(1 / (eps * eta))))
    traces = [
        np.trace(residual_of(K, rpcholesky(view, m, np.random.default_rng(seed)).tolist()))
        for seed in range(20)
    ]
    error = np.std(traces) / np.sqrt(20)
    assert np.mean(traces) - 4 * error <= (1 + eps) * values[r:].sum()


def test_the_factor_is_the_cholesky_factor_of_the_pivots() -> None:
    X = np.random.default_rng(0).standard_normal((40, 3))
    view = rbf_view(X)
    K = view.kernel(np.arange(40), np.arange(40))
    factor = PartialCholesky(view, np.arange(40), 6, np.float64)
    for pivots in (np.array([4]), np.array([7, 30]), np.array([1, 2, 3])):
        factor.add(pivots, np.linalg.cholesky(factor.residual(pivots)))
    left = residual_of(K, [4, 7, 30, 1, 2, 3])
    np.testing.assert_allclose(factor.left, np.maximum(np.diag(left), 0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        factor.residual(np.array([0, 5])), left[np.ix_([0, 5], [0, 5])], rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("select", [greedy, rpcholesky])
@pytest.mark.parametrize("tolerance", [0.5, 0.1, 1e-3])
def test_pivots_end_where_the_tolerance_is_reached(select, tolerance: float) -> None:
    X = np.random.default_rng(0).standard_normal((300, 2))
    view = rbf_view(X, 0.5)
    K = view.kernel(np.arange(300), np.arange(300))
    every = select(view, 300, np.random.default_rng(3)).tolist()
    few = select(replace(view, tolerance=tolerance), 300, np.random.default_rng(3)).tolist()
    assert few == every[: len(few)]
    assert np.trace(residual_of(K, few)) <= tolerance * 300
    assert np.trace(residual_of(K, few[:-1])) > tolerance * 300
    # a bound on their number comes first
    assert len(select(replace(view, tolerance=1e-3), 4, np.random.default_rng(3))) == 4
