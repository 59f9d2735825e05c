"""A test whether two samples have the same mean feature: the two-sample test of kernels, on explicit features.

With n and m rows, T = nm/(n + m)·‖μ̂ − ν̂‖² of the two means of features. Where both samples are of one distribution,
T is in the limit Σ λ_i χ²₁, with the eigenvalues λ_i of the features' covariance Σ. Its first three cumulants are tr Σ,
2 tr Σ² and 8 tr Σ³, and aχ²_ν + b with the same three is close to it, closest in the upper tail.

Source: Gretton, Borgwardt, Rasch, Schölkopf & Smola, JMLR 13, 2012, theorem 12; Imhof 1961, section 4 (cumulants).
"""

from __future__ import annotations

import numpy as np

from kafeat.types import Array, Floats

MOST_ROWS = 10_000
"""Rows that the mean of the fit is taken over: beyond that, the time would grow more than the power."""
_PAIRS = 512


def traces(features: Floats, rng: np.random.Generator) -> Floats:
    """Return unbiased estimates of tr Σ, tr Σ² and tr Σ³ of the covariance Σ of features (n, D), from pairs of rows.

    The differences u of disjoint pairs, over √2, have the mean 0 and the covariance Σ. So (u·v)² of two of them has the
    mean tr Σ², and (u·v)(v·w)(w·u) the mean tr Σ³.
    """
    order = rng.permutation(len(features))[: 2 * _PAIRS]
    half = len(order) // 2
    U = (features[order[:half]].astype(np.float64) - features[order[half : 2 * half]]) / np.sqrt(2.0)
    products = U @ U.T
    first = products.diagonal().mean() if half else np.float64(0.0)
    np.fill_diagonal(products, 0.0)
    second = (products**2).sum() / max(1, half * (half - 1))
    third = ((products @ products) * products).sum() / max(1, half * (half - 1) * (half - 2))
    return _consistent(first, second, third)


def _consistent(first: np.float64, second: np.float64, third: np.float64) -> Floats:
    """Take the traces into the bounds that those of a covariance have, which estimates may leave.

    They are numbers of NumPy, as those of Python cannot overflow to infinity.
    """
    second = min(second, first**2)
    if not second > 0.0:
        second = first**2  # of one pair, or of features that do not vary
    third = min(max(third, second**2 / first if first else np.float64(0.0)), second**1.5)
    if not third > 0.0:  # too small for a number: both stand for features that do not vary
        second = third
    return np.array([first, second, third])


def statistic(difference: Array, n: int, m: int) -> float:
    """T of the difference of two means (D,), over n and m rows."""
    return n * m / (n + m) * float(difference @ difference)


def p_value(value: float, of_covariance: Floats) -> float:
    """Return the probability that T is at least `value`, where both samples are of one distribution."""
    from scipy.special import gammaincc

    first, second, third = (float(trace) for trace in of_covariance)
    if not third > 0.0:  # constant features: rounding apart, any difference is one
        return float(value <= 0.0)
    scale, degrees = third / second, second**3 / third**2
    least = first - scale * degrees
    return float(gammaincc(degrees / 2.0, max(0.0, value - least) / (2.0 * scale)))
