"""Parts of ridge regressions: penalties, the penalized linear system, and threads for several systems."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np

from kafeat.maths.units import power_of_two
from kafeat.runtime.ordered_map import ordered_map
from kafeat.types import Floats

T = TypeVar("T")
R = TypeVar("R")

PENALTIES = 10.0 ** np.arange(-7.0, 2.0)
"""Penalties relative to the mean eigenvalue of the Gram matrix, so that one grid serves all scales."""


# Smaller numbers have lost digits, or their squares would.
_LEAST = float(np.finfo(np.float64).tiny) * 1e30


def scale_of(A: Floats) -> float:
    """Return a power of two near the largest entry, to divide a matrix by before entries are squared."""
    largest = float(np.abs(A).max(initial=0.0))
    return float(power_of_two(largest)) if largest > _LEAST else 1.0


def penalty_of(relative: float, mean_eigenvalue: float, largest: float, size: int) -> float:
    """Return a penalty relative to the mean eigenvalue, but above the rounding error of a centred matrix (size, size).

    `largest` is the largest entry before centring. If all inputs are equal, the centred matrix is 0 and any penalty
    serves.
    """
    rounding = 4.0 * size * float(np.finfo(np.float64).eps) * largest
    return max(relative * (mean_eigenvalue if mean_eigenvalue > max(rounding, _LEAST) else 1.0), rounding)


def solved(A: Floats, penalty: float, B: Floats) -> Floats:
    """Return (A + λ)⁻¹B by Cholesky. Nine factors take a fifth of the time of one eigendecomposition."""
    from scipy.linalg import cho_factor, cho_solve

    A = A.copy()
    A.flat[:: len(A) + 1] += penalty
    solution: Floats = cho_solve(cho_factor(A, overwrite_a=True, check_finite=False), B, check_finite=False)
    return solution


# Total bytes of the matrices that threads factor at the same time.
_MOST_BYTES = 1 << 30


def sharing(jobs: int, size: int) -> int:
    """Return the number of threads for which a matrix (size, size) each fits in memory."""
    return max(1, min(jobs, _MOST_BYTES // (8 * size * size)))


def each(work: Callable[[T], R], items: Iterable[T], jobs: int) -> list[R]:
    """Apply `work` to every item with `jobs` threads; return the results in order."""

    def quiet(item: T) -> R:  # overflows show in the result
        with np.errstate(over="ignore", invalid="ignore"):
            return work(item)

    return list(ordered_map(lambda: quiet, iter(items), jobs))
