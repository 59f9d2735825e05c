"""Weight the n-gram counts of texts, and find directions of largest variance or directions that predict a label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kafeat.contract.ngrams import BUCKETS
from kafeat.contract.tile import SparseRows
from kafeat.types import Array, Floats

# For the randomized SVD: the most rows, the number of iterations, and the number of extra directions.
_MOST_ROWS, _ROUNDS, _SPARE = 20_000, 2, 16
# The most rows for one ridge regression.
_MOST_LEARNED = 40_000
# For ridge: the penalty, as a multiple of the mean ‖row‖², and the most steps and the tolerance of conjugate gradients.
_PENALTY, _MOST_STEPS, _ENOUGH = 1.0, 200, 1e-3


def weighted(counts: SparseRows, weights: Floats) -> SparseRows:
    """Return the rows with each count ±c replaced by ±(1 + log c) times the weight of its bucket (BUCKETS,)."""
    size = np.abs(counts.values)
    # Counts below 1 are not changed, because their logarithm is negative. They occur if the rows hold numbers, not
    # texts.
    values = np.sign(counts.values) * np.where(size < 1.0, size, 1.0 + np.log(np.maximum(size, 1.0)))
    values *= weights[counts.columns]
    return SparseRows(values, counts.columns, counts.starts, BUCKETS)


def unit_rows(rows: SparseRows) -> SparseRows:
    """Return the rows, scaled to length 1."""
    norms = np.sqrt(np.bincount(rows.row_of, rows.values * rows.values, len(rows)))
    return SparseRows(rows.values / norms[rows.row_of], rows.columns, rows.starts, BUCKETS)


def inverse_frequencies(counts: SparseRows) -> Floats:
    """Return log(e(1 + n)/(1 + n_b)) for each bucket b, (BUCKETS,), where n_b of n rows have a count in b."""
    rows = np.bincount(counts.columns, minlength=BUCKETS)
    weights: Floats = np.log((1.0 + len(counts)) / (1.0 + rows)) + 1.0
    return weights


def main_directions(counts: SparseRows, weights: Floats, width: int, rng: np.random.Generator) -> Floats:
    """Return the first right singular vectors (BUCKETS, width) of rows that are weighted and then scaled to length 1.

    They are computed by a randomized SVD, from a random sample if there are many rows.
    """
    if len(counts) > _MOST_ROWS:
        counts = counts[np.sort(rng.choice(len(counts), _MOST_ROWS, replace=False))]
    U, basis = (
        unit_rows(weighted(counts, weights)).csr,
        rng.standard_normal((BUCKETS, min(width + _SPARE, BUCKETS))),
    )
    for _ in range(_ROUNDS):
        basis, _ = np.linalg.qr(U.T @ (U @ basis))
    image = U @ basis
    _, vectors = np.linalg.eigh(image.T @ image)
    directions: Floats = basis @ vectors[:, ::-1][:, :width]
    return directions


def label_directions(
    several: Sequence[SparseRows], Y: Floats, folds: Array, n_folds: int, spread: float
) -> Floats:
    """Return ridge coefficients (K, BUCKETS, k·s) for targets Y (n, k) and the s weightings of the n rows in `several`.

    The coefficients of each of the K folds are learned from the rows of all other folds, and scaled so that predictions
    have the standard deviation `spread`.
    """
    found = np.zeros((n_folds, BUCKETS, Y.shape[1], len(several)))
    for i, rows in enumerate(several):
        U, predicted = rows.csr, np.zeros(Y.shape)
        penalty = _PENALTY * float(rows.values @ rows.values) / max(len(rows), 1)
        for fold in range(n_folds):
            own, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            others = others[:: -(-len(others) // _MOST_LEARNED) or 1]
            if len(others):
                found[fold, :, :, i] = _ridge(U[others], Y[others] - Y[others].mean(axis=0), penalty)
                predicted[own] = U[own] @ found[fold, :, :, i]
        sizes = predicted.std(axis=0)
        found[..., i] *= spread / np.where(sizes > 0.0, sizes, np.inf)
    return found.reshape(n_folds, BUCKETS, -1)


def _ridge(U: Any, Y: Floats, penalty: float) -> Floats:
    """Return (UᵀU + λ)⁻¹UᵀY, by conjugate gradients for each column (Hestenes & Stiefel 1952)."""
    tiny = np.finfo(float).tiny
    R = U.T @ Y
    W, P, size = np.zeros_like(R), R.copy(), (R * R).sum(axis=0)
    enough = _ENOUGH**2 * size
    for _ in range(_MOST_STEPS):
        if (size <= enough).all():
            break
        Q = U.T @ (U @ P) + penalty * P
        step = size / np.maximum((P * Q).sum(axis=0), tiny)
        W, R = W + step * P, R - step * Q
        last, size = size, (R * R).sum(axis=0)
        P = R + size / np.maximum(last, tiny) * P
    return W
