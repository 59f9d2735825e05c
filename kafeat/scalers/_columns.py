"""The common bases of scalers that take every column by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from kafeat.contract.step import Scaler, Traits
from kafeat.types import Floats, Shape, State


class ColumnScaler(Scaler):
    """A scaler that learns a few numbers of each column."""

    learned: ClassVar[tuple[str, ...]] = ()
    """The names of the arrays in the state, with a number for each column."""

    def state_shapes(self, state: State, n_features_in: int) -> Mapping[str, Shape]:
        return dict.fromkeys(self.learned, (n_features_in,))


class AffineScaler(ColumnScaler):
    """(x − a)/b; `learned` names a and b."""

    always: ClassVar[Traits] = Traits(columnwise=True, spreads="evens")

    def scale(self, state: State, X: Floats) -> Floats:
        start, unit = (state[name] for name in self.learned)
        moved: Floats = X - start
        moved /= unit
        return moved

    def inverse(self, state: State, Z: Floats, n_features_in: int) -> Floats | None:
        start, unit = (state[name] for name in self.learned)
        return start + Z * unit


def widths(low: Floats, high: Floats, dtype: np.dtype[Any]) -> Floats:
    """Return high − low (d,), or 1 for columns in which they differ by no more than rounding in `dtype`."""
    width = high - low
    constant = width <= 10.0 * np.finfo(dtype).eps * np.maximum(np.abs(low), np.abs(high))
    return np.where(constant, 1.0, width)
