"""Landmarks that are rows: drawn uniformly or by ridge leverage scores, or chosen by the residual of the kernel."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
from numpy.typing import DTypeLike

from kafeat.contract.threads import check
from kafeat.maths.nystroem.landmarks.fit_sample import FitSample, Indices, draw, fill_up
from kafeat.types import Floats

# A block of rows holds at most this many numbers, so that it stays in the second-level cache.
_NUMBERS = 1 << 17


def leverage(view: FitSample, m: int, rng: np.random.Generator) -> Indices:
    """Draw rows by ridge leverage scores (K(K + λI)⁻¹)_ii, by recursive sampling (Musco & Musco 2017, alg. 3).

    Each level scores twice as many rows as the level below, from which its landmarks are drawn. λ is the mean of the
    eigenvalues beyond the k-th, k = m/(4 log m). The cost is O(n m²). If the scores need more than 2²⁵ numbers, a
    random subset of the rows is used. Draws are without replacement.
    """
    everything = view.rows(m, rng)
    order = rng.permutation(everything)
    n, oversampling = len(order), max(np.log(m), 1.0)
    k = max(1, int(np.ceil(m / (4.0 * oversampling))))
    levels = max(0, int(np.ceil(np.log2(n / m))))
    sizes = [int(np.ceil(n / 2**level)) for level in range(levels, -1, -1)]
    dictionary, weights = order[: min(m, sizes[0])], np.ones(min(m, sizes[0]))
    for size in sizes[:-1]:
        ridge = _ridge(view, dictionary, weights, k)
        scores = np.minimum(1.0, oversampling * ridge_scores(view, order[:size], dictionary, weights, ridge))
        drawn = rng.random(size) < scores
        if drawn.sum() > m:  # not more than m, so that the cost stays bounded
            drawn[rng.choice(np.flatnonzero(drawn), size=int(drawn.sum()) - m, replace=False)] = False
        if drawn.any():
            dictionary, weights = order[:size][drawn], 1.0 / np.sqrt(scores[drawn])
    scores = ridge_scores(view, order, dictionary, weights, _ridge(view, dictionary, weights, k))
    scores[scores < 1e-12 * scores.max(initial=0.0)] = 0.0
    return fill_up(order[draw(scores, m, rng)], everything, m, rng)


def _ridge(view: FitSample, dictionary: Indices, weights: Floats, k: int) -> float:
    """Return λ: the sum of the eigenvalues beyond the k-th of the dictionary's weighted kernel, divided by k."""
    K = view.kernel(dictionary, dictionary).astype(np.float64) * weights[:, None] * weights
    values = np.linalg.eigvalsh((K + K.T) / 2.0)[::-1]
    # Rounding in float32, or an indefinite kernel, may give negative eigenvalues, whose size λ must exceed.
    least = max(1e-9 * values[0], -2.0 * k * values[-1], np.finfo(float).tiny)
    return float(max(values[k:].sum(), least)) / k


def ridge_scores(
    view: FitSample, rows: Indices, dictionary: Indices, weights: Floats, ridge: float
) -> Floats:
    """Return the scores (1/λ)(K − K S(SᵀKS + λI)⁻¹SᵀK)_ii, where S selects and weights the dictionary."""
    from scipy.linalg import solve_triangular

    K = view.kernel(dictionary, dictionary).astype(np.float64) * weights[:, None] * weights
    root = np.linalg.cholesky((K + K.T) / 2.0 + ridge * np.eye(len(K)))
    # λ is at least 1e-9 of the mean eigenvalue, so an inverse is as accurate as solving, and a product is much faster.
    inverse = solve_triangular(root, np.eye(len(K)), lower=True).T * weights[:, None]
    scores = np.empty(len(rows))
    for start in range(0, len(rows), 4096):
        block = rows[start : start + 4096]
        turned = view.kernel(block, dictionary).astype(np.float64) @ inverse
        explained = np.einsum("ij,ij->i", turned, turned)
        scores[start : start + 4096] = (view.diagonal(block) - explained) / ridge
    return np.maximum(scores, 0.0)


def uniform(view: FitSample, m: int, rng: np.random.Generator) -> Indices:
    """Return m different rows, all equally likely, without replacement (Williams & Seeger 2001)."""
    return np.sort(rng.choice(len(view.X), size=m, replace=False))


