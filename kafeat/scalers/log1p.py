"""Logarithms of counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from kafeat.contract.step import Sample, Scaler, Traits
from kafeat.errors import InvalidValueError
from kafeat.types import Floats, Shape, State


class Log1p(Scaler):
    """z = log(1 + x), exact also where x is tiny: 0 stays 0, and counts of any size get comparable.

    An entry of −1 or less has no image and is refused.
    """

    always: ClassVar[Traits] = Traits(columnwise=True, missing="pass", refuses_negative=True, spreads="keeps")

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        _refuse(sample.X)
        return {}

    def state_shapes(self, state: State, n_features_in: int) -> Mapping[str, Shape]:
        return {}

    def scale(self, state: State, X: Floats) -> Floats:
        _refuse(X)
        result: Floats = np.log1p(X)
        return result


def _refuse(X: Floats) -> None:
    bad = X <= -1.0
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise InvalidValueError(row, column, f"expected a value above -1, got {X[row, column]:g}")
