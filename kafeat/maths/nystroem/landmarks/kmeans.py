"""Landmarks that are cluster centres."""

from __future__ import annotations

import numpy as np

from kafeat.maths.nystroem.landmarks.fit_sample import MOST, FitSample, Indices
from kafeat.maths.nystroem.landmarks.pivots import rpcholesky
from kafeat.types import Floats

# Beyond that many rows a centre, centres hardly change any more.
_ROWS_PER_CENTRE = 64
_LEAST_ROWS = 20_000
_ITERATIONS = 20
# Rows further off than this many typical distances are pulled in: squares must fit the dtype.
_FARTHEST = 1e6
# A squared distance in float32 is off by some eps of the row's squared length. Where the mean one is not this many
# times as large, float32 cannot tell the nearest centre.
_CERTAIN = 1000.0


def kmeans(view: FitSample, m: int, rng: np.random.Generator) -> Floats:
    """m centres of k-means: the error of Nyström is bounded by their quantisation error (Zhang, Tsang & Kwok 2008).

    Lloyd's iterations start from randomly pivoted Cholesky of an rbf kernel, in blocks: its inertia is 1 to 2 % above
    that of k-means++, but the kernel's error is the same or lower, as far rows get centres of their own. Where there
    are more than 64 rows a centre (and 20,000), or 2²⁵ numbers, a random subset takes part. Centres are no rows of the
    data; only where m is all rows they are returned as they are.
    """
    return weighted_kmeans(view.X, None, m, rng)


def weighted_kmeans(X: Floats, weights: Floats | None, m: int, rng: np.random.Generator) -> Floats:
    """m centres of the rows X (n, d) with `weights` (n,), all above 0; n ≥ m."""
    if len(X) <= m:
        return X
    most = max(m, min(max(_LEAST_ROWS, _ROWS_PER_CENTRE * m), MOST // X.shape[1]))
    rows = np.arange(len(X)) if len(X) <= most else np.sort(rng.choice(len(X), size=most, replace=False))
    own = np.ones(len(rows)) if weights is None else weights[rows] / weights[rows].mean()
    Y, middle, spread = standing(X, rows, rng)
    start = spread_start(Y, m, rng)
    narrow = Y.astype(np.float32)
    centres, inertia = lloyd(narrow, own, narrow[start], _ITERATIONS)
    if inertia < _CERTAIN * np.finfo(np.float32).eps * float(own @ np.einsum("ij,ij->i", Y, Y)):
        centres, _ = lloyd(Y, own, Y[start], _ITERATIONS)
    return (centres.astype(np.float64) * spread + middle).astype(X.dtype)


def standing(X: Floats, rows: Indices, rng: np.random.Generator) -> tuple[Floats, Floats, float]:
    """The rows around their medians, in units of a typical distance from them: squares lose and overflow nothing."""
    few = X[np.sort(rng.choice(rows, size=min(len(rows), 2048), replace=False))].astype(np.float64)
    middle = np.median(few, axis=0)
    away = few - middle
    largest = float(np.abs(away).max(initial=0.0)) or 1.0  # squares of the numbers themselves might not fit
    distance = largest * np.sqrt(((away / largest) ** 2).sum(axis=1))
    apart = distance[distance > 0.0]
    spread = float(np.median(apart)) if len(apart) else 1.0
    Y = np.empty((len(rows), X.shape[1]))
    for start in range(0, len(rows), 4096):
        block = (X[rows[start : start + 4096]] - middle) / spread
        Y[start : start + 4096] = np.clip(block, -_FARTHEST, _FARTHEST)
    return Y, middle, spread


def spread_start(Y: Floats, m: int, rng: np.random.Generator) -> Indices:
    """m different rows of Y (n, d), spread out by randomly pivoted Cholesky of exp(−‖x − y‖²/2)."""
    norms = np.einsum("ij,ij->i", Y, Y) / 2.0

    def kernel(rows: Indices, columns: Indices) -> Floats:
        K = Y[rows] @ Y[columns].T
        K -= norms[rows][:, None]
        K -= norms[columns]
        np.minimum(K, 0.0, out=K)
        return np.exp(K, out=K)

    return rpcholesky(FitSample(Y, kernel, lambda rows: np.ones(len(rows), dtype=Y.dtype)), m, rng)


# Rows whose distances to all centres stay in the second-level cache.
_BLOCK = 512


def lloyd(X: Floats, weights: Floats, centres: Floats, iterations: int) -> tuple[Floats, float]:
    """Centres (m, d) after `iterations`, or once no more than one row in a thousand moves; and their inertia.

    A cluster without rows moves to the row that is worst off.
    """
    labels = np.full(len(X), -1)
    inertia = np.inf
    for _ in range(iterations):
        before = labels
        labels, cost = assign(X, centres)
        cost *= weights
        inertia = float(cost.sum())
        if np.count_nonzero(before != labels) <= len(X) // 1000:
            break
        centres, mass = _means(X, weights, labels, centres)
        empty = np.flatnonzero(mass == 0.0)
        centres[empty] = X[np.argsort(-cost, kind="stable")[: len(empty)]]
    return centres, inertia


def assign(X: Floats, centres: Floats) -> tuple[Indices, Floats]:
    """The nearest centre of each row, and the squared distance to it (float64)."""
    doubled = np.ascontiguousarray(-2.0 * centres.T)
    norms = np.einsum("ij,ij->i", centres, centres)
    labels, cost = np.empty(len(X), dtype=np.intp), np.empty(len(X))
    buffer = np.empty((min(_BLOCK, len(X)), len(centres)), dtype=doubled.dtype)
    for start in range(0, len(X), _BLOCK):
        block = X[start : start + _BLOCK]
        distance = np.matmul(block, doubled, out=buffer[: len(block)])
        distance += norms
        nearest = distance.argmin(axis=1)
        labels[start : start + _BLOCK] = nearest
        cost[start : start + _BLOCK] = np.take_along_axis(distance, nearest[:, None], 1)[:, 0]
        cost[start : start + _BLOCK] += np.einsum("ij,ij->i", block, block)
    return labels, np.maximum(cost, 0.0)


def _means(X: Floats, weights: Floats, labels: Indices, centres: Floats) -> tuple[Floats, Floats]:
    """The weighted mean of each cluster and its weight; an empty cluster keeps its centre."""
    from scipy.sparse import csr_array

    m = len(centres)
    mass: Floats = np.bincount(labels, weights, minlength=m).astype(np.float64)
    sums = np.zeros(centres.shape)
    for start in range(0, len(X), 4096):
        block = X[start : start + 4096]
        size = len(block)
        which = csr_array(
            (weights[start : start + size], (labels[start : start + size], np.arange(size))), shape=(m, size)
        )
        sums += which @ block.astype(np.float64)
    means = np.where(mass[:, None] > 0.0, sums / np.where(mass > 0.0, mass, 1.0)[:, None], centres)
    return means.astype(X.dtype), mass
