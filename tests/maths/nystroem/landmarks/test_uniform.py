"""Landmarks drawn uniformly."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from kafeat.maths.nystroem.landmarks.uniform import uniform
from tests.maths.nystroem.landmarks.views import rbf_view


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
