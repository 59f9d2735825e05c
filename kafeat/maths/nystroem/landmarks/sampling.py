"""Landmarks that are drawn at random: uniformly, or by ridge leverage scores."""

from __future__ import annotations

import numpy as np

from kafeat.maths.nystroem.landmarks.fit_sample import FitSample, Indices, draw, fill_up
from kafeat.types import Floats


def leverage(view: FitSample, m: int, rng: np.random.Generator) -> Indices:
    """P(i) ∝ the ridge leverage score (K(K + λI)⁻¹)_ii, estimated on halves of halves (Musco & Musco 2017, alg. 3).

    Each level scores twice as many rows, with landmarks drawn from the level below; λ is the mean of the eigenvalues
    beyond the k-th, k = m/(4 log m). O(n m²), in blocks of rows; where the score is (n, m) numbers and more than 2²⁵,
    the rows that take part are a random subset. Draws are without replacement.
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
        if drawn.sum() > m:  # as few as are asked for: costs stay bounded
            drawn[rng.choice(np.flatnonzero(drawn), size=int(drawn.sum()) - m, replace=False)] = False
        if drawn.any():
            dictionary, weights = order[:size][drawn], 1.0 / np.sqrt(scores[drawn])
    scores = ridge_scores(view, order, dictionary, weights, _ridge(view, dictionary, weights, k))
    scores[scores < 1e-12 * scores.max(initial=0.0)] = 0.0
    return fill_up(order[draw(scores, m, rng)], everything, m, rng)


def _ridge(view: FitSample, dictionary: Indices, weights: Floats, k: int) -> float:
    """Of the weighted kernel of the dictionary, what is beyond the k-th eigenvalue, a k-th of it."""
    K = view.kernel(dictionary, dictionary).astype(np.float64) * weights[:, None] * weights
    values = np.linalg.eigvalsh((K + K.T) / 2.0)[::-1]
    # Rounding in float32, or an indefinite kernel, leaves negative eigenvalues, which K + λI must not have.
    least = max(1e-9 * values[0], -2.0 * k * values[-1], np.finfo(float).tiny)
    return float(max(values[k:].sum(), least)) / k


def ridge_scores(
    view: FitSample, rows: Indices, dictionary: Indices, weights: Floats, ridge: float
) -> Floats:
    """(1/λ)(K − K S(SᵀKS + λI)⁻¹SᵀK)_ii of `rows`, S the weighted dictionary: K(K + λI)⁻¹_ii where S is everything."""
    from scipy.linalg import solve_triangular

    K = view.kernel(dictionary, dictionary).astype(np.float64) * weights[:, None] * weights
    root = np.linalg.cholesky((K + K.T) / 2.0 + ridge * np.eye(len(K)))
    # Of the mean eigenvalue, λ is not below 1e-9, so an inverse is as good as solving, and a product much faster.
    inverse = solve_triangular(root, np.eye(len(K)), lower=True).T * weights[:, None]
    scores = np.empty(len(rows))
    for start in range(0, len(rows), 4096):
        block = rows[start : start + 4096]
        turned = view.kernel(block, dictionary).astype(np.float64) @ inverse
        explained = np.einsum("ij,ij->i", turned, turned)
        scores[start : start + 4096] = (view.diagonal(block) - explained) / ridge
    return np.maximum(scores, 0.0)


def uniform(view: FitSample, m: int, rng: np.random.Generator) -> Indices:
    """m different rows, each as likely as the other, without replacement (Williams & Seeger 2001)."""
    return np.sort(rng.choice(len(view.X), size=m, replace=False))
