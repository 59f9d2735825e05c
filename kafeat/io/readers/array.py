"""Reader and chunks of a two-dimensional array."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
import pyarrow as pa

from kafeat.contract.checks import all_finite, cast_finite
from kafeat.contract.tile import InputRows, TextRows, dense, numbers_of
from kafeat.errors import DataError, InvalidValueError
from kafeat.io.columns.categories import Categories, Vocabulary, spelled
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.dialect import KEEP, UTC
from kafeat.io.columns.fields import Field, indices_of
from kafeat.io.columns.numbers import first_of_rows, spell_problem
from kafeat.io.columns.times import local_seconds
from kafeat.io.readers.base import Chunk, Reader
from kafeat.types import Array, Floats, Mask

Window = Callable[[int, int], Array]


def check_array(location: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse an array that is not a table of numbers."""
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
    """Some rows of an array. `features` are the feature columns, `keep` the passthrough columns by name."""

    block: Array
    features: list[int]
    keep: dict[str, int]

    @cached_property
    def passthrough(self) -> pa.Table | None:
        if not self.keep:
            return None
        native = self.block.dtype.newbyteorder("=")
        arrays = [pa.array(self.block[:, i].astype(native)) for i in self.keep.values()]
        return pa.Table.from_arrays(arrays, names=list(self.keep))

    def decode(self, dtype: np.dtype[Any]) -> tuple[InputRows, bool]:
        plain = self.columns.plain
        texts = () if plain else [j for j, column in enumerate(self.columns.features) if column.text]
        if texts:
            numbers, sound = self._of_numbers.decode(dtype)
            words = [spelled(self._as_it_is(j)) for j in texts]
            return self.columns.beside_texts(numbers_of(numbers), words), sound
        block, coded = self._numbers(), self._coded()
        if not plain and any(column.dialect.timezone not in (KEEP, UTC) for column in self.columns.features):
            block = self._on_clocks(block)
        if block.dtype == dtype and not coded:
            same: Floats = block.view(np.ndarray)
            return same, all_finite(same) or not self._bad(same, coded).any()
        out = np.empty_like(block, dtype, subok=False)
        finite = cast_finite(block, out)
        for j in coded:
            finite &= cast_finite(self.columns.features[j].codes(self._as_it_is(j)), out[:, j])
        return out, finite or not self._bad(out, coded).any()

    def invalid_values(self, X: InputRows) -> Iterator[InvalidValueError]:
        if isinstance(X, TextRows):
            for invalid in self._of_numbers.invalid_values(X.numbers):
                place = X.plain[invalid.column].item() if isinstance(invalid.column, int) else None
                yield InvalidValueError(invalid.row, place, invalid.problem)
            return
        X = dense(X)
        block, coded = self._numbers(), self._coded()
        for row, column in first_of_rows(self._bad(X, coded)):
            known = coded.get(column)
            value = (block[row, column] if known is None else self.block[row, self.features[column]]).item()
            problem = spell_problem(value, None, 0, X.dtype) if known is None else known.problem(value)
            yield InvalidValueError(row, column, problem)

    @property
    def _of_numbers(self) -> Self:
        """The same rows without the columns of texts."""
        pairs = zip(self.features, self.columns.features, strict=True)
        features = [place for place, column in pairs if not column.text]
        return replace(self, columns=self.columns.numbers, features=features)

    def head(self, rows: int) -> Self:
        return replace(self, rows=rows, block=self.block[:rows])

    def _filtered(self, rows: Mask) -> Self:
        return replace(self, block=self.block[rows])

    def cells(self, row: int) -> list[Any]:
        return [self.block[row, column].item() for column in self.features]

    def _numbers(self) -> Array:
        """Return the feature columns as numbers that can be cast."""
        every = self.features == list(range(self.block.shape[1]))
        return self.block if every else self.block[:, self.features]

    def _on_clocks(self, block: Array) -> Array:
        """Return the numbers with instants as what the clocks of their zones show."""
        block = block.astype(np.float64)
        for j, column in enumerate(self.columns.features):
            if column.times:
                block[:, j] = local_seconds(block[:, j], column.dialect.timezone)
        return block

    def _as_it_is(self, column: int) -> pa.Array:
        """Return a feature column in its own type: floats would lose digits of whole numbers and names of booleans."""
        values = self.block[:, self.features[column]]
        return pa.array(values.astype(values.dtype.newbyteorder("=")))

    def _coded(self) -> dict[int, Categories | Vocabulary]:
        """Return the columns that are read as categories."""
        if self.columns.plain:
            return {}
        return {j: c.categories for j, c in enumerate(self.columns.features) if c.categories is not None}

    def _bad(self, X: Floats, coded: Mapping[int, Categories | Vocabulary]) -> Mask:
        """Return a mask of invalid entries. A NaN is valid if missing numbers are accepted."""
        bad = ~np.isfinite(X)
        if self.columns.missing:
            plain = [j for j in range(X.shape[1]) if j not in coded]
            bad[:, plain] = np.isinf(X[:, plain])
        return bad


@lru_cache(maxsize=8)
def _fields(width: int, spelled: str) -> tuple[Field, ...]:
    """Return the fields. Cached: a service that reads a few rows at a time would spend most of its time here."""
    return tuple(Field(f"c{i}", "number", None, spelled) for i in range(width))


class ArrayReader(Reader):
    """A reader of an array (rows, features). `window(start, stop)` returns some of its rows."""

    positional = True

    def __init__(self, location: str, shape: tuple[int, ...], dtype: np.dtype[Any], window: Window) -> None:
        check_array(location, shape, dtype)
        self.location, self._dtype, self._window = location, dtype, window
        self.rows = self._n_rows = shape[0]
        self.fields = _fields(shape[1], str(dtype))

    def _chunks(
        self, columns: Columns, keep: Sequence[str], height: int, *, typed_passthrough: bool, set_aside: bool
    ) -> Iterator[Chunk]:
        features = indices_of(self, (column.name for column in columns.features))
        kept = dict(zip(keep, indices_of(self, keep), strict=True))
        stop = self.first + (self.rows or 0)
        for start in range(self.first, stop, height):
            block = self._window(start, min(start + height, stop))
            if block.dtype.kind == "f" and block.dtype.itemsize > 8:
                block = block.astype(np.float64)
            yield ArrayChunk(self.location, start, len(block), columns, block, features, kept)

    def passthrough_schema(self, keep: Sequence[str], typed: bool = True) -> pa.Schema:
        kind = pa.from_numpy_dtype(self._dtype.newbyteorder("="))
        return pa.schema([(self.fields[i].name, kind) for i in indices_of(self, keep)])
