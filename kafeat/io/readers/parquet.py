"""Reader of Parquet files and objects."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property, partial
from typing import Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kafeat.errors import DataError, quoted, spell_row
from kafeat.io.columns.fields import Field
from kafeat.io.columns.numbers import is_text, storage_of, stored
from kafeat.io.readers.base import Chunk, Wanted, damage, wrong_count
from kafeat.io.readers.table import ArrowReader, cut
from kafeat.io.readers.wide_integers import WideIntegers, narrowed_footer
from kafeat.io.storage.base import Location
from kafeat.io.storage.local_path import LocalPath
from kafeat.types import Array

Unit = Literal["s", "us", "ns"]
_PER_SECOND: dict[Unit, int] = {"us": 10**6, "ns": 10**9}
_ROWS = 1 << 16
READ_BUFFER = 1 << 16
"""Bytes of a column that are read at a time, so that a row group is never completely in memory."""

_damage = partial(
    damage, expected="a sound Parquet file", kinds=(pa.ArrowException, OSError, ValueError, OverflowError)
)


class ParquetReader(ArrowReader):
    """A reader of a Parquet file or object, one batch at a time."""

    seekable = True
    _coded: frozenset[str] = frozenset()
    _metadata: pq.FileMetaData | None = None
    _wide = WideIntegers()

    def __init__(self, location: Location) -> None:
        self._place, self.location = location, location.source
        self._remote = not isinstance(location, LocalPath)
        if not self._remote:
            location.open_random().close()
        with _damage(self.location):
            self._file = self._readable()
            self._metadata, self._files = self._file.metadata, [self._file]
            self._units: dict[str, Unit] = {}
            self._others: dict[Unit, pq.ParquetFile] = {}
            self.schema = self._file.schema_arrow
            self.rows = self._file.metadata.num_rows
            self._describe()
        if self.rows != self.blocks()[-1]:
            raise self.error(
                f"expected {self.rows:,} rows in its row groups, as in the footer, got {self.blocks()[-1]:,}"
            )

    def _opened(self, unit: Unit = "us") -> pq.ParquetFile:
        """Open the file again. INT96 timestamps are read in `unit`, and overflow if they are far from 1970."""
        options = {
            "coerce_int96_timestamp_unit": unit,
            "metadata": self._metadata,
            "read_dictionary": sorted(self._coded),
        }
        if isinstance(self._place, LocalPath):
            file = pa.OSFile(os.fsencode(self._place.path))  # the name may not be UTF-8
            return pq.ParquetFile(file, pre_buffer=False, buffer_size=READ_BUFFER, **options)
        # Over a network, fetch all columns of a row group at once, and adjacent ranges together.
        return pq.ParquetFile(self._place.open_random(), pre_buffer=True, **options)

    def _readable(self) -> pq.ParquetFile:
        """Open the file, even if columns have integers of more than 64 bits. Only reading these columns is an error."""
        try:
            return self._opened()
        except pa.ArrowNotImplementedError:
            self._wide, self._metadata = narrowed_footer(self._place)
            return self._opened()

    def _field(self, index: int) -> Field:
        name = self.schema.field(index).name
        wide = self._wide.columns.get(name)
        return super()._field(index) if wide is None else Field(name, "other", None, wide)

    def coding(self, names: Iterable[str]) -> Self:
        schema = self.schema
        plain = {
            field.name for field in schema if is_text(field.type) and not pa.types.is_dictionary(field.type)
        }
        texts = plain.intersection(names).difference(self.keys)
        if texts <= self._coded:
            return self
        view = copy(self)
        view._coded = self._coded | texts
        with _damage(self.location):
            view._file = view._opened()
        self._files.append(view._file)
        return view

    def _chunks(self, wanted: Wanted) -> Iterator[Chunk]:
        features = wanted.columns.features
        view = self.coding(one.name for one in features if one.text or one.categories is not None)
        return super(ParquetReader, view)._chunks(wanted)

    def pieces(self, indices: list[int], height: int) -> Iterator[pa.RecordBatch]:
        names = [self.schema.field(i).name for i in indices]
        self._wide.refuse(self.location, names)
        groups, skip = self._groups()
        promised, got = self._check_values(groups, names), 0
        left, row = self.rows or 0, self.first
        texts = [name for name, i in zip(names, indices, strict=True) if _has_text(self.schema.field(i).type)]
        # Prefetched bytes stay in memory until a call ends, so each row group of a remote file is read in its own call.
        calls = [[group] for group in groups] if self._remote else [groups]
        with _damage(self.location):
            for call in calls:
                for batch in self._of_groups(height, call, names):
                    got += batch.num_rows
                    batch_rows = batch.slice(skip, left)
                    skip = max(0, skip - batch.num_rows)
                    left -= batch_rows.num_rows
                    for name in texts:
                        _require_utf8(self.location, row, name, batch_rows.column(name))
                    row += batch_rows.num_rows
                    yield batch_rows
        if got != promised:
            raise wrong_count(self.location, promised, got)

    def _of_groups(self, height: int, groups: list[int], names: list[str]) -> Iterator[pa.RecordBatch]:
        exact = self._in_nanoseconds(names)
        # If `a` is requested, Arrow also returns a column `a.b`, so select the requested names again.
        batches = (
            batch.select(names) for batch in self._file.iter_batches(height, row_groups=groups, columns=names)
        )
        if not exact:
            yield from batches
            return
        others = self._in("ns").iter_batches(height, row_groups=groups, columns=exact)
        for (_, table), (_, other) in zip(cut(batches, height), cut(others, height), strict=True):
            for name in exact:
                place = table.schema.get_field_index(name)
                table = table.set_column(place, other.field(name), other.column(name))
            yield from table.combine_chunks().to_batches()

    def _in(self, unit: Unit) -> pq.ParquetFile:
        """Return the file, opened so that INT96 columns are read in `unit`."""
        if unit not in self._others:
            self._others[unit] = self._opened(unit)
            self._files.append(self._others[unit])
        return self._others[unit]

    @cached_property
    def _int96(self) -> frozenset[str]:
        """The timestamps that are stored as INT96."""
        if not any(map(pa.types.is_timestamp, self.schema.types)):
            return frozenset()
        stored_as = self._file.metadata.schema
        leaves = (stored_as.column(j) for j in range(len(stored_as.names)))
        return frozenset(leaf.path for leaf in leaves if leaf.physical_type == "INT96")

    def _in_nanoseconds(self, names: Iterable[str]) -> list[str]:
        """Return the columns, among `names`, to read in nanoseconds: INT96 columns with digits below a microsecond.

        To find these digits, INT96 columns are first read completely: the unit of a column must suit every row.
        """
        asked = [name for name in names if name in self._int96]
        with _damage(self.location):
            for name in asked:
                if name not in self._units:
                    self._units[name] = exact_unit(self.location, name, self._in("s"), self._in("ns"))
        return [name for name in asked if self._units[name] == "ns"]

    def passthrough_schema(self, keep: Sequence[str], typed: bool = True) -> pa.Schema:
        self._wide.refuse(self.location, keep)
        schema = super().passthrough_schema(keep, typed)
        for name in self._in_nanoseconds(keep):
            place = schema.get_field_index(name)
            schema = schema.set(place, schema.field(place).with_type(pa.timestamp("ns")))
        return schema

    def _check_values(self, groups: list[int], names: list[str]) -> int:
        """Return the number of rows in these row groups. Raise DataError if a column has another number of values."""
        metadata, rows, requested = self._file.metadata, 0, set(names)
        leaves = [metadata.schema.column(j) for j in range(metadata.num_columns)]
        single = [
            j for j, leaf in enumerate(leaves) if leaf.path in requested and not leaf.max_repetition_level
        ]
        for number in groups:
            group = metadata.row_group(number)
            rows += group.num_rows
            for j in single:
                values = group.column(j).num_values
                if values != group.num_rows:
                    raise self.error(
                        f"column {quoted(leaves[j].path)}: expected {group.num_rows:,} values in row "
                        f"group {number + 1}, one per row, got {values:,}"
                    )
        return rows

    def blocks(self) -> Array:
        groups = self._file.metadata
        heights = [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]
        return np.cumsum([0, *heights])

    def _groups(self) -> tuple[list[int], int]:
        """Return the row groups that contain the rows to read, and how many rows of the first group to skip."""
        edges, stop = self.blocks(), self.first + (self.rows or 0)
        groups = np.flatnonzero((edges[:-1] < stop) & (edges[1:] > self.first)).tolist()
        return groups, self.first - int(edges[groups[0]]) if groups else 0

    def close(self) -> None:
        for file in self._files:
            file.close(force=True)


def _has_text(kind: pa.DataType) -> bool:
    kind = storage_of(kind)
    if pa.types.is_dictionary(kind):
        return _has_text(kind.value_type)
    return is_text(kind) or any(_has_text(kind.field(i).type) for i in range(kind.num_fields))


def _require_utf8(location: str, start: int, name: str, text: pa.Array) -> None:
    """Raise DataError for text that is not UTF-8, because Arrow's Parquet reader does not check text."""
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        for row in range(len(text)):
            try:
                text[row].as_py()
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{location}: {spell_row(start + row)}, column {quoted(name)}: expected UTF-8 text, "
                    f"got {error.object[:60]!r}"
                ) from error
        raise


