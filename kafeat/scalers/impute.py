"""Missing numbers: filled by the mean or the median of the column, or by a constant."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from kafeat.contract.step import Names, Sample, parameter
from kafeat.contract.traits import ColumnTraits, NumberTraits, Traits
from kafeat.errors import InvalidValueError
from kafeat.scalers._columns import ColumnScaler
from kafeat.types import Floats, State


class Impute(ColumnScaler):
    """z = x or, where x is missing, the mean or median of its column in the fit sample, or a constant.

    A value is missing if the file has a null, an empty field, or NaN. If `impute` is the first step, the reader accepts
    missing values, but infinities and words are still errors. A column without any number in the sample is also an
    error.
    """

    always: ClassVar[Traits] = Traits(
        columns=ColumnTraits(apart=True), numbers=NumberTraits(missing="fill", spreads="keeps")
    )
    learned: ClassVar[tuple[str, ...]] = ("fill",)

    strategy: Literal["mean", "median", "constant"] = parameter("mean", "what a missing number becomes")
    value: float = parameter(0.0, "the constant of strategy constant")

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        if self.strategy == "constant":
            return {"fill": np.full(sample.X.shape[1], self.value)}
        middle = np.mean if self.strategy == "mean" else np.median
        fill = np.empty(sample.X.shape[1])
        for j, column in enumerate(sample.X.T):
            seen = column[~np.isnan(column)].astype(np.float64)
            if not len(seen):
                raise InvalidValueError(
                    0, j, "expected a number in some row of the sample, got none: exclude the column, "
                    "or use strategy: constant"
                )  # fmt: skip
            fill[j] = middle(seen)
        return {"fill": fill}

    def names_out(self, names: Names, state: State) -> Names:
        return names

    def scale(self, state: State, X: Floats) -> Floats:
        return np.where(np.isnan(X), state["fill"], X)
