"""Bounds of the mean error of random maps, n/√m with its factor, from an exact kernel matrix K (n, n)."""

from __future__ import annotations

import numpy as np

from kafeat.contract.error_slopes import ErrorBounds
from kafeat.types import Floats


def of_uniform_landmarks(K: Floats, m: int) -> ErrorBounds:
    """Bound the error of a Nyström map of m landmarks that are drawn from the same distribution as the n ≥ 2 rows.

    Let X and L be the rows and the landmarks in the feature space of the kernel, and P the projection on the landmarks.
    A unit vector y orthogonal to them has Lᵀy = 0, so ‖K − K̂‖₂ = ‖(I − P)X‖₂² ≤ ‖XXᵀ − (n/m)LLᵀ‖_F, whose mean square
    is n²(1/m + 1/n)(E k(x, x)² − E k(x, x′)²), the variance of two means. And ‖A‖_F² ≤ ‖A‖₂ tr A for A = K − K̂.

    Source: after Drineas & Mahoney 2005, whose landmarks are drawn from the rows themselves.
    """
    n = len(K)
    diagonal = float(np.square(K.diagonal()).sum())
    apart = (float(np.square(K).sum()) - diagonal) / (n * (n - 1))
    spectral = n * np.sqrt((1.0 / m + 1.0 / n) * max(diagonal / n - apart, 0.0))
    return ErrorBounds(float(np.sqrt(spectral * np.trace(K))), float(spectral))


def of_random_frequencies(K: Floats, m: int, second_moment: float) -> ErrorBounds:
    """Bound the error of a mean of m independent estimates of K, whose squares have a mean of at most `second_moment`.

    E‖K − K̂‖_F² is the sum of the variances of all entries, (E k̂_ij² − K_ij²)/m.
    """
    size = float(np.sqrt(max(second_moment * K.size - np.square(K).sum(), 0.0) / m))
    return ErrorBounds(size, size)
