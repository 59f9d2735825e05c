"""Columns of zeros and ones that mark missing numbers."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from kafeat.contract.step import Names, Sample, Scaler, parameter
from kafeat.contract.traits import NumberTraits, Traits
from kafeat.types import Array, ArrayOf, Floats, Shapes, State


class MissingIndicator(Scaler):
    """[x, m], with m_j = 1 where x_j is missing, and 0 elsewhere.

    All columns stay as they are, and the indicators follow, in the order of their columns. Missing numbers stay
    missing, so `impute` must come later.

    With `columns: missing`, columns with a missing number in the fit sample have an indicator. With `all`, every column
    has one. Categories have none: `one_hot` with `unknown: ignore` turns a missing category into zeros.
    """

    always: ClassVar[Traits] = Traits(numbers=NumberTraits(missing="pass", spreads="keeps"))

    columns: Literal["missing", "all"] = parameter(
        "missing", "the columns with an indicator: those with a missing number in the fit sample, or all"
    )

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        marked = (
            np.isnan(sample.X).any(axis=0) if self.columns == "missing" else np.ones(sample.X.shape[1], bool)
        )
        if sample.n_categories is not None:
            marked = marked & (np.array(sample.n_categories) == 0)
        return {"columns": np.flatnonzero(marked)}

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        return {"columns": ArrayOf((np.size(state.get("columns", ())),), "int64", below=n_features_in)}

    def check_state(self, state: State, n_features_in: int) -> None:
        if np.any(np.diff(state["columns"]) <= 0):
            raise ValueError("state.columns: expected ascending positions")

    def names_out(self, names: Names, state: State) -> Names:
        return (*names, *[None] * len(state["columns"]))

    def sources(self, state: State, n_features_in: int) -> Array:
        return np.concatenate([np.arange(n_features_in), state["columns"]])

    def n_features_out(self, state: State, n_features_in: int) -> int:
        return n_features_in + len(state["columns"])

    def scale(self, state: State, X: Floats) -> Floats:
        return np.hstack([X, np.isnan(X[:, state["columns"]]).astype(X.dtype)])
