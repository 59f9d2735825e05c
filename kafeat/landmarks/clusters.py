"""Lloyd's iterations, weighted, in blocks of rows at the speed of matrix products."""

from __future__ import annotations

import numpy as np

from kafeat.landmarks.view import Indices
from kafeat.types import Floats

_BLOCK = 4096


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
    for start in range(0, len(X), _BLOCK):
        block = X[start : start + _BLOCK]
        distance = block @ doubled
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
    for start in range(0, len(X), _BLOCK):
        block = X[start : start + _BLOCK]
        size = len(block)
        which = csr_array(
            (weights[start : start + size], (labels[start : start + size], np.arange(size))), shape=(m, size)
        )
        sums += which @ block.astype(np.float64)
    means = np.where(mass[:, None] > 0.0, sums / np.where(mass > 0.0, mass, 1.0)[:, None], centres)
    return means.astype(X.dtype), mass
