"""Read a data set of many files, in the order of their names."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from kafeat.errors import DataError, counted
from kafeat.io.columns.fields import listed
from kafeat.io.columns.selection import match
from kafeat.io.data_set import Part
from kafeat.io.readers.base import Chunk, Reader, Wanted
from kafeat.types import Array

if TYPE_CHECKING:
    import pyarrow as pa

EDGE = 1 << 16
"""Number of bytes at each end of a part that the digest of the data set covers."""
OpenFile = Callable[[Part], Reader]


class DatasetReader(Reader):
    """A reader of all parts, which are opened one after the other. Rows are numbered across parts."""

    counts_rows = False  # each part checks its rows; the sum is only known after opening all parts

    def __init__(self, location: str, parts: Sequence[Part], open_file: OpenFile) -> None:
        self.location, self._parts, self._open_file = location, parts, open_file
        self._coded: tuple[str, ...] = ()
        with self._first() as first:
            self.describe_as(first)
            self.sparse, self.format = first.sparse, first.format
            self.notes, self._first_location, self._seekable = first.notes, first.location, first.seekable
            keys = [f"{key} ({listed(self._key(key))})" for key in first.keys]
        self.parts = f"{counted(len(parts), 'file')}{', whose folders name ' * bool(keys)}{', '.join(keys)}"
        self._texts: dict[str, Sequence[str]] = {}

    def expect(self, absent: Sequence[str]) -> None:
        with self._first() as first:
            first.expect(absent)
            self.fields = first.fields

    def _first(self) -> Reader:
        """Open the first part with rows, because an empty part shows no types. If all are empty, open the first."""
        for part in self._parts:
            reader = self._open_file(part)
            if reader.rows != 0:
                return reader
            reader.close()
        return self._open_file(self._parts[0])

    @cached_property
    def rows(self) -> int | None:  # type: ignore[override]  # counted when it is asked for
        """The number of rows of all parts, or None if a part does not store it. Counting opens every part."""
        return None if self._starts is None else int(self._starts[-1])

    @cached_property
    def _starts(self) -> Array | None:
        """The number of the first row of each part, and then the number of all rows. None if `rows` is None."""
        starts = [0]
        for part in self._parts:
            with self._open_file(part) as reader:
                if reader.rows is None:
                    return None
                starts.append(starts[-1] + reader.rows)
        return np.array(starts)

    def first_texts(self, name: str) -> Sequence[str]:
        if name not in self._texts:
            with self._first() as first:
                if name in first.keys:
                    return self._key(name)
                names = [name, *(field.name for field in first.fields if field.kind == "text")]
                self._texts |= {each: first.first_texts(each) for each in names}
        return self._texts[name]

    def _key(self, name: str) -> list[str]:
        """Return, for each part, the value of a key in the name of its folder: "2024" for year=2024."""
        return [str(value) for part in self._parts for key, _, value in part.keys if key == name]

    def coding(self, names: Iterable[str]) -> Self:
        view = copy(self)
        view._coded = (*self._coded, *names)
        return view

    def settled(self) -> Self:
        """Return a view with the fields of the widest part. If a list has an unknown width, this opens every part."""
        if all(field.width is not None for field in self.fields if field.kind == "list"):
            return self
        view = copy(self)
        for part in self._parts:
            with self._open_file(part) as reader:
                settled = reader.settled()
                view.fields = settled.fields if settled.width > view.width else view.fields
        return view

    def _chunks(self, wanted: Wanted) -> Iterator[Chunk]:
        start = 0
        for part in self._parts:
            with self._open(part, wanted) as reader:
                if reader.rows == 0:
                    continue
                rows = 0
                for chunk in reader.chunks_of(wanted):
                    rows = chunk.start + chunk.rows
                    yield chunk.shift(start)
                reader.check_unchanged()
                start += rows

    def chunks_with(self, rows: Array, wanted: Wanted) -> Iterator[Chunk] | None:
        """Return chunks of only those blocks that contain the rows of these numbers, or None if that is not possible.

        `rows` ascend and count across all parts. `Reader.blocks` gives the blocks of a part.
        """
        starts = self._starts
        if starts is None or not self._seekable or self.limit is not None:
            return None
        return self._blocks_with(rows, wanted, starts)

    def _blocks_with(self, rows: Array, wanted: Wanted, starts: Array) -> Iterator[Chunk]:
        for part, start, stop in zip(self._parts, starts[:-1], starts[1:], strict=True):
            local_rows = rows[np.searchsorted(rows, start) : np.searchsorted(rows, stop)] - start
            if not len(local_rows):
                continue
            with self._open(part, wanted) as reader:
                blocks = reader.blocks()
                for number in np.unique(np.searchsorted(blocks, local_rows, side="right")):
                    block = reader.select_rows(int(blocks[number - 1]), int(blocks[number]))
                    for chunk in block.chunks_of(wanted):
                        yield chunk.shift(int(start))
                reader.check_unchanged()

    def _open(self, part: Part, wanted: Wanted) -> Reader:
        reader = self._open_file(part)
        try:
            if reader.rows != 0:
                self._check(reader, wanted)
            return reader.coding(self._coded)
        except BaseException:
            reader.close()
            raise

    def _check(self, reader: Reader, wanted: Wanted) -> None:
        """Raise DataError if a part lacks a column. If columns have no names, all parts must have equally many."""
        if not (self.positional or reader.positional):
            match(reader, wanted.columns, wanted.keep)
        if self.positional and len(reader.fields) != len(self.fields):
            raise DataError(
                f"{reader.location}: expected {len(self.fields)} columns, as {self._first_location} has, got "
                f"{len(reader.fields)}"
            )

    def locate(self, row: int) -> tuple[str, int]:
        if self._starts is None:
            return self.location, row
        number = int(np.searchsorted(self._starts, row, side="right")) - 1
        return str(self._parts[number].location), row - int(self._starts[number])

    def passthrough_schema(self, keep: Sequence[str], typed: bool = True) -> pa.Schema:
        with self._first() as first:
            return first.passthrough_schema(keep, typed)

    def digest(self) -> str:
        """Return the SHA-256 of names, sizes and both ends of every part. Reading all bytes would take too long."""
        seen = hashlib.sha256()
        for part in self._parts:
            seen.update(f"{part.name}\0{part.bytes}\0".encode(errors="surrogateescape"))
            seen.update(part.location.ends(part.bytes, EDGE))
        return seen.hexdigest()
