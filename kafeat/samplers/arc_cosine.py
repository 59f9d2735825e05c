"""Kernels of the angle between rows: infinitely wide layers of random steps or rectified linear units."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from kafeat.contract.kernel_inputs import KernelInputs
from kafeat.contract.step import (
    N_COMPONENTS,
    InTwos,
    Sample,
    Transform,
    Width,
    parameter,
)
from kafeat.contract.tile import is_feature_major, shaped
from kafeat.contract.traits import ExactTraits, Traits
from kafeat.maths.fourier.features import DIRECTIONS, Directions, draw_directions
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels.dot_products import ArcCosineKernel
from kafeat.types import Floats, Shapes, State


class ArcCosine(InTwos):
    """Random ReLU features: z(x)·z(y) ≈ 1 − θ/π (order 0) or ‖x‖‖y‖(sin θ + (π − θ) cos θ)/π (order 1).

    θ is the angle between x and y, and z = √(2/D) Θ(w·x)(w·x)^order with w ~ N(0, I) and the step function Θ, which is
    ½ at 0. The error falls like 1/√D. Paired features use every w together with −w. For each row, exactly one of the
    two outputs is above 0, so the number of positive outputs is not random, and the variance falls by k(x, y)²/D.
    Orthogonal directions with random norms are spread more evenly.

    Source: Cho & Saul 2009, equations 1 to 3 and section 2.2; Yu et al. 2016 (orthogonal).
    """

    always: ClassVar[Traits] = Traits(exact=ExactTraits(needs_coordinates=False))
    twos = ("features", "paired", "for paired features")

    order: Literal[0, 1] = parameter(1, "0 for steps, 1 for rectified linear units")
    n_components: Width = N_COMPONENTS
    directions: Directions = DIRECTIONS
    features: Literal["paired", "plain"] = parameter("paired", "w together with −w, or w alone")

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        return {"directions": draw_directions(self.directions, self.n_drawn, sample.X.shape[1], rng)}

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        return {"directions": (self.n_drawn, n_features_in)}

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return _RectifiedTransform(state["directions"], self.n_components, self.order, dtype)

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        return ArcCosineKernel().gram(pair, KernelParameters.of(self))


class _RectifiedTransform(Transform):
    """A transform by one matrix product, then one pass for w and one for −w."""

    def __init__(self, directions: Floats, n_components: int, order: int, dtype: np.dtype[Any]) -> None:
        m, self.n_features_in = directions.shape
        self.n_features_out = n_components
        scale = np.sqrt(2.0 / n_components)
        self._order, self._m = order, m
        # the step function ignores the length of w, so its result is scaled
        self._directions = np.ascontiguousarray(directions * (scale if order else 1.0), dtype=dtype)
        self._step = dtype.type(scale)
        self._dtype = dtype

    def scratch(self, rows: int) -> Floats:
        return np.empty(rows * self._m, dtype=self._dtype)

    def apply(self, X: Floats, out: Floats, scratch: Floats) -> None:
        m = self._m
        products = shaped(scratch, (len(X), m), is_feature_major(out))
        np.matmul(X, self._directions.T, out=products)
        first, second = out[:, :m], out[:, m:]
        if self._order:
            np.maximum(products, 0, out=first)
        else:
            np.heaviside(products, self._dtype.type(0.5), out=first)
            first *= self._step
        if self.n_features_out > m:
            # the output of −w without rounding: max(−t, 0) = max(t, 0) − t
            np.subtract(first if self._order else self._step, products if self._order else first, out=second)
