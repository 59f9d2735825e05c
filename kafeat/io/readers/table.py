"""Readers and chunks of Arrow tables, cut without copies from the record batches of a format."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from kafeat.contract.checks import cast_finite
from kafeat.contract.tile import InputRows, numbers_of
from kafeat.errors import DataError, InvalidValueError
from kafeat.io.columns.categories import spelled
from kafeat.io.columns.columns import Column
from kafeat.io.columns.dialect import Dialect
from kafeat.io.columns.fields import ANYWHERE, Cells, Field, Table, indices_of
from kafeat.io.columns.numbers import (
    field_from,
    first_of_rows,
    is_list,
    lists_to_numbers,
    refused,
    spell_problem,
    storage_of,
    to_numbers,
)
from kafeat.io.columns.time_forms import spell_time_problem
from kafeat.io.columns.times import to_seconds
from kafeat.io.data_set import Keys
from kafeat.io.readers.base import Chunk, Reader, Wanted
from kafeat.io.storage.location import parse_json
from kafeat.types import Array, Floats, Mask

TakePassthrough = Callable[[pa.Table, int], pa.Table]
Broken = dict[int, tuple[str, str]]
"""The problem and the text of rows that break the format, by row number in the file, from 0."""


def cut(
    pieces: Iterable[pa.RecordBatch | None], height: int, start: int = 0
) -> Iterator[tuple[int, pa.Table]]:
    """Yield tables of `height` rows (the last may be shorter), each with the number of its first row.

    At a pause of the input, `pieces` has None. The rows so far (perhaps none) then become a shorter table, and the next
    table has the rest of the `height` rows.
    """
    waiting: list[pa.RecordBatch] = []
    table, rows, above = None, 0, 0
    for piece in pieces:
        if piece is not None and piece.num_rows:
            waiting.append(piece)
            rows += piece.num_rows
        if piece is not None and above + rows < height:
            continue
        if waiting:
            table = pa.Table.from_batches(waiting)
        if table is None:
            continue
        first = 0
        while rows - first >= height - above:
            yield start + first, table.slice(first, height - above)
            first, above = first + height - above, 0
        if piece is None:
            yield start + first, table.slice(first)
            first, above = rows, above + rows - first
        start, rows, table = start + first, rows - first, table.slice(first)
        waiting = table.to_batches() if rows else []
    if rows:
        yield start, pa.Table.from_batches(waiting)


@dataclass(eq=False)
class TableChunk(Chunk):
    """A chunk of an Arrow table. In `table`, the feature columns come first, and passthrough columns follow."""

    table: pa.Table
    take_passthrough: TakePassthrough | None
    broken: Broken = field(default_factory=dict)
    source: Table = field(default=ANYWHERE.table, repr=False)
    """The reader, whose first rows are the basis of advice in messages. An empty table if the format is not text."""

    @cached_property
    def _passthrough(self) -> pa.Table | None:
        return None if self.take_passthrough is None else self.take_passthrough(self.table, self.first_row)

    def decode(self, dtype: np.dtype[Any]) -> tuple[InputRows, bool]:
        # The order that needs no transposition: Arrow stores lists row by row, and numbers column by column.
        lists = len(self.columns.features) == 1 and self.columns.features[0].width is not None
        out = np.empty((self.rows, self.columns.numbers.n_features), dtype, order="C" if lists else "F")
        finite = True
        for index, column, place in self._numbers():
            finite &= self._read(index, column, out[:, place])
        return self.columns.beside_texts(out, self._texts()), finite and not self._broken_rows()

    def _numbers(self) -> Iterator[tuple[int, Column, slice]]:
        """Yield, for each column that is not text, its index, the column, and its slice among the numeric features."""
        indices = [index for index, column in enumerate(self.columns.features) if not column.text]
        numbers = self.columns.numbers
        return zip(indices, numbers.features, numbers.places, strict=True)

    def _texts(self) -> list[Array]:
        indices = [index for index, column in enumerate(self.columns.features) if column.text]
        none = np.empty(0, object)
        return [np.concatenate([none, *(spelled(piece) for piece, _ in self._pieces(i))]) for i in indices]

    def _broken_rows(self) -> list[int]:
        return [row for row in range(self.rows if self.broken else 0) if self.row_number(row) in self.broken]

    def _read(self, index: int, column: Column, out: Floats) -> bool:
        """Decode a column. Return false at the first piece with an invalid entry. `out` is then only partly filled."""
        return all(
            _decode(column, piece, out[rows]) or not self._bad(column, piece, out[rows]).any()
            for piece, rows in self._pieces(index)
        )

    def _pieces(self, index: int) -> Iterator[tuple[pa.Array, slice]]:
        row = 0
        for piece in self.table.column(index).chunks:
            stored = piece.storage if isinstance(piece, pa.ExtensionArray) else piece
            yield stored, slice(row, row + len(piece))
            row += len(piece)

    def _bad(self, column: Column, piece: pa.Array, out: Floats) -> Mask:
        if self.columns.missing and column.categories is None:
            return refused(piece, column.width, out, column.dialect)
        return ~np.isfinite(out)

    def invalid_values(self, X: InputRows) -> Iterator[InvalidValueError]:
        X = numbers_of(X)
        # `decode` stops at the first invalid value of a column, so decode whole columns to find all invalid values.
        bad = np.zeros(X.shape, dtype=bool)
        for index, column, place in self._numbers():
            for piece, rows in self._pieces(index):
                _decode(column, piece, X[rows, place])
                bad[rows, place] = self._bad(column, piece, X[rows, place])
        broken = self._broken_rows()
        bad[broken] = True
        for row, feature in first_of_rows(bad):
            if row in broken:
                yield InvalidValueError(row, None, self.broken[self.row_number(row)][0])
            else:
                yield self._invalid(row, feature, X.dtype)

    def _filtered(self, rows: Mask) -> Self:
        return replace(self, table=self.table.filter(pa.array(rows)))

    def cells(self, row: int) -> list[Any]:
        return [self.table.column(index)[row].as_py() for index in range(len(self.columns.features))]

    def broken_text(self, row: int) -> str | None:
        broken = self.broken.get(self.row_number(row))
        return None if broken is None else broken[1]

    def _invalid(self, row: int, number: int, dtype: np.dtype[Any]) -> InvalidValueError:
        """Return the error about an invalid feature. `number` is its position among the features that are not texts."""
        index, column, place = next(one for one in self._numbers() if number < one[2].stop)
        value, element = self.table.column(index)[row].as_py(), number - place.start
        dialect, cells, missing = column.dialect, Cells(self.source, column.name), self.columns.missing
        if column.categories is not None:
            problem = column.categories.problem(value)
        elif column.times:
            problem = spell_time_problem(value, dialect, cells)
        else:
            problem = spell_problem(value, column.width, element, dtype, dialect, missing, cells)
        return InvalidValueError(row, self.columns.places[index].start + element, problem)


def _decode(column: Column, piece: pa.Array, out: Floats) -> bool:
    """Decode a piece of a column into `out`. Return true if all numbers are finite."""
    if column.categories is not None:
        return cast_finite(column.codes(piece)[:, None], out)
    if column.times:
        return cast_finite(to_seconds(piece, column.dialect)[:, None], out)
    if column.width is None:
        return cast_finite(to_numbers(piece, column.dialect)[:, None], out)
    return cast_finite(lists_to_numbers(piece, column.width), out)


PEEK = 1024


class KeyedReader(Reader):
    """A reader of Arrow record batches. `add_keys` adds columns from the names of folders, such as year=2024."""

    _respelled: Mapping[int, Dialect] = MappingProxyType({})
    """JSON columns, by position, whose numbers are rewritten in a map's dialect when they are read as features."""

    @abstractmethod
    def _batches(self, indices: list[int], wanted: Wanted, broken: Broken) -> Iterator[pa.RecordBatch | None]:
        """Yield batches of the columns at `indices`, in that order, and None at a pause.

        A row that breaks the format is an error or, if rows are set aside, a row of nulls that `broken` records.
        """

    def _taking(self, where: list[int], wanted: Wanted) -> TakePassthrough:
        """Return a function that, for a table and its first row number, returns the columns at positions `where`."""
        del wanted
        return lambda table, _start: table.select(where)

    def _chunks(self, wanted: Wanted) -> Iterator[Chunk]:
        features, keep = indices_of(self, wanted.names), indices_of(self, wanted.keep)
        kept = [i for i in dict.fromkeys(keep) if i in self._respelled or i not in features]
        where = [len(features) + kept.index(i) if i in kept else features.index(i) for i in keep]
        take = self._taking(where, wanted) if keep else None
        broken: Broken = {}
        source = self if self.untyped else ANYWHERE.table
        batches = self._with_keys([*features, *kept], lambda own: self._batches(own, wanted, broken))
        for start, table in cut(batches, wanted.height, self.first):
            above, rows = (start - self.first) % wanted.height, table.num_rows
            yield TableChunk(
                self.location, start, rows, wanted.columns, table, take, broken, source,
                above=above, pressing=above + rows < wanted.height,
            )  # fmt: skip

    def add_keys(self, keys: Keys) -> None:
        known = {field.name for field in self.fields}
        if not self.positional:
            own = [(name, kind, value) for name, kind, value in keys if name not in known]
            self.keys = {name: pa.scalar(value, pa.type_for_alias(kind)) for name, kind, value in own}
            added = (field_from(pa.field(name, value.type), None) for name, value in self.keys.items())
            self.fields = (*self.fields, *added)

    def _with_keys(
        self, indices: list[int], read: Callable[[list[int]], Iterator[pa.RecordBatch | None]]
    ) -> Iterator[pa.RecordBatch | None]:
        """Yield batches of the columns at `indices`. `read` gives the columns of the file, and `keys` all others."""
        names = [self.fields[index].name for index in indices]
        if self.keys.keys().isdisjoint(names):
            yield from read(indices)
            return
        own = [index for index, name in zip(indices, names, strict=True) if name not in self.keys] or [0]
        for batch in read(own):
            if batch is not None:
                columns = [
                    pa.repeat(self.keys[name], batch.num_rows)
                    if name in self.keys
                    else batch.column(own.index(index))
                    for index, name in zip(indices, names, strict=True)
                ]
                batch = pa.RecordBatch.from_arrays(columns, names)
            yield batch


