"""The fit sample with its kernel, for landmark selectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from kafeat.types import Array, Floats

Indices = npt.NDArray[np.intp]

# The most numbers in any array that a selector allocates: 256 MiB in float64.
MOST = 1 << 25


@dataclass(frozen=True)
class Profile:
    """A kernel of r = ‖x − y‖. `of(r²)` returns k and dk/dr², and k changes visibly over the distance `length`."""

    of: Callable[[Floats], tuple[Floats, Floats]]
    length: float


@dataclass(frozen=True)
class FitSample:
    """The rows `X` (n, d) of the sample, the kernel between them, and their label.

    `kernel(rows, columns)` gives k(x_i, x_j) for row numbers i and j, `diagonal(rows)` gives k(x_i, x_i), both in the
    dtype of X. Both are divided by the same positive number, which does not change what selectors choose. `dual_l1` is
    the τ of `dual_weights`, and `profile` the kernel as a differentiable function of the distance, or None. `greedy`
    and `rpcholesky` stop when the residual kernel has at most the share `tolerance` of the trace. With `roots`, k-means
    uses square roots of the columns.
    """

    X: Floats
    kernel: Callable[[Indices, Indices], Floats]
    diagonal: Callable[[Indices], Floats]
    label: Array | None = None
    dual_l1: float = 0.0
    profile: Profile | None = None
    tolerance: float | None = None
    roots: bool = False

    def among(self, rows: Indices) -> Self:
        """Return a sample of these rows only, without their label."""
        return replace(
            self,
            X=self.X[rows],
            kernel=lambda i, j: self.kernel(rows[i], rows[j]),
            diagonal=lambda i: self.diagonal(rows[i]),
            label=None,
        )

    def rows(self, width: int, rng: np.random.Generator) -> Indices:
        """Return all row numbers, or random ones if an array with `width` columns would exceed `MOST` numbers."""
        n, most = len(self.X), max(width, MOST // width)
        if n <= most:
            return np.arange(n)
        return np.sort(rng.choice(n, size=most, replace=False))


def draw(weights: Floats, m: int, rng: np.random.Generator) -> Indices:
    """Draw m indices with P(i) ∝ weights_i, without replacement. If fewer weights are above 0, draw only these."""
    weights = np.minimum(weights, np.finfo(np.float64).max)
    largest = weights.max(initial=0.0)
    if largest == 0.0:
        return np.empty(0, dtype=np.intp)
    weights = weights / largest  # so that their sum does not overflow
    size = min(m, int(np.count_nonzero(weights)))
    return rng.choice(len(weights), size=size, replace=False, p=weights / weights.sum())


def fill_up(chosen: Indices, rows: Indices, m: int, rng: np.random.Generator) -> Indices:
    """Return `chosen`, filled up to m rows by uniform draws from the other `rows`."""
    if len(chosen) >= m:
        return chosen[:m]
    left = np.setdiff1d(rows, chosen)
    return np.concatenate([chosen, rng.choice(left, size=m - len(chosen), replace=False)])