def exact_unit(location: str, name: str, in_seconds: pq.ParquetFile, in_nanoseconds: pq.ParquetFile) -> Unit:
    """Return the unit for a column of INT96: microseconds, or nanoseconds if a value has digits below microseconds.

    A value that 64 bits of this unit cannot hold is an error: Arrow would wrap it silently. An INT96 consists of a day
    and the nanoseconds in it. `in_seconds` and `in_nanoseconds` are the same file, opened with these units.
    """
    unit: Unit = "us"
    beyond: dict[Unit, tuple[int, int]] = {}
    pieces = [cut(file.iter_batches(_ROWS, columns=[name]), _ROWS) for file in (in_seconds, in_nanoseconds)]
    for (row, coarse), (_, fine) in zip(*pieces, strict=True):
        seconds, counts = (_counts(table.column(name)) for table in (coarse, fine))
        # Seconds fit into 64 bits. `counts` and the product (nanoseconds) may have wrapped, but `rest` is right.
        rest = counts - seconds * _PER_SECOND["ns"]
        unit = "ns" if (rest % 1000).any() else unit
        for each, per_second in _PER_SECOND.items():
            held = seconds * per_second + rest // (_PER_SECOND["ns"] // per_second)
            for place in np.flatnonzero(held // per_second != seconds)[:1]:
                beyond.setdefault(each, (row + int(place), int(seconds[place])))
    if unit in beyond:
        row, second = beyond[unit]
        why = ", because other values have digits below a microsecond" if unit == "ns" else ""
        raise DataError(
            f"{location}: {spell_row(row)}, column {quoted(name)}: expected a time that 64 bits of "
            f"{'nano' if unit == 'ns' else 'micro'}seconds can hold{why}, got {np.datetime64(second, 's')}; "
            "leave the column out, or write it as text"
        )
    return unit


def _counts(column: pa.ChunkedArray) -> Array:
    """Return timestamps as the integers that Arrow stores, with 0 for null."""
    return stored(column.cast(pa.int64()).fill_null(0).combine_chunks())
