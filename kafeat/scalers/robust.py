"""Zero median and unit interquartile range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from kafeat.contract.step import Sample, Scaler, Traits
from kafeat.types import Floats, Shape, State


class Robust(Scaler):
    """(x − m)/(q₃ − q₁), with the median m and the quartiles q₁, q₃ of each column of the fit sample.

    Outliers move neither the centre nor the scale. A column whose quartiles differ by no more than rounding is only
    centred.
    """

    always: ClassVar[Traits] = Traits(columnwise=True, spreads="evens")

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        low, centre, high = np.quantile(sample.X, (0.25, 0.5, 0.75), axis=0).astype(np.float64)
        width = high - low
        constant = width <= 10.0 * np.finfo(sample.X.dtype).eps * np.maximum(np.abs(low), np.abs(high))
        return {"centre": centre, "width": np.where(constant, 1.0, width)}

    def state_shapes(self, state: State, n_features_in: int) -> Mapping[str, Shape]:
        return {"centre": (n_features_in,), "width": (n_features_in,)}

    def scale(self, state: State, X: Floats) -> Floats:
        moved: Floats = X - state["centre"]
        moved /= state["width"]
        return moved

    def inverse(self, state: State, Z: Floats, n_features_in: int) -> Floats | None:
        rows: Floats = state["centre"] + Z * state["width"]
        return rows
