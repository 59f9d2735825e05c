"""Scale every column to [0, 1] by its range in the training rows."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from kafeat.contract.step import Sample, parameter
from kafeat.scalers._columns import AffineScaler, widths
from kafeat.types import Floats, State


class Minmax(AffineScaler):
    """(x − min)/(max − min), with the minimum and maximum of each column of the fit sample.

    A column that varies in the sample only by rounding becomes x − min. Values beyond the sample's range leave [0, 1],
    or become 0 or 1 with `clip`. Histogram kernels need `clip`, because they refuse negative inputs.
    """

    learned: ClassVar[tuple[str, ...]] = ("low", "width")

    clip: bool = parameter(False, "clip to [0, 1]")

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        low, high = (ends.astype(np.float64) for ends in (sample.X.min(axis=0), sample.X.max(axis=0)))
        return {"low": low, "width": widths(low, high, sample.X.dtype)}

    def scale(self, state: State, X: Floats) -> Floats:
        moved = super().scale(state, X)
        if self.clip:
            np.clip(moved, 0.0, 1.0, out=moved)
        return moved
