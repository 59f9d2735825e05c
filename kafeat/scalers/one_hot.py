"""Categories of few values as columns of zeros and ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from kafeat.contract.checks import check_indices
from kafeat.contract.coding import MOST_CATEGORIES, Coding
from kafeat.contract.name_patterns import ColumnNames, places_of
from kafeat.contract.step import PositiveInt, Sample, Transform, parameter
from kafeat.contract.traits import ColumnTraits, Traits
from kafeat.scalers._columns import ColumnCoder, others
from kafeat.types import Array, ArrayOf, Floats, Shapes, State


class OneHot(ColumnCoder):
    """e_{x_j}, one output per category c of each named column: 1 where x_j = c, and 0 elsewhere.

    The columns may hold text, categories (dictionaries), numbers, booleans or dates: naming them here makes them
    features. Their categories are all those in the training rows, at most 10,000 per column.

    Outputs: the columns that are not named, then the categories of each named column. Categories are in numeric order
    if all are numbers, and in order of code points if not. With `min_frequency`, categories that occur in fewer rows of
    the fit sample share one output, the last of their column. If there are more than 10,000 categories, the map then
    keeps only the frequent ones. Any other text counts as rare, even a new text. Only steps that keep column names may
    come before it.
    """

    columns: ColumnNames = parameter((), "the columns to code, by name or pattern")
    unknown: Literal["error", "ignore"] = parameter(
        "error", "refuse a missing category and one that the fit has not seen, or make it all zeros"
    )
    min_frequency: PositiveInt | Annotated[float, Field(gt=0, lt=1)] | None = parameter(
        None,
        "the number, or share, of rows of the fit sample below which categories share an output; null: no limit",
    )

    @property
    def traits(self) -> Traits:
        return replace(super().traits, columns=ColumnTraits(coded=dict.fromkeys(self.columns, self._coding)))

    @property
    def _coding(self) -> Coding:
        return Coding(self.unknown == "ignore", self.min_frequency)

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        columns = places_of(self.kind, self.columns, sample.names)
        sizes = np.array([size_of(sample, j) for j in columns], dtype=np.int64)
        state = {"columns": columns, "sizes": sizes}
        if self.min_frequency is None:
            return state
        outputs = [self._outputs(sample.X[:, j], size) for j, size in zip(columns, sizes, strict=True)]
        return {**state, "outputs": np.concatenate([*outputs, np.empty(0, dtype=np.int64)])}

    def _outputs(self, codes: Floats, size: int) -> Array:
        """Return the output of each category of a column, counted from 0. Rare categories share the last output."""
        counts = np.bincount(np.rint(codes[codes >= 0.0]).astype(np.intp), minlength=size)
        rare = counts < self._coding.least_rows(len(codes))
        return np.where(rare, np.sum(~rare), np.cumsum(~rare) - 1)

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        k = np.size(state.get("columns", ()))
        shapes = {
            "columns": ArrayOf((k,), "int64", below=n_features_in),
            "sizes": ArrayOf((k,), "int64", below=MOST_CATEGORIES + 1),
        }
        if self.min_frequency is not None:
            shapes["outputs"] = ArrayOf((int(np.sum(state.get("sizes", 0))),), "int64")
        return shapes

    def check_state(self, state: State, n_features_in: int) -> None:
        super().check_state(state, n_features_in)
        for outputs in outputs_of(state):
            check_indices("state.outputs", outputs, max(1, len(outputs)))

    def widths(self, state: State) -> list[int]:
        return [width_of(outputs) for outputs in outputs_of(state)]

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return _OneHotTransform(self, state, n_features_in)


def size_of(sample: Sample, column: int) -> int:
    """Return the number of categories in a column of the sample."""
    if sample.n_categories is not None:
        return sample.n_categories[column]
    return int(sample.X[:, column].max(initial=-1.0)) + 1


def outputs_of(state: State) -> list[Array]:
    """Return an array per coded column. Entry c is the index of the output for category c, such as [0, 1, 1]."""
    if "outputs" not in state:
        return [np.arange(size) for size in state["sizes"]]
    return np.split(state["outputs"], np.cumsum(state["sizes"]))[:-1]


def width_of(outputs: Array) -> int:
    """Return the number of outputs of a column, given the index of the output of each category."""
    return int(outputs.max(initial=-1)) + 1


class _OneHotTransform(Transform):
    """A transform to zeros, with a one at the output of the code. Unknown codes give only zeros."""

    gives_sparse = True

    def __init__(self, step: OneHot, state: State, n_features: int) -> None:
        self._columns: Array = state["columns"]
        self._outputs = outputs_of(state)
        self._others = others(state, n_features)
        self.n_features_in = n_features
        self.n_features_out = step.n_features_out(state, n_features)

    def apply(self, X: Floats, out: Floats, scratch: tuple[()]) -> None:
        first = len(self._others)
        out[:, :first] = X[:, self._others]
        out[:, first:] = 0.0
        for column, outputs in zip(self._columns, self._outputs, strict=True):
            codes = np.rint(X[:, column])
            rows = np.flatnonzero((codes >= 0.0) & (codes < len(outputs)))
            out[rows, first + outputs[codes[rows].astype(np.intp)]] = 1.0
            first += width_of(outputs)
