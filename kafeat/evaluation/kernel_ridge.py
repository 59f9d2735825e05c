"""Kernel ridge regression, and what it shares with the linear one: penalties, the linear system, and threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from kafeat.evaluation.preparation import FOLDS
from kafeat.maths.units import power_of_two
from kafeat.runtime.ordered_map import ordered_map
from kafeat.types import Array, Floats

T = TypeVar("T")
R = TypeVar("R")

PENALTIES = 10.0 ** np.arange(-7.0, 2.0)
"""Penalties relative to the mean eigenvalue of the Gram matrix, so that one grid serves all scales."""

# Smaller numbers have lost digits, or their squares would.
_LEAST = float(np.finfo(np.float64).tiny) * 1e30
# Total bytes of the matrices that threads factor at the same time.
_MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class KernelModel:
    """ŷ = k(x, ·)ᵀα + intercept, with α (n, k) for the training rows."""

    alpha: Floats
    intercept: Floats
    penalty: float
    converged: bool = True

    def __call__(self, K: Floats) -> Floats:
        """Return predictions (t, k) from the kernel K (t, n) between test and training rows."""
        predicted: Floats = K @ self.alpha + self.intercept
        return predicted

    @property
    def nonzero(self) -> int:
        """Return the number of training rows with a nonzero coefficient."""
        return int((self.alpha != 0.0).any(axis=1).sum())


def kernel_ridge(K: Floats, Y: Floats, folds: Array, jobs: int = 1) -> KernelModel:
    """Fit ridge regression with a kernel matrix K (n, n) and the penalties of the linear model."""
    training = KernelRidge(K, Y, folds, jobs)
    return training.model(training.search())


class KernelRidge:
    """A kernel matrix K (n, n) with targets Y (n, k), ready for ridge regression."""

    def __init__(self, K: Floats, Y: Floats, folds: Array, jobs: int = 1) -> None:
        self._unit = scale_of(K)
        self._K, self._Y, self._folds, self._jobs = K / self._unit, Y, folds, jobs

    def search(self) -> float:
        """Return the penalty with the least squared error over the folds."""
        errors = np.zeros(len(PENALTIES))
        for fold in range(FOLDS):
            held, rest = np.flatnonzero(self._folds == fold), np.flatnonzero(self._folds != fold)
            if len(held) and len(rest):
                errors += self._errors(held, rest)
        relative = float(PENALTIES[int(np.argmin(errors))])
        return _KernelMachine(self._K, self._Y).penalty(relative) * self._unit

    def _errors(self, held: Array, rest: Array) -> Floats:
        """Return the sum of squared errors on the held rows for every penalty."""
        machine = _KernelMachine(self._K[np.ix_(rest, rest)], self._Y[rest])
        K, Y = self._K[np.ix_(held, rest)], self._Y[held]

        def missed(relative: float) -> float:
            return float(((machine.model(machine.penalty(relative))(K) - Y) ** 2).sum())

        return np.array(each(missed, PENALTIES, sharing(self._jobs, len(rest))))

    def model(self, penalty: float) -> KernelModel:
        """Return the model with this penalty."""
        best = _KernelMachine(self._K, self._Y).model(penalty / self._unit)
        return replace(best, alpha=best.alpha / self._unit, penalty=best.penalty * self._unit)


class _KernelMachine:
    """A kernel matrix (n, n), centred once for all penalties."""

    def __init__(self, K: Floats, Y: Floats) -> None:
        self._means, self._y, self._Y = K.mean(axis=0), Y.mean(axis=0), Y
        self._centred = K - self._means - self._means[:, None] + self._means.mean()
        self._mean_eigenvalue = float(np.trace(self._centred)) / len(K)
        self._largest = float(np.abs(K).max(initial=0.0))

    def penalty(self, relative: float) -> float:
        """Return a penalty relative to the mean eigenvalue."""
        return penalty_of(relative, self._mean_eigenvalue, self._largest, len(self._centred))

    def model(self, penalty: float) -> KernelModel:
        """Return the model with this penalty, or the smallest one above rounding errors."""
        penalty = max(penalty, rounding_of(self._largest, len(self._centred)))
        # The vector of ones is an eigenvector of the centred matrix, so Σα = 0 and centring new rows adds a constant.
        alpha = solved(self._centred, penalty, self._Y - self._y)
        return KernelModel(alpha, self._y - self._means @ alpha, penalty)


def scale_of(A: Floats) -> float:
    """Return a power of two near the largest entry, to divide a matrix by before entries are squared."""
    largest = float(np.abs(A).max(initial=0.0))
    return float(power_of_two(largest)) if largest > _LEAST else 1.0


def penalty_of(relative: float, mean_eigenvalue: float, largest: float, size: int) -> float:
    """Return a penalty relative to the mean eigenvalue, but above the rounding error of a centred matrix (size, size).

    `largest` is the largest entry before centring. If all inputs are equal, the centred matrix is 0 and any penalty
    serves.
    """
    rounding = rounding_of(largest, size)
    return max(relative * (mean_eigenvalue if mean_eigenvalue > max(rounding, _LEAST) else 1.0), rounding)


def rounding_of(largest: float, size: int) -> float:
    """Return the rounding error of a centred matrix (size, size) whose entries were at most `largest`."""
    return 4.0 * size * float(np.finfo(np.float64).eps) * largest


def solved(A: Floats, penalty: float, B: Floats) -> Floats:
    """Return (A + λ)⁻¹B by Cholesky. Nine factors take a fifth of the time of one eigendecomposition."""
    from scipy.linalg import cho_factor, cho_solve

    A = A.copy()
    A.flat[:: len(A) + 1] += penalty
    solution: Floats = cho_solve(cho_factor(A, overwrite_a=True, check_finite=False), B, check_finite=False)
    return solution


def sharing(jobs: int, size: int) -> int:
    """Return the number of threads for which a matrix (size, size) each fits in memory."""
    return max(1, min(jobs, _MOST_BYTES // (8 * size * size)))


def each(work: Callable[[T], R], items: Iterable[T], jobs: int) -> list[R]:
    """Apply `work` to every item with `jobs` threads; return the results in order."""

    def quiet(item: T) -> R:  # overflows show in the result
        with np.errstate(over="ignore", invalid="ignore"):
            return work(item)

    return list(ordered_map(lambda: quiet, iter(items), jobs))
