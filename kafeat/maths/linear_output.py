"""Outputs of a linear model: numbers, or probabilities of classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.contract.step import DOUBLE, Transform
from kafeat.maths.calibration import softmax
from kafeat.types import Floats, Scratch


class LinearOutput(Transform):
    """Zw + b with w (D, k) and b (k,) in float64, or its softmax with a temperature.

    The product is computed in `dtype`, or in float64 if `wide`. Large weights that nearly cancel need float64.
    """

    def __init__(
        self, w: Floats, b: Floats, temperature: float | None, dtype: np.dtype[Any], wide: bool
    ) -> None:
        self._dtype = DOUBLE if wide else dtype
        self._widens = wide and dtype != DOUBLE
        self._w, self._b = np.ascontiguousarray(w, self._dtype), b.astype(DOUBLE)
        self._temperature = temperature
        self.n_features_in, self.n_features_out = w.shape

    def scratch(self, rows: int) -> Scratch:
        wide = np.empty((rows if self._widens else 0, self.n_features_in))
        return wide, np.empty((rows, self.n_features_out), self._dtype)

    def apply(self, X: Floats, out: Floats, scratch: Scratch) -> None:
        wide, products = scratch
        if self._widens:
            wide[...] = X
            X = wide
        np.matmul(X, self._w, out=products)
        scores = products + self._b
        if self._temperature is None:
            out[...] = scores
            return
        softmax(scores, self._temperature, scores)
        out[...] = scores


def needs_float64(w: Floats, squares: Floats, spread: Floats) -> bool:
    """Return True if rounding in float32 would be visible in the outputs Zw of the weights w (D, k).

    `squares` (D,) are the mean squares of the features. Rounding errors of D products add up like a random walk, to √D
    ε/2 times the size of the sums, √Σ w²z², where ε is float32's. More than a ten-thousandth of the targets' `spread`
    (k,) is too much.
    """
    rounding = np.finfo(np.float32).eps / 2.0 * np.sqrt(len(w) * (squares @ w**2))
    return bool((rounding > 1e-4 * spread).any())


def leaves_float32(w: Floats) -> bool:
    """Return True if weights (D, k) for labels in a very large or small unit would overflow or vanish in float32."""
    largest = np.abs(w).max(axis=0, initial=0.0)
    return bool(((largest > 0.0) & ((largest < 1e-20) | (largest > 1e20))).any())
