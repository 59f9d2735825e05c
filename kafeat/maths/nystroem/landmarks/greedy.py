"""Landmarks by greedily pivoted Cholesky."""

from __future__ import annotations

import numpy as np

from kafeat.maths.nystroem.landmarks.fit_sample import FitSample, Indices, fill_up
from kafeat.maths.nystroem.landmarks.partial_cholesky import PartialCholesky


def greedy(view: FitSample, m: int, rng: np.random.Generator) -> Indices:
    """Always the row with the largest diag(K − F Fᵀ)_i (Fine & Scheinberg 2001, figure 2): full pivoting.

    O(n m²), column by column. The factor is (n, m): where that is more than 2²⁶ numbers, the rows that take part are a
    random subset. Where the rank runs out, the rest is uniform.
    """
    rows = view.rows(m, rng)
    factor = PartialCholesky(view, rows, m)
    chosen: list[int] = []
    while len(chosen) < m and factor.left.any():
        pivot = np.array([np.argmax(factor.left)])
        left = factor.residual(pivot)
        if left[0, 0] <= factor.noise:
            factor.left[pivot] = 0.0
            continue
        factor.add(pivot, np.sqrt(left))
        chosen.append(int(pivot[0]))
    return fill_up(rows[np.array(chosen, dtype=np.intp)], rows, m, rng)
