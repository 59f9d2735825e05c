"""γ read off the data: `scale`, `median`, `auto`, or a number as it is."""

from __future__ import annotations

from typing import Literal

import numpy as np

from kafeat.errors import DataError
from kafeat.kernels import Kernel
from kafeat.types import Floats

Rule = Literal["scale", "median", "auto"]

# Enough for the median of a distance to about 1 %, and cheap at any width.
_PAIRS = 20_000
_BLOCK = 2_000


def resolve_gamma(gamma: float | Rule, kernel: Kernel, X: Floats, rng: np.random.Generator) -> float:
    """γ as a number.

    `scale`: 1/(d·Var X). `auto`: 1/d. `median`: 1/(2·median‖x − y‖²) over random pairs of the sample for
    kernels of the Euclidean distance; 1/median‖x − y‖² for matern (ℓ = the median distance);
    1/median‖x − y‖₁ for laplacian; 1/mean χ² distance for chi2; 1/d for kernels of dot products.
    """
    if not isinstance(gamma, str):
        return gamma
    if gamma == "auto" or (gamma == "median" and kernel.distance == "none"):
        return float(1.0 / X.shape[1])
    if gamma == "scale":
        variance = float(np.var(X, dtype=np.float64))
        return float(1.0 / (X.shape[1] * _positive(variance, "scale", "variance")))
    distances = _pair_distances(kernel.distance, X, rng)
    middle = float(distances.mean() if kernel.distance == "chi2" else np.median(distances))
    if middle == 0.0 and distances.any():  # more than half of the pairs are duplicates
        middle = float(distances[distances > 0].mean())
    factor = 2.0 if kernel.distance == "euclidean" else 1.0
    return 1.0 / (factor * _positive(middle, "median", "distance between rows"))


def _positive(value: float, rule: str, what: str) -> float:
    if value > 0.0 and np.isfinite(value):
        return value
    raise DataError(
        f"gamma: {rule}: expected rows that differ, got a {what} of {value:g} in the fit sample: give gamma as a number"
    )


def _pair_distances(distance: str, X: Floats, rng: np.random.Generator) -> Floats:
    n = len(X)
    if n < 2:
        return np.zeros(1)
    first = rng.integers(n, size=_PAIRS)
    second = (first + rng.integers(1, n, size=_PAIRS)) % n  # never the row itself
    blocks = [
        _distances(distance, X[first[i : i + _BLOCK]], X[second[i : i + _BLOCK]])
        for i in range(0, _PAIRS, _BLOCK)
    ]
    return np.concatenate(blocks)


def _distances(distance: str, a: Floats, b: Floats) -> Floats:
    x, y = a.astype(np.float64), b.astype(np.float64)
    terms: Floats
    if distance == "cityblock":
        terms = np.abs(x - y)
    elif distance == "chi2":
        total = x + y
        terms = np.divide((x - y) ** 2, total, out=np.zeros_like(total), where=total > 0)
    else:
        terms = (x - y) ** 2
    sums: Floats = terms.sum(axis=1)
    return sums
