"""Ridge leverage scores, against K(K + λI)⁻¹."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import chi2

from kafeat.maths.nystroem.landmarks.fit_sample import draw
from kafeat.maths.nystroem.landmarks.pivots import _ridge, leverage, ridge_scores, uniform
from tests.maths.nystroem.landmarks.views import kernel_view, rbf_view


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
    X = np.concatenate(
        [0.05 * rng.standard_normal((2000, 3)), 10 + 10 * np.arange(8.0)[:, None] * np.ones(3)]
    )
    found = leverage(rbf_view(X), 60, np.random.default_rng(1))
    assert set(range(2000, 2008)) <= set(found.tolist())


def test_ridge_is_the_mean_weight_of_what_lies_beyond_k() -> None:
    view = rbf_view(np.random.default_rng(0).standard_normal((40, 3)))
    dictionary, weights = np.arange(5, 30), np.random.default_rng(1).uniform(1.0, 2.0, 25)
    K = view.kernel(dictionary, dictionary) * np.outer(weights, weights)
    values = np.linalg.eigvalsh(K)[::-1]
    # (1/k) Σ_{i > k} λ_i, Musco & Musco, section 3
    assert _ridge(view, dictionary, weights, 4) == pytest.approx(values[4:].sum() / 4, rel=1e-10)


def test_a_row_weighs_by_how_likely_it_was_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def watched(view, rows, dictionary, weights, ridge):
        scores = ridge_scores(view, rows, dictionary, weights, ridge)
        calls.append((rows, dictionary, weights, scores.copy()))
        return scores

    monkeypatch.setitem(leverage.__globals__, "ridge_scores", watched)
    m = 60
    leverage(rbf_view(np.random.default_rng(0).standard_normal((500, 3))), m, np.random.default_rng(1))
    assert len(calls) > 2
    for (rows, _, _, scores), (_, dictionary, weights, _) in pairwise(calls):
        # drawn with probability p, a row counts 1/p in SSᵀ, so that its mean is I (Musco & Musco, algorithm 3)
        p = dict(zip(rows.tolist(), np.minimum(1.0, np.log(m) * scores), strict=True))
        np.testing.assert_allclose(weights**2 * [p[i] for i in dictionary.tolist()], 1.0, rtol=1e-12)


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


def test_rows_are_equally_likely() -> None:
    view, m, draws = rbf_view(np.arange(20.0)[:, None]), 5, 2000
    counts = np.zeros(20)
    rng = np.random.default_rng(0)
    for _ in range(draws):
        counts[uniform(view, m, rng)] += 1
    # Without replacement a count has the variance draws·(m/n)(1 − m/n), and the counts are correlated by −1/(n − 1):
    # their squares, divided by draws·m/n·(1 − m/n)·n/(n − 1), follow chi2 with n − 1 degrees of freedom.
    p = m / 20
    statistic = ((counts - draws * p) ** 2).sum() / (draws * p * (1 - p) * 20 / 19)
    assert chi2.ppf(1e-6, 19) < statistic < chi2.ppf(1 - 1e-6, 19)
