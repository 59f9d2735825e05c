"""Landmarks by randomly pivoted Cholesky."""

from __future__ import annotations

import numpy as np

from kafeat.maths.nystroem.landmarks.fit_sample import FitSample, Indices, fill_up
from kafeat.maths.nystroem.landmarks.partial_cholesky import PartialCholesky
from kafeat.types import Floats

_BLOCK = 128


def rpcholesky(view: FitSample, m: int, rng: np.random.Generator) -> Indices:
    """Pivots drawn with P(i) ∝ diag(K − F Fᵀ)_i, one after the other (Chen, Epperly, Tropp & Webber 2022, algorithm 1).

    Drawn in blocks and thinned by rejection, which gives the same law at the speed of matrix products (Epperly, Tropp
    & Webber 2024, algorithm 2). O(n m²). The factor is (n, m): where that is more than 2²⁶ numbers, the rows that take
    part are a random subset. Where the rank runs out, the rest is uniform.
    """
    rows = view.rows(m, rng)
    factor = PartialCholesky(view, rows, m)
    chosen: list[int] = []
    while len(chosen) < m and factor.left.any():
        size = min(_BLOCK, max(8, m // 8), m - len(chosen))
        drawn = rng.choice(len(rows), size=size, p=factor.left / factor.left.sum())
        kept, root = thin(factor.residual(drawn), factor.left[drawn], factor.noise, rng)
        if not len(kept):  # what was left was rounding
            factor.left[drawn] = 0.0
            continue
        factor.add(drawn[kept], root)
        chosen.extend(drawn[kept].tolist())
    return fill_up(rows[np.array(chosen, dtype=np.intp)], rows, m, rng)


def thin(
    residual: Floats, proposed: Floats, noise: float, rng: np.random.Generator
) -> tuple[Indices, Floats]:
    """Keep each proposal with the share of its diagonal that those before it left; return their Cholesky factor too.

    `proposed` is the diagonal that the proposals were drawn by. A repeated proposal has nothing left.
    """
    H = residual.copy()
    columns = np.zeros_like(H)
    kept: list[int] = []
    for i, share in enumerate(rng.random(len(H))):
        if H[i, i] > noise and share * proposed[i] < H[i, i]:
            column = H[:, i] / np.sqrt(H[i, i])
            H -= np.outer(column, column)
            columns[:, len(kept)] = column
            kept.append(i)
    order = np.array(kept, dtype=np.intp)
    return order, np.tril(columns[order][:, : len(kept)])
