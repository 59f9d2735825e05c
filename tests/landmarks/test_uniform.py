"""Landmarks drawn uniformly."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from kafeat.landmarks import SELECTORS, select


def test_every_selector_gives_m_rows_and_leaves_the_sample_alone() -> None:
    X = np.random.default_rng(0).standard_normal((30, 3))
    X.flags.writeable = False
    for name in SELECTORS:
        rows = select(name, X, 10, np.random.default_rng(1))
        assert rows.shape == (10, 3)
        assert rows.tobytes() == select(name, X, 10, np.random.default_rng(1)).tobytes()
        assert rows.tobytes() != select(name, X, 10, np.random.default_rng(2)).tobytes()
        assert np.isfinite(rows).all()


def test_rows_are_different_and_equally_likely() -> None:
    X, m, draws = np.arange(20.0)[:, None], 5, 2000
    counts = np.zeros(20)
    rng = np.random.default_rng(0)
    for _ in range(draws):
        found = select("uniform", X, m, rng).ravel().astype(int)
        assert len(set(found)) == m
        counts[found] += 1
    # Without replacement a count has the variance draws·(m/n)(1 − m/n), and the counts are correlated by −1/(n − 1):
    # their squares, divided by draws·m/n·(1 − m/n)·n/(n − 1), follow chi2 with n − 1 degrees of freedom.
    p = m / 20
    statistic = ((counts - draws * p) ** 2).sum() / (draws * p * (1 - p) * 20 / 19)
    assert chi2.ppf(1e-6, 19) < statistic < chi2.ppf(1 - 1e-6, 19)


def test_all_rows_are_all_rows() -> None:
    X = np.random.default_rng(0).standard_normal((12, 3))
    assert (select("uniform", X, 12, np.random.default_rng(0)) == X).all()
