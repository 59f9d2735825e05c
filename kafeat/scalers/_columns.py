"""Base classes of scalers that treat every column separately, or replace some columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from kafeat.contract.name_patterns import ColumnNames
from kafeat.contract.step import Names, Scaler
from kafeat.contract.traits import ColumnTraits, NumberTraits, Traits
from kafeat.types import Array, Floats, Shapes, State


class ColumnScaler(Scaler):
    """A scaler that treats each column by itself. It may learn a few numbers for each column."""

    learned: ClassVar[tuple[str, ...]] = ()
    """The names of the arrays in the state. Each array has one number for each column."""

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        return dict.fromkeys(self.learned, (n_features_in,))


class AffineScaler(ColumnScaler):
    """(x − a)/b, where `learned` are the names of a and b in the state."""

    always: ClassVar[Traits] = Traits(
        columns=ColumnTraits(apart=True), numbers=NumberTraits(spreads="ignores")
    )

    def scale(self, state: State, X: Floats) -> Floats:
        start, unit = (state[name] for name in self.learned)
        moved: Floats = X - start
        moved /= unit
        return moved


class ColumnCoder(Scaler):
    """A scaler that replaces named input columns by numbers made from them.

    Outputs: first every other column, unchanged and in input order, then those of each named column.
    """

    always: ClassVar[Traits] = Traits(numbers=NumberTraits(missing="pass", spreads="keeps"))

    columns: ColumnNames

    @abstractmethod
    def widths(self, state: State) -> Sequence[int]:
        """Return the number of outputs of each named column."""

    def scale(self, state: State, X: Floats) -> Floats:
        out = np.empty((len(X), self.n_features_out(state, X.shape[1])), dtype=X.dtype)
        self.bind(state, X.shape[1], X.dtype).apply(np.ascontiguousarray(X), out, ())
        return out

    def check_state(self, state: State, n_features_in: int) -> None:
        if len(np.unique(state["columns"])) != len(state["columns"]):
            raise ValueError("state.columns: expected every column once")

    def names_out(self, names: Names, state: State) -> Names:
        return (*(names[j] for j in others(state, len(names))), *[None] * sum(self.widths(state)))

    def sources(self, state: State, n_features_in: int) -> Array:
        coded = np.repeat(state["columns"], self.widths(state))
        return np.concatenate([others(state, n_features_in), coded])

    def n_features_out(self, state: State, n_features_in: int) -> int:
        return len(others(state, n_features_in)) + sum(self.widths(state))


def others(state: State, n_features_in: int) -> Array:
    """Return the positions of the columns that are neither in the parameter `columns` nor the group column."""
    return np.setdiff1d(np.arange(n_features_in), np.append(state["columns"], state.get("group", ())))


def widths(low: Floats, high: Floats, dtype: np.dtype[Any]) -> Floats:
    """Return high − low (d,), or 1 for columns where high and low differ only by rounding."""
    width = high - low
    constant = width <= 10.0 * np.finfo(dtype).eps * np.maximum(np.abs(low), np.abs(high))
    return np.where(constant, 1.0, width)