class PartialCholesky:
    """A partial Cholesky factor F (n, m) of the kernel of some rows, and `left` = diag(K − F Fᵀ)."""

    def __init__(self, view: FitSample, rows: Indices, m: int, dtype: DTypeLike) -> None:
        self._view, self._rows = view, rows
        self._F = np.empty((len(rows), m), dtype=dtype)
        self._size = 0
        self.left = np.maximum(view.diagonal(rows).astype(np.float64), 0.0)
        # Smaller entries of `left` are rounding errors.
        self.noise = 16.0 * float(np.finfo(self._F.dtype).eps) * float(self.left.max(initial=0.0))
        self._trace = self._trace_left = float(self.left.sum())
        # The number of pivots after which the trace is small enough for the tolerance, or None while it is not.
        self.enough: int | None = None

    def residual(self, pivots: Indices) -> Floats:
        """Return the residual K − F Fᵀ between the pivots, in float64."""
        own = self._F[pivots, : self._size].astype(np.float64)
        K = self._view.kernel(self._rows[pivots], self._rows[pivots]).astype(np.float64)
        return K - own @ own.T

    def add(self, pivots: Indices, root: Floats) -> None:
        """Add columns for new pivots. `root` is the lower Cholesky factor of their residual.

        Each block of rows is processed completely while it is in the cache.
        """
        from scipy.linalg import solve_triangular

        start, stop = self._size, self._size + len(pivots)
        own = self._F[pivots, :start].T
        inverse = solve_triangular(root, np.eye(len(root)), lower=True).T.astype(self._F.dtype)
        shares, height = np.zeros(len(pivots)), max(1, _NUMBERS // len(pivots))
        for first in range(0, len(self._rows), height):
            check()
            part = slice(first, first + height)
            columns = self._view.kernel(self._rows[part], self._rows[pivots]).astype(own.dtype, copy=False)
            columns -= self._F[part, :start] @ own
            new = columns @ inverse
            self._F[part, start:stop] = new
            self.left[part] -= np.einsum("ij,ij->i", new, new)
            shares += np.einsum("ij,ij->j", new, new)
        self._count(shares)
        self.left[self.left < self.noise] = 0.0
        self.left[pivots] = 0.0
        self._size = stop

    def _count(self, shares: Floats) -> None:
        """Subtract the share of each new pivot from the trace, and set `enough` once the tolerance is reached."""
        left = self._trace_left - np.cumsum(shares)
        self._trace_left = float(left[-1])
        if self._view.tolerance is not None and self.enough is None:
            reached = np.flatnonzero(left <= self._view.tolerance * self._trace)
            self.enough = self._size + int(reached[0]) + 1 if len(reached) else None

    def chosen(self, pivots: list[int], m: int, rng: np.random.Generator) -> Indices:
        """Return the pivots that the tolerance needs. Without a tolerance, return all, filled up to m at random."""
        rows = self._rows[np.array(pivots, dtype=np.intp)]
        if self._view.tolerance is None or not len(rows):
            return fill_up(rows, self._rows, m, rng)
        return rows[: self.enough]


def greedy(view: FitSample, m: int, rng: np.random.Generator) -> Indices:
    """Choose pivots with the largest diag(K − F Fᵀ)_i, one after the other (Fine & Scheinberg 2001, figure 2).

    The cost is O(n m²). If the factor (n, m) has more than 2²⁵ numbers, a random subset of the rows is used. If the
    rank of the kernel is too low, the remaining landmarks are drawn uniformly.
    """
    rows = view.rows(m, rng)
    factor = PartialCholesky(view, rows, m, view.X.dtype)
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
    """Draw pivots with P(i) ∝ diag(K − F Fᵀ)_i, one after the other (Chen, Epperly, Tropp & Webber 2022, algorithm 1).

    Blocks of pivots are proposed and thinned by rejection, which gives the same distribution at the speed of matrix
    products (Epperly, Tropp & Webber 2024, algorithm 2). Cost, memory and low ranks are treated as in `greedy`.
    """
    rows = view.rows(m, rng)
    if view.tolerance is None:
        factor, again = PartialCholesky(view, rows, m, np.float32), deepcopy(rng)
        chosen = _draw_pivots(factor, m, rng)
        if len(chosen) == m or view.X.dtype == np.float32:
            return factor.chosen(chosen, m, rng)
        rng = again
    # float32 is not precise enough for so many pivots, or to measure the tolerance
    factor = PartialCholesky(view, rows, m, view.X.dtype)
    return factor.chosen(_draw_pivots(factor, m, rng), m, rng)


def _draw_pivots(factor: PartialCholesky, m: int, rng: np.random.Generator) -> list[int]:
    """Add m pivots to the factor, or as many as its rank allows. Return their positions among its rows."""
    chosen: list[int] = []
    while len(chosen) < m and factor.left.any() and factor.enough is None:
        size = min(_BLOCK, max(8, m // 8), m - len(chosen))
        drawn = rng.choice(len(factor.left), size=size, p=factor.left / factor.left.sum())
        kept, root = thin(factor.residual(drawn), factor.left[drawn], factor.noise, rng)
        if not len(kept):  # only rounding errors remain of these rows
            factor.left[drawn] = 0.0
            continue
        factor.add(drawn[kept], root)
        chosen.extend(drawn[kept].tolist())
    return chosen


def thin(
    residual: Floats, proposed: Floats, noise: float, rng: np.random.Generator
) -> tuple[Indices, Floats]:
    """Keep each drawn pivot i with probability H_ii/proposed_i. Return the kept positions and their Cholesky factor.

    H is the `residual` (n, n), from which every kept pivot is eliminated. The pivots were drawn ∝ `proposed` (n,).
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
    """Choose rows one by one, each as far as possible from the nearest row chosen before (Gonzalez 1985).

    The squared distance is k(x,x) + k(l,l) − 2k(x,l). The first row is random. The covering radius is at most twice the
    smallest possible one. The cost is O(n m). If only duplicates are left, the remaining landmarks are drawn uniformly.
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
        # smaller distances are 0 except for rounding
        noise = 16.0 * float(np.finfo(view.X.dtype).eps) * float(np.abs(diagonal).max())
        if len(chosen) == m or distance.max() <= noise:
            return fill_up(np.array(chosen), everything, m, rng)
        chosen.append(int(np.argmax(distance)))
