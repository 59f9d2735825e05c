"""Scale every column to median 0 and interquartile range 1, so that outliers do not matter."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from kafeat.contract.step import Sample
from kafeat.scalers._columns import AffineScaler, widths
from kafeat.types import State


class Robust(AffineScaler):
    """(x − m)/(q₃ − q₁), with the median m and the quartiles q₁, q₃ of each column of the fit sample.

    Outliers move neither the centre nor the scale. A column whose quartiles differ only by rounding is only centred.
    """

    learned: ClassVar[tuple[str, ...]] = ("centre", "width")

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        low, centre, high = np.quantile(sample.X, (0.25, 0.5, 0.75), axis=0).astype(np.float64)
        return {"centre": centre, "width": widths(low, high, sample.X.dtype)}
