"""Reader and chunks of a two-dimensional array."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
import pyarrow as pa

from kafeat.contract.checks import all_finite, cast_finite
from kafeat.contract.tile import InputRows, dense
from kafeat.errors import DataError, InvalidValueError
from kafeat.io.columns.fields import Field, indices_of
from kafeat.io.columns.numbers import first_of_rows, spell_problem
from kafeat.io.readers.base import Chunk, Reader, Wanted
from kafeat.io.readers.table import TableChunk
from kafeat.types import Array, Floats, Mask

Window = Callable[[int, int], Array]


def check_array(location: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise DataError if an array does not have two dimensions, or does not contain numbers."""
    if dtype.kind not in "fiub" or dtype.shape:
        raise DataError(f"{location}: expected an array of numbers, got dtype {dtype}")
    if len(shape) != 2:
        advice = "; reshape it to (rows, 1) for one feature or (1, features) for one row"
        raise DataError(
            f"{location}: expected two dimensions (rows, features), got shape {shape}"
            f"{advice if len(shape) == 1 else ''}"
        )


@dataclass(eq=False)
class ArrayChunk(Chunk):
    """Some rows of an array, with columns of plain numbers. `keep` are the passthrough columns by name."""

    block: Array
    features: list[int]
    keep: dict[str, int]

    @cached_property
    def _passthrough(self) -> pa.Table | None:
        return _table(self.block, list(self.keep.values()), list(self.keep)) if self.keep else None

    def decode(self, dtype: np.dtype[Any]) -> tuple[InputRows, bool]:
        block = self._numbers()
        if block.dtype == dtype:
            same: Floats = block.view(np.ndarray)
            return same, all_finite(same) or not self._bad(same).any()
        out = np.empty_like(block, dtype, subok=False)
        return out, cast_finite(block, out) or not self._bad(out).any()

    def invalid_values(self, X: InputRows) -> Iterator[InvalidValueError]:
        X, block = dense(X), self._numbers()
        for row, column in first_of_rows(self._bad(X)):
            problem = spell_problem(block[row, column].item(), None, 0, X.dtype)
            yield InvalidValueError(row, column, problem)

    def _filtered(self, rows: Mask) -> Self:
        return replace(self, block=self.block[rows])

    def cells(self, row: int) -> list[Any]:
        return [self.block[row, column].item() for column in self.features]

    def _numbers(self) -> Array:
        """Return the feature columns of the block (rows, n_features), without a copy if every column is a feature."""
        every = self.features == list(range(self.block.shape[1]))
        return self.block if every else self.block[:, self.features]

    def _bad(self, X: Floats) -> Mask:
        """Return a mask of the invalid entries: infinities, and also NaN if the map does not accept missing numbers."""
        return np.isinf(X) if self.columns.missing else ~np.isfinite(X)


def _table(block: Array, places: Sequence[int], names: Sequence[str]) -> pa.Table:
    """Return columns as a table in the array's type: floats would change large integers, and would turn True into 1."""
    native = block.dtype.newbyteorder("=")
    return pa.Table.from_arrays([pa.array(block[:, i].astype(native)) for i in places], names=list(names))


@lru_cache(maxsize=8)
def _fields(width: int, spelled: str) -> tuple[Field, ...]:
    """Return the fields c0, c1, ... Cached, because making them takes longer than reading a few rows."""
    return tuple(Field(f"c{i}", "number", None, spelled) for i in range(width))


class ArrayReader(Reader):
    """A reader of an array (rows, features). `window(start, stop)` returns some of its rows."""

    positional = True

    def __init__(self, location: str, shape: tuple[int, ...], dtype: np.dtype[Any], window: Window) -> None:
        check_array(location, shape, dtype)
        self.location, self._dtype, self._window = location, dtype, window
        self.rows = self._n_rows = shape[0]
        self.fields = _fields(shape[1], str(dtype))

    def _chunks(self, wanted: Wanted) -> Iterator[Chunk]:
        columns, keep, height = wanted[:3]
        features = indices_of(self, wanted.names)
        kept = dict(zip(keep, indices_of(self, keep), strict=True))
        stop = self.first + (self.rows or 0)
        for start in range(self.first, stop, height):
            block = self._window(start, min(start + height, stop))
            if block.dtype.kind == "f" and block.dtype.itemsize > 8:
                block = block.astype(np.float64)
            if columns.plain:
                yield ArrayChunk(self.location, start, len(block), columns, block, features, kept)
                continue
            table = _table(block, [*features, *kept.values()], [*map(str, features), *keep])
            take = (lambda table, _start: table.select(list(keep))) if keep else None
            yield TableChunk(self.location, start, len(block), columns, table, take)

    def passthrough_schema(self, keep: Sequence[str], typed: bool = True) -> pa.Schema:
        kind = pa.from_numpy_dtype(self._dtype.newbyteorder("="))
        return pa.schema([(self.fields[i].name, kind) for i in indices_of(self, keep)])
