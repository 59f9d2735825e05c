"""A column of categories as columns of zeros and ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from kafeat.contract.checks import check_indices
from kafeat.contract.describe import Described, near
from kafeat.contract.step import Sample, Scaler, Transform, parameter
from kafeat.errors import DataError, quoted
from kafeat.types import Array, Floats, Shape, State

_MOST_CATEGORIES = 10_000


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


_Name = Annotated[str, Field(min_length=1), Described("a name (text, not empty)", "names")]


class OneHot(Scaler):
    """e_{x_j} in the place of x_j = a category: one output per category of each column named, 1 where x_j is it.

    The columns may hold text, categories (dictionaries), numbers, booleans or dates, and need not be numeric: naming
    them here makes them features. Their categories are all those in the rows that the fit has read, at most 10,000 a
    column. A value is one category in every format: 7, 7.0 and "7" are, and so are true, "True" and 1 to a map of
    booleans.

    Outputs: first every column that is not named, unchanged and in the order of the input; then, in the order of
    `columns`, each named column's categories: numbers by size if all of them are, else texts by code point.
    It reads input columns by name, so only `impute` may come before it.
    """

    missing: ClassVar[Literal["refuse", "pass", "fill"]] = "pass"

    columns: Annotated[tuple[_Name, ...], BeforeValidator(_as_tuple)] = parameter(
        (), "the columns to code, by name"
    )
    unknown: Literal["error", "ignore"] = parameter(
        "error", "refuse a missing category and one that the fit has not seen, or make it all zeros"
    )

    @property
    def coded_columns(self) -> Mapping[str, bool]:
        return dict.fromkeys(self.columns, self.unknown == "ignore")

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        names = sample.names
        if names is None:
            if self.columns:
                raise DataError(
                    "one_hot: expected to come first, or after impute, as it reads input columns by name"
                )
            names = ()
        places = []
        for name in dict.fromkeys(self.columns):
            if name not in names:
                meant = near(name, names)
                hint = "" if meant is None else f" (did you mean {quoted(meant)}?)"
                raise DataError(f"one_hot: columns: expected names of features, got {quoted(name)}{hint}")
            places.append(names.index(name))
        columns = np.array(places, dtype=np.int64)
        return {"columns": columns, "sizes": np.array([_size(sample, j) for j in places], dtype=np.int64)}

    def state_shapes(self, state: State, n_features_in: int) -> Mapping[str, Shape]:
        k = len(dict.fromkeys(self.columns))
        return {"columns": (k,), "sizes": (k,)}

    @property
    def state_dtypes(self) -> Mapping[str, str]:
        return {"columns": "int64", "sizes": "int64"}

    def check_state(self, state: State, n_features_in: int) -> None:
        check_indices("state.columns", state["columns"], n_features_in)
        check_indices("state.sizes", state["sizes"], _MOST_CATEGORIES + 1)
        if len(np.unique(state["columns"])) != len(state["columns"]):
            raise ValueError("state.columns: expected every column once")

    def n_features_out(self, state: State, n_features_in: int) -> int:
        return n_features_in - len(state["columns"]) + int(state["sizes"].sum())

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return _OneHotTransform(self, state, n_features_in)

    def scale(self, state: State, X: Floats) -> Floats:
        out = np.empty((len(X), self.n_features_out(state, X.shape[1])), dtype=X.dtype)
        _OneHotTransform(self, state, X.shape[1]).apply(X, out, ())
        return out


def _size(sample: Sample, column: int) -> int:
    if sample.n_categories is not None:
        return sample.n_categories[column]
    return int(sample.X[:, column].max(initial=-1.0)) + 1


class _OneHotTransform(Transform):
    """Zeros, and a one where the code points to; a code outside of the vocabulary is nobody's."""

    def __init__(self, step: OneHot, state: State, n_features: int) -> None:
        self._columns: Array = state["columns"]
        self._sizes: Array = state["sizes"]
        self._others = np.setdiff1d(np.arange(n_features), self._columns)
        self.n_features_in = n_features
        self.n_features_out = step.n_features_out(state, n_features)

    def apply(self, X: Floats, out: Floats, scratch: tuple[()]) -> None:
        first = len(self._others)
        out[:, :first] = X[:, self._others]
        out[:, first:] = 0.0
        for column, size in zip(self._columns, self._sizes, strict=True):
            codes = np.rint(X[:, column])
            rows = np.flatnonzero((codes >= 0.0) & (codes < size))
            out[rows, first + codes[rows].astype(np.intp)] = 1.0
            first += int(size)
