"""Rows scaled to unit norm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from kafeat import kernels
from kafeat.kernels import KernelParameters
from kafeat.pair import Gram, Pair
from kafeat.step import Sample, Scaler, parameter
from kafeat.types import Floats, Shape, State


class Normalize(Scaler):
    """x/‖x‖ row by row, in the l1 norm Σ|x_i|, the l2 norm √Σx_i² or the max norm max|x_i|. A row of zeros stays.

    With l1, an additive homogeneous kernel has k(x, x) = 1; with l2, the linear kernel becomes the cosine.
    """

    norm: Literal["l1", "l2", "max"] = parameter("l2", "the norm that becomes 1")

    @property
    def needs_coordinates(self) -> bool:
        return self.norm != "l2"

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        return {}

    def state_shapes(self, state: State, n_features_in: int) -> Mapping[str, Shape]:
        return {}

    def scale(self, state: State, X: Floats) -> Floats:
        largest = np.abs(X).max(axis=1, keepdims=True, initial=0.0)
        # Divided by the largest entry first: squares and sums neither overflow nor vanish.
        scaled: Floats = X / np.where(largest > 0.0, largest, X.dtype.type(1.0))
        if self.norm != "max":
            order = 1 if self.norm == "l1" else 2
            norms = np.linalg.norm(scaled, ord=order, axis=1, keepdims=True)
            scaled /= np.where(norms > 0.0, norms, X.dtype.type(1.0))
        return scaled

    def exact(self, state: State, pair: Pair) -> Pair:
        if isinstance(pair, Gram):
            return kernels.cosine(pair, KernelParameters())
        return super().exact(state, pair)
