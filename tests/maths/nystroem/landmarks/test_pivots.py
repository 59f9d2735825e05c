"""Greedy pivots are those of a pivoted Cholesky factorisation; ridge leverage scores are those of K(K + λI)⁻¹."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy.linalg.lapack import dpstrf
from scipy.stats import chi2

from kafeat.maths.nystroem.landmarks.fit_sample import draw
from kafeat.maths.nystroem.landmarks.pivots import farthest, greedy, leverage, ridge_scores, rpcholesky
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
    found = [rpcholesky(view, m, np.random.default_rng(seed)).tolist() for seed in range(20)]
    traces = [np.trace(residual_of(K, pivots)) for pivots in found]
    error = np.std(traces) / np.sqrt(20)
    assert np.mean(traces) - 4 * error <= (1 + eps) * values[r:].sum()


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


def exact_scores(K: np.ndarray, ridge: float) -> np.ndarray:
    return np.diag(K @ np.linalg.inv(K + ridge * np.eye(len(K))))


def test_scores_by_all_rows_are_exact() -> None:
    view = rbf_view(np.random.default_rng(0).standard_normal((70, 3)))
    everything = np.arange(70)
    K = view.kernel(everything, everything)
    for ridge in (1e-3, 1.0, 100.0):
        # (K − K(K + λ)⁻¹K)/λ: rounding of the difference, divided by λ
        found = ridge_scores(view, everything, everything, np.ones(70), ridge)
        np.testing.assert_allclose(found, exact_scores(K, ridge), rtol=0, atol=70 * 70 * 2.3e-16 / ridge)


def test_scores_by_some_rows_overestimate() -> None:
    # Musco & Musco, lemma 6: with weights of 1, SᵀS ⪯ I, the scores are never too small
    view = rbf_view(np.random.default_rng(0).standard_normal((70, 3)))
    everything = np.arange(70)
    K = view.kernel(everything, everything)
    for m in (1, 5, 30):
        found = ridge_scores(view, everything, everything[:m], np.ones(m), 0.5)
        assert (found >= exact_scores(K, 0.5) - 1e-10).all()


def test_rare_rows_are_found() -> None:
    # 2,000 rows in one tight cluster and 8 far away: uniform landmarks would miss nearly all of those
    rng = np.random.default_rng(0)
    far = 10 + 10 * np.arange(8.0)[:, None] * np.ones(3)
    X = np.concatenate([0.05 * rng.standard_normal((2000, 3)), far])
    found = leverage(rbf_view(X), 60, np.random.default_rng(1))
    assert set(range(2000, 2008)) <= set(found.tolist())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_negative_eigenvalues_are_stood(dtype: str) -> None:
    """Of rounding, and of kernels that are indefinite: K + λI is positive definite all the same."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 1)).astype(dtype)
    for K in (X @ X.T, np.tanh(5 * X @ X.T - 1)):
        found = leverage(kernel_view(X, K), 12, np.random.default_rng(1))
        assert len(np.unique(found)) == 12


def test_rows_are_drawn_by_scores_of_any_size() -> None:
    for weights in ([1e-320, 0.0, 1e-320], [1e308, 0.0, np.inf], [0.0, 0.0, 0.0]):
        assert set(draw(np.array(weights), 3, np.random.default_rng(0)).tolist()) <= {0, 2}
