"""Landmarks that are chosen one after the other, each by what those before it leave of the kernel."""

from __future__ import annotations

import numpy as np

from kafeat.maths.nystroem.landmarks.fit_sample import FitSample, Indices, fill_up
from kafeat.types import Floats


class PartialCholesky:
    """F (n, m) of some rows of the sample, and what it leaves of the diagonal: `left` = diag(K − F Fᵀ)."""

    def __init__(self, view: FitSample, rows: Indices, m: int) -> None:
        self._view, self._rows = view, rows
        # By columns: those that are there are one block of memory.
        self._F = np.empty((len(rows), m), dtype=view.X.dtype, order="F")
        self._size = 0
        self.left = np.maximum(view.diagonal(rows).astype(np.float64), 0.0)
        # Below, what is left is rounding: of n·eps-sized sums.
        self.noise = 16.0 * float(np.finfo(view.X.dtype).eps) * float(self.left.max(initial=0.0))
        self._trace = self._trace_left = float(self.left.sum())
        # The first pivots that leave the share of the trace that is asked for; None until then.
        self.enough: int | None = None

    def residual(self, pivots: Indices) -> Floats:
        """(K − F Fᵀ) between the pivots, float64."""
        own = self._F[pivots, : self._size].astype(np.float64)
        K = self._view.kernel(self._rows[pivots], self._rows[pivots]).astype(np.float64)
        return K - own @ own.T

    def add(self, pivots: Indices, root: Floats) -> None:
        """Grow by pivots, `root` being the lower Cholesky factor of their residual."""
        from scipy.linalg import solve_triangular

        start, stop = self._size, self._size + len(pivots)
        columns = self._view.kernel(self._rows, self._rows[pivots])
        columns -= self._F[:, :start] @ self._F[pivots, :start].T
        new = solve_triangular(root, columns.T.astype(np.float64), lower=True, overwrite_b=True)
        self._F[:, start:stop] = new.T
        self.left -= np.einsum("ij,ij->j", new, new)
        self._count(np.einsum("ij,ij->i", new, new))
        self.left[self.left < self.noise] = 0.0
        self.left[pivots] = 0.0
        self._size = stop

    def _count(self, shares: Floats) -> None:
        """Subtract what each new pivot takes of the trace, and note the first one after which little enough is left."""
        left = self._trace_left - np.cumsum(shares)
        self._trace_left = float(left[-1])
        if self._view.tolerance is not None and self.enough is None:
            reached = np.flatnonzero(left <= self._view.tolerance * self._trace)
            self.enough = self._size + int(reached[0]) + 1 if len(reached) else None

    def chosen(self, pivots: list[int], m: int, rng: np.random.Generator) -> Indices:
        """Return the rows of the pivots, as many as a tolerance needs, or with others drawn uniformly up to m."""
        rows = self._rows[np.array(pivots, dtype=np.intp)]
        if self._view.tolerance is None or not len(rows):
            return fill_up(rows, self._rows, m, rng)
        return rows[: self.enough]


def greedy(view: FitSample, m: int, rng: np.random.Generator) -> Indices:
    """Always the row with the largest diag(K − F Fᵀ)_i (Fine & Scheinberg 2001, figure 2): full pivoting.

    O(n m²), column by column. The factor is (n, m): where that is more than 2²⁶ numbers, the rows that take part are a
    random subset. Where the rank runs out, the rest is uniform.
    """
    rows = view.rows(m, rng)
    factor = PartialCholesky(view, rows, m)
    chosen: list[int] = []
    while len(chosen) < m and factor.left.any() and factor.enough is None:
        pivot = np.array([np.argmax(factor.left)])
        left = factor.residual(pivot)
        if left[0, 0] <= factor.noise:
            factor.left[pivot] = 0.0
            continue
        factor.add(pivot, np.sqrt(left))
        chosen.append(int(pivot[0]))
    return factor.chosen(chosen, m, rng)


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
    while len(chosen) < m and factor.left.any() and factor.enough is None:
        size = min(_BLOCK, max(8, m // 8), m - len(chosen))
        drawn = rng.choice(len(rows), size=size, p=factor.left / factor.left.sum())
        kept, root = thin(factor.residual(drawn), factor.left[drawn], factor.noise, rng)
        if not len(kept):  # what was left was rounding
            factor.left[drawn] = 0.0
            continue
        factor.add(drawn[kept], root)
        chosen.extend(drawn[kept].tolist())
    return factor.chosen(chosen, m, rng)


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


def farthest(view: FitSample, m: int, rng: np.random.Generator) -> Indices:
    """Always the row farthest from those chosen, in kernel distance k(x,x) + k(l,l) − 2k(x,l) (Gonzalez 1985).

    The first is random. Within a factor of 2 of the smallest possible covering radius; O(n m). Where all other rows
    are duplicates, the rest is uniform.
    """
    everything = np.arange(len(view.X))
    diagonal = view.diagonal(everything).astype(np.float64)
    distance = np.full(len(everything), np.inf)
    chosen = [int(rng.integers(len(everything)))]
    while True:
        last = chosen[-1]
        to_last = diagonal + diagonal[last] - 2.0 * view.kernel(everything, np.array([last]))[:, 0]
        np.minimum(distance, to_last, out=distance)
        distance[chosen] = -np.inf
        # 0 but for rounding
        noise = 16.0 * float(np.finfo(view.X.dtype).eps) * float(np.abs(diagonal).max())
        if len(chosen) == m or distance.max() <= noise:
            return fill_up(np.array(chosen), everything, m, rng)
        chosen.append(int(np.argmax(distance)))
