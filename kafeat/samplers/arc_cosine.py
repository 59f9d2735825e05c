"""Random ReLU features of arc-cosine kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from kafeat import kernels, spectra
from kafeat.kernels import KernelParameters
from kafeat.pair import Pair
from kafeat.step import PositiveInt, Sample, Step, Transform, parameter
from kafeat.types import Array, Floats, Shape, State


class ArcCosine(Step):
    """Random ReLU features: z(x)·z(y) ≈ 1 − θ/π (order 0) or ‖x‖‖y‖(sin θ + (π − θ) cos θ)/π (order 1).

    θ is the angle between x and y, and z = √(2/D) Θ(w·x)(w·x)^order with w ~ N(0, I) and Θ the step, ½ at 0: an
    infinitely wide layer of random steps or rectified linear units. The error falls like 1/√D. Orthogonal directions,
    each with a norm of its own, spread evenly; in a block of them no two are close.

    Source: Cho & Saul 2009, equations 1 to 3 and section 2.2; Yu et al. 2016 (orthogonal).
    """

    order: Literal[0, 1] = parameter(1, "0 for steps, 1 for rectified linear units")
    n_components: PositiveInt = parameter(1024, "D, the number of outputs")
    directions: Literal["iid", "orthogonal"] = parameter("orthogonal", "how the directions are drawn")

    @property
    def needs_coordinates(self) -> bool:
        return False

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        law = spectra.rbf(0.5)  # ω ~ N(0, 2γ I)
        draw = law.orthogonal if self.directions == "orthogonal" else law.iid
        return {"directions": draw(self.n_components, sample.X.shape[1], rng)}

    def state_shapes(self, state: State, n_features_in: int) -> Mapping[str, Shape]:
        return {"directions": (self.n_components, n_features_in)}

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return _RectifiedTransform(state["directions"], self.order, dtype)

    def exact(self, state: State, pair: Pair) -> Pair:
        return kernels.arc_cosine(self.order)(pair, KernelParameters())


class _RectifiedTransform(Transform):
    """One product straight into the output, then one pass."""

    def __init__(self, directions: Floats, order: int, dtype: np.dtype[Any]) -> None:
        self.n_features_out, self.n_features_in = directions.shape
        scale = np.sqrt(2.0 / len(directions))
        self._order = order
        # the step forgets lengths, so its scale comes after it
        self._directions = np.ascontiguousarray(directions * (scale if order else 1.0), dtype=dtype)
        self._step = dtype.type(scale)

    def apply(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        np.matmul(X, self._directions.T, out=out)
        if self._order:
            np.maximum(out, 0, out=out)
        else:
            np.heaviside(out, out.dtype.type(0.5), out=out)
            out *= self._step
