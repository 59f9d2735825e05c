"""Scale every row to length 1, in one of four norms."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.contract.step import PositiveFloat, Sample, parameter
from kafeat.contract.traits import ExactTraits, NumberTraits, Traits
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels.dot_products import CosineKernel
from kafeat.scalers._columns import ColumnScaler
from kafeat.types import Array, Floats, State


class Normalize(ColumnScaler):
    """x/‖x‖ row by row: l1 Σ|x_i|, l2 √Σx_i², max max|x_i|, homogeneous (Σ|x_i|^γ)^{1/γ}. Zeros stay zeros.

    With l2, the linear kernel becomes the cosine. With l1, an additive homogeneous kernel of homogeneity 1 has
    k(x, x) = 1. With `homogeneous`, this holds for a kernel of any homogeneity γ, if both use the same γ.
    """

    always: ClassVar[Traits] = Traits(numbers=NumberTraits(spreads="keeps"))

    norm: Literal["l1", "l2", "max", "homogeneous"] = parameter("l2", "the norm that becomes 1")
    homogeneity: PositiveFloat = parameter(1.0, "γ of the norm homogeneous")

    @property
    def traits(self) -> Traits:
        return replace(super().traits, exact=ExactTraits(needs_coordinates=self.norm != "l2"))

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        return {}

    def sources(self, state: State, n_features_in: int) -> Array:
        return np.arange(n_features_in)

    def scale(self, state: State, X: Floats) -> Floats:
        largest = np.abs(X).max(axis=1, keepdims=True, initial=0.0)
        # Divide by the largest entry first, so that squares and sums neither overflow nor vanish.
        scaled: Floats = X / np.where(largest > 0.0, largest, X.dtype.type(1.0))
        if self.norm != "max":
            norms = self._norms(scaled)
            scaled /= np.where(norms > 0.0, norms, X.dtype.type(1.0))
        return scaled

    def _norms(self, X: Floats) -> Floats:
        if self.norm == "homogeneous":
            powers: Floats = (np.abs(X) ** self.homogeneity).sum(axis=1, keepdims=True)
            return powers ** (1.0 / self.homogeneity)
        return np.linalg.norm(X, ord=1 if self.norm == "l1" else 2, axis=1, keepdims=True)

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        if isinstance(pair, Gram):
            return CosineKernel().gram(pair, KernelParameters())
        return super().exact(state, pair)