class ArrowReader(KeyedReader):
    """A reader of a typed table that consists of record batches."""

    schema: pa.Schema

    def add_keys(self, keys: Keys) -> None:
        super().add_keys(keys)
        for name, value in self.keys.items():
            self.schema = self.schema.append(pa.field(name, value.type))

    @abstractmethod
    def pieces(self, indices: list[int], height: int) -> Iterator[pa.RecordBatch]:
        """Yield record batches of the columns at `indices`, in that order."""

    def _describe(self) -> None:
        """Set the fields, the metadata of kafeat (`notes`) and the row names from the schema."""
        self.fields = tuple(self._field(index) for index in range(len(self.schema)))
        self.notes = {key: note for key, note in self._noted(b"kafeat").items() if isinstance(note, str)}
        index = self._noted(b"pandas").get("index_columns")
        # pandas lists the names of index columns, and describes an index that is a range by a mapping.
        names = (name for name in index if isinstance(name, str)) if isinstance(index, list) else ()
        self.row_names = frozenset(names) & set(self.schema.names)

    def _field(self, index: int) -> Field:
        column, width = self.schema.field(index), None
        kind = storage_of(column.type)
        if is_list(kind) and not pa.types.is_fixed_size_list(kind):
            width = next((len(value) for value in self._peek(index) if value.is_valid and len(value)), None)
        return field_from(column, width)

    def first_texts(self, name: str) -> Sequence[str]:
        index = self.schema.get_field_index(name)
        if self.fields[index].kind != "text":
            return ()
        return [str(value.as_py()) for value in self._peek(index) if value.is_valid]

    def _peek(self, index: int) -> Iterable[pa.Scalar]:
        """Return the first values of a column."""
        if self.schema.field(index).name in self.keys:
            return (self.keys[self.schema.field(index).name],)
        batch = next(self.pieces([index], PEEK), None)
        return () if batch is None else batch.column(0)

    def _noted(self, program: bytes) -> dict[str, Any]:
        """Return the JSON object that a program, such as pandas, has put into the schema; {} if it is invalid."""
        with suppress(DataError):
            metadata = parse_json((self.schema.metadata or {}).get(program, b"{}"), self.location, "JSON")
            return metadata if isinstance(metadata, dict) else {}
        return {}

    def _batches(self, indices: list[int], wanted: Wanted, broken: Broken) -> Iterator[pa.RecordBatch]:
        del broken  # in a typed format, no single row is broken
        return self.pieces(indices, wanted.height)

    def passthrough_schema(self, keep: Sequence[str], typed: bool = True) -> pa.Schema:
        return pa.schema([self.schema.field(i) for i in indices_of(self, keep)])
