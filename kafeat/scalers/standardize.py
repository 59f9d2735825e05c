"""Scale every column to mean 0 and variance 1: the first step for most maps."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from kafeat.contract.step import Sample
from kafeat.maths.kernel_error import power_of_two
from kafeat.scalers._columns import AffineScaler
from kafeat.types import State


class Standardize(AffineScaler):
    """(x − μ)/σ, with mean μ and standard deviation σ of each column of the fit sample.

    A column that varies in the sample only by rounding is only centred. Both numbers are computed in float64.
    """

    learned: ClassVar[tuple[str, ...]] = ("mean", "scale")

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        X = sample.X
        mean, scale = (np.empty(X.shape[1]) for _ in range(2))
        for j in range(X.shape[1]):
            # Subtract the first value and then the mean. Equal numbers give exactly 0, however many they are, and
            # nothing cancels. Work by column, so that the sample is not copied.
            moved = X[:, j].astype(np.float64)
            first = moved[0]
            moved -= first
            middle = moved.mean()
            mean[j] = first + middle
            moved -= middle
            unit = power_of_two(np.abs(moved).max())  # squares of the numbers might overflow or vanish
            scale[j] = unit * np.sqrt(np.mean((moved / unit) ** 2))
        constant = scale <= 10.0 * np.finfo(X.dtype).eps * np.abs(mean)
        return {"mean": mean, "scale": np.where(constant, 1.0, scale)}
