"""Kernel ridge regression."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kafeat.maths.ridge import (
    FOLDS,
    LEAST,
    PENALTIES,
    each,
    penalty_of,
    rounding_of,
    sharing,
    solved,
)
from kafeat.maths.units import power_of_two
from kafeat.types import Array, Floats


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
    return float(power_of_two(largest)) if largest > LEAST else 1.0
