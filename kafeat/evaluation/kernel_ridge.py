"""Kernel ridge regression."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kafeat.evaluation.folds import FOLDS
from kafeat.evaluation.penalized import PENALTIES, each, penalty_of, scale_of, sharing, solved
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
    unit = scale_of(K)
    K = K / unit
    errors = np.zeros(len(PENALTIES))
    for fold in range(FOLDS):
        held, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        if len(held) and len(rest):
            machine = _KernelMachine(K[np.ix_(rest, rest)], Y[rest])
            held_K, held_Y = K[np.ix_(held, rest)], Y[held]

            def missed(
                relative: float, machine: _KernelMachine = machine, K: Floats = held_K, Y: Floats = held_Y
            ) -> float:
                return float(((machine.model(relative)(K) - Y) ** 2).sum())

            errors += each(missed, PENALTIES, sharing(jobs, len(rest)))
    best = _KernelMachine(K, Y).model(float(PENALTIES[int(np.argmin(errors))]))
    return replace(best, alpha=best.alpha / unit, penalty=best.penalty * unit)


class _KernelMachine:
    """A kernel matrix (n, n), centred once for all penalties."""

    def __init__(self, K: Floats, Y: Floats) -> None:
        self._means, self._y, self._Y = K.mean(axis=0), Y.mean(axis=0), Y
        self._centred = K - self._means - self._means[:, None] + self._means.mean()
        self._mean_eigenvalue = float(np.trace(self._centred)) / len(K)
        self._largest = float(np.abs(K).max(initial=0.0))

    def model(self, relative: float) -> KernelModel:
        """Return the model with a penalty relative to the mean eigenvalue."""
        penalty = penalty_of(relative, self._mean_eigenvalue, self._largest, len(self._centred))
        # The vector of ones is an eigenvector of the centred matrix, so Σα = 0 and centring new rows adds a constant.
        alpha = solved(self._centred, penalty, self._Y - self._y)
        return KernelModel(alpha, self._y - self._means @ alpha, penalty)
