"""The range of the fit sample to [0, 1]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from kafeat.contract.step import Sample, Scaler, Traits, parameter
from kafeat.types import Floats, Shape, State


class Minmax(Scaler):
    """(x − min)/(max − min), with the minimum and maximum of each column of the fit sample.

    A column that varies in the sample by no more than rounding becomes x − min. Rows outside of the range seen leave
    [0, 1] unless `clip` is set; histogram kernels, which refuse negative inputs, want it.
    """

    always: ClassVar[Traits] = Traits(columnwise=True, spreads="evens")

    clip: bool = parameter(False, "clip to [0, 1]")

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        low, high = (ends.astype(np.float64) for ends in (sample.X.min(axis=0), sample.X.max(axis=0)))
        width = high - low
        constant = width <= 10.0 * np.finfo(sample.X.dtype).eps * np.maximum(np.abs(low), np.abs(high))
        return {"low": low, "width": np.where(constant, 1.0, width)}

    def state_shapes(self, state: State, n_features_in: int) -> Mapping[str, Shape]:
        return {"low": (n_features_in,), "width": (n_features_in,)}

    def scale(self, state: State, X: Floats) -> Floats:
        moved: Floats = X - state["low"]
        moved /= state["width"]
        if self.clip:
            np.clip(moved, 0.0, 1.0, out=moved)
        return moved

    def inverse(self, state: State, Z: Floats, n_features_in: int) -> Floats | None:
        return None if self.clip else state["low"] + Z * state["width"]
