"""Choose γ from the data: `scale`, `median`, `auto`, a multiple of one of these, or a given number."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from kafeat.contract.describe import Described
from kafeat.contract.memory import blocks
from kafeat.errors import DataError
from kafeat.maths.kernel import Kernel
from kafeat.maths.kernel_error import power_of_two
from kafeat.types import Floats

# A regular expression for numbers above 0.
_NUMBER = r"([0-9]*[1-9][0-9]*\.?[0-9]*|[0-9]*\.[0-9]*[1-9][0-9]*)([eE][+-]?[0-9]{1,2})?"
Multiple = Annotated[
    str,
    Field(pattern=rf"^{_NUMBER}\*(scale|median|auto)$"),
    Described("a multiple of a rule ('3*median')", "multiples of a rule ('3*median')"),
]
Rule = Literal["scale", "median", "auto"] | Multiple

# The number of random pairs, from which the median distance is accurate to about 1 %.
_PAIRS = 20_000
_TYPICAL_ROWS = 2_000  # the first rows, from which `_unit` finds a typical entry


def resolve_gamma(gamma: float | Rule, kernel: Kernel, X: Floats, rng: np.random.Generator) -> float:
    """Return γ: the number `gamma`, or the value that the rule `gamma` has on the sample X (n, d).

    `scale`: 1/(d·Var X). `auto`: 1/d. `median`: 1/(2·median‖x − y‖²) over random pairs of the sample for kernels of the
    Euclidean distance; 1/median‖x − y‖² for matern (ℓ = the median distance); 1/median‖x − y‖₁ for laplacian; 1/mean χ²
    distance for chi2; 1/d for kernels of dot products.
    """
    if not isinstance(gamma, str):
        return gamma
    multiple, _, rule = gamma.rpartition("*")
    if multiple:
        return _multiplied(float(multiple), resolve_gamma(rule, kernel, X, rng), gamma)
    if gamma == "auto" or (gamma == "median" and kernel.distance == "none"):
        return float(1.0 / X.shape[1])
    unit = _unit(X)
    if gamma == "scale":
        with np.errstate(over="ignore"):
            variance = float(np.var(X if unit == 1.0 else X / np.float64(unit), dtype=np.float64))
        return _inverse(X.shape[1] * variance, unit, 2, "scale", "variance")
    distances = _pair_distances(kernel.distance, X, unit, rng)
    middle = float(distances.mean() if kernel.distance == "chi2" else np.median(distances))
    if middle == 0.0 and distances.any():  # equal rows in over half of the pairs: average the other pairs
        middle = float(distances[distances > 0].mean())
    squared = kernel.distance in ("euclidean", "matern")
    factor = 2.0 if kernel.distance == "euclidean" else 1.0
    return _inverse(factor * middle, unit, 2 if squared else 1, "median", "distance between rows")


def _multiplied(multiple: float, gamma: float, spelled: str) -> float:
    product = multiple * gamma
    if not np.finfo(np.float64).tiny <= product < np.inf:
        raise DataError(f"gamma: {spelled}: expected a number above 0 that float64 can hold, got {product:g}")
    return product


def _unit(X: Floats) -> float:
    """Return a unit in which squares of X fit float64: 1, or for extreme X a power of two near a typical entry."""
    sizes = np.abs(X[:_TYPICAL_ROWS].astype(np.float64))
    sizes = sizes[sizes > 0.0]
    typical = float(np.median(sizes)) if len(sizes) else 1.0
    return 1.0 if 1e-100 < typical < 1e100 else float(power_of_two(typical))


def _inverse(value: float, unit: float, power: int, rule: str, what: str) -> float:
    """Return 1/(value·unit^power). Raise an error with the names `rule` and `what` if float64 cannot hold it."""
    if value == 0.0:
        raise DataError(
            f"gamma: {rule}: expected rows that differ, got a {what} of 0 in the fit sample: give gamma as a number"
        )
    gamma = 1.0 / value
    for _ in range(power):
        gamma /= unit
    if not np.finfo(np.float64).tiny <= gamma < np.inf:
        size = np.log10(value) + power * np.log10(unit)
        raise DataError(
            f"gamma: {rule}: expected a {what} whose inverse float64 can hold, got one of 10^{size:.0f} in the fit "
            "sample: scale the input"
        )
    return gamma


def _pair_distances(distance: str, X: Floats, unit: float, rng: np.random.Generator) -> Floats:
    """Return the distances of `_PAIRS` random pairs of rows of X/unit, or one 0 if X has fewer than two rows."""
    n = len(X)
    if n < 2:
        return np.zeros(1)
    first = rng.integers(n, size=_PAIRS)
    second = (first + rng.integers(1, n, size=_PAIRS)) % n  # never the same row as in `first`
    with np.errstate(over="ignore"):
        distances = [
            _distances(distance, *(X[rows[some]] / np.float64(unit) for rows in (first, second)))
            for some in blocks(_PAIRS, X.shape[1])
        ]
    return np.concatenate(distances)


def _distances(distance: str, x: Floats, y: Floats) -> Floats:
    """Return the distance (n,) of each row of x (n, d) to the same row of y (n, d)."""
    terms: Floats
    if distance == "cityblock":
        terms = np.abs(x - y)
    elif distance == "chi2":
        total = x + y
        terms = np.divide((x - y) ** 2, total, out=np.zeros_like(total), where=total > 0)
    else:
        terms = (x - y) ** 2
    return terms.sum(axis=1)
