"""Ridge leverage scores, against K(K + λI)⁻¹."""

from __future__ import annotations

import numpy as np
from views import rbf_view

from kafeat.landmarks.leverage import leverage, ridge_scores


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
