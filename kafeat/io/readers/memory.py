"""Readers of data in memory: arrays, and tables of any library that supports Arrow."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from kafeat.contract.tile import InputRows, dense
from kafeat.errors import DataError, InvalidValueError, UsageError, first_line
from kafeat.io.columns.fields import Field, listed
from kafeat.io.readers.array import ArrayReader
from kafeat.io.readers.base import Chunk, Reader
from kafeat.io.readers.table import PEEK, ArrowReader, cut
from kafeat.types import Array, Mask

DIGEST_ROWS = 1 << 16
_REFUSED = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""Exceptions that libraries raise for a column that Arrow cannot hold."""


def reader_of(data: object) -> Reader:
    """Return a reader of an array (rows, features), a sparse matrix of SciPy, or a table that supports Arrow.

    An array is anything that NumPy can convert, or a column of lists in Arrow. A reader is returned unchanged.
    """
    if isinstance(data, Reader):
        return data
    if isinstance(data, pa.RecordBatch):
        return TableReader(pa.Table.from_batches([data]))
    if isinstance(data, pa.Table):
        return TableReader(data)
    if isinstance(data, np.ndarray):
        return MemoryReader(array_of(data, "<array>"))
    if hasattr(data, "tocsr"):
        from kafeat.io.readers.sparse_matrix import MemoryCsr

        return MemoryCsr(data)
    if _supports_arrow(data):
        data = _from_arrow(data)
        if isinstance(data, pa.Table):
            return TableReader(data)
    array = array_of(data, "<array>", "array or a table")
    # An array of objects has one object, such as a list, for each row.
    return MemoryReader(
        array_of(array.tolist(), "<array>") if array.dtype == object and array.ndim == 1 else array
    )


def array_of(data: object, place: str, what: str = "array") -> Array:
    """Convert nested lists, or an array of any library, to a NumPy array. Masked values become NaN."""
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        numbers = data.dtype.kind in "biuf"
        data = np.ma.filled(
            data.astype(np.result_type(data.dtype, np.float16) if numbers else object), np.nan
        )
    if not hasattr(data, "__array__") and _supports_arrow(data):
        data = _values(data)
    try:
        array = np.asarray(data)
    except MemoryError:
        raise
    except Exception as error:  # errors of other libraries can be of any class
        if isinstance(data, list | tuple) and isinstance(error, ValueError):
            raise DataError(
                f"{place}: expected rows of one length, got lists of different lengths"
            ) from error
        got = f"{type(data).__name__}, which NumPy cannot read: {first_line(error)}"
        raise UsageError(f"{place}: expected an {what}, got {got}") from error
    if not array.ndim:
        advice = (
            "; kafeat.transform and kafeat.predict read files" if isinstance(data, str | os.PathLike) else ""
        )
        raise UsageError(f"{place}: expected an {what}, got {type(data).__name__}{advice}")
    return array


def _from_arrow(data: object) -> pa.Table | pa.Array | pa.ChunkedArray:
    """Return an object that supports Arrow as a table, or as an array if the object is a single column."""
    try:
        return pa.table(data)
    except _REFUSED as error:
        try:
            values = _values(data)
        except _REFUSED:
            problem = "; ".join(map(str, error.args))
            names = [name for name in getattr(data, "columns", ()) if not _is_readable(data, name)]
            raise DataError(
                f"<table>: expected columns of numbers, text or times, got: {problem}"
                f"{' in ' + listed(list(map(str, names))) if names else ''}; convert the column, or leave it out"
            ) from error
    return pa.Table.from_struct_array(values) if pa.types.is_struct(values.type) else values


def _supports_arrow(data: object) -> bool:
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def _values(data: object) -> pa.Array | pa.ChunkedArray:
    return pa.chunked_array(data) if hasattr(data, "__arrow_c_stream__") else pa.array(data)


def _is_readable(data: Any, name: object) -> bool:
    """Return true if a column of a data frame can be read. Arrow's errors do not always name the column."""
    try:
        pa.table(data[[name]])
    except (*_REFUSED, KeyError):
        return False
    return True


def table_of(columns: Mapping[str, Array]) -> pa.Table:
    """Return a table with these arrays (n,) as columns."""
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def table_of_rows(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return a table of rows, with null if a row lacks a column. A column with values of several types becomes text."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: _column([row.get(name) for row in rows]) for name in names})


def _column(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values])


@dataclass(eq=False)
class DecodedChunk(Chunk):
    """A chunk of rows that are already decoded, with categories as codes."""

    X: InputRows

    def decode(self, dtype: np.dtype[Any]) -> tuple[InputRows, bool]:
        del dtype  # the map casts the rows when it runs
        return self.X, True

    def invalid_values(self, X: InputRows) -> Iterator[InvalidValueError]:
        return iter(())

    def _filtered(self, rows: Mask) -> Self:
        return replace(self, X=self.X[rows])

    def cells(self, row: int) -> list[Any]:
        return list(dense(self.X[row : row + 1])[0])

    _passthrough = None


class MemoryReader(ArrayReader):
    """A reader of an array, which must not change while it is read."""

    in_memory = True

    def __init__(self, array: Array, location: str = "<array>") -> None:
        super().__init__(location, array.shape, array.dtype, lambda start, stop: array[start:stop])
        self._array = array

    def digest(self) -> str:
        seen = hashlib.sha256(f"{self._array.dtype.str} {self._array.shape} ".encode())
        for start in range(0, len(self._array), DIGEST_ROWS):
            seen.update(np.ascontiguousarray(self._array[start : start + DIGEST_ROWS]).data)
        return seen.hexdigest()


class NamedReader(MemoryReader):
    """A reader of an array whose columns have names."""

    positional = False

    def __init__(self, array: Array, names: Sequence[str]) -> None:
        super().__init__(array)
        self.fields = tuple(Field(name, "number", None, str(array.dtype)) for name in names)


class TableReader(ArrowReader):
    """A reader of a table in memory."""

    in_memory = True

    def __init__(self, table: pa.Table, location: str = "<table>") -> None:
        self.location, self.schema, self.rows, self._table = location, table.schema, table.num_rows, table
        self._describe()

    def _peek(self, index: int) -> pa.ChunkedArray:
        return self._table.column(index).slice(0, PEEK)

    def pieces(self, indices: list[int], height: int) -> Iterator[pa.RecordBatch]:
        yield from self._table.select(indices).to_batches()

    def digest(self) -> str:
        """Return the SHA-256 of the table as an Arrow stream. It does not depend on how the table is chunked."""
        seen = _Hash()
        with pa.ipc.new_stream(pa.PythonFile(seen, mode="w"), self.schema) as writer:
            for _, piece in cut(self._table.to_batches(), DIGEST_ROWS):
                writer.write_table(piece.combine_chunks())
        return seen.digest.hexdigest()


class BatchReader(ArrowReader):
    """A reader of record batches that are read only once. It does not look ahead, so list widths stay unknown."""

    def __init__(self, location: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch] = ()) -> None:
        self.location, self.schema, self._given = location, schema, batches
        self._describe()

    def _peek(self, index: int) -> tuple[()]:
        return ()

    def pieces(self, indices: list[int], height: int) -> Iterator[pa.RecordBatch]:
        for batch in self._given:
            yield batch.select(indices)


class _Hash(io.RawIOBase):
    """A file that keeps only the hash of its bytes."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return len(data)
