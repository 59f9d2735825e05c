"""Logarithms of counts."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from kafeat.contract.step import Sample, Traits
from kafeat.errors import InvalidValueError
from kafeat.scalers._columns import ColumnScaler
from kafeat.types import Floats, State


class Log1p(ColumnScaler):
    """z = log(1 + x), exact also where x is tiny: 0 stays 0, and counts of any size get comparable.

    An entry of −1 or less has no image and is refused.
    """

    always: ClassVar[Traits] = Traits(columnwise=True, missing="pass", refuses_negative=True, spreads="keeps")

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        _refuse(sample.X)
        return {}

    def scale(self, state: State, X: Floats) -> Floats:
        _refuse(X)
        return np.log1p(X)


def _refuse(X: Floats) -> None:
    bad = X <= -1.0
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise InvalidValueError(row, column, f"expected a value above -1, got {X[row, column]:g}")
