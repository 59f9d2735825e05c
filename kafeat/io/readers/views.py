"""Views of a reader: without the rows that have no label, and with more columns from memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Self

import numpy as np
import pyarrow as pa

from kafeat.io.columns.numbers import field_from
from kafeat.io.columns.values import missing_rows
from kafeat.io.readers.base import Chunk, Reader, Wanted
from kafeat.io.readers.memory import table_of
from kafeat.types import Array


class ReaderView(Reader):
    """Base class of readers that have the columns of another reader (`source`), and share its open files."""

    def __init__(self, source: Reader) -> None:
        self._source = source
        self.describe_as(source)
        self.location, self.sparse, self.notes = source.location, source.sparse, source.notes
        self.in_memory = source.in_memory

    @property
    def rereadable(self) -> bool:
        return self._source.rereadable

    def first_texts(self, name: str) -> Sequence[str]:
        return self._source.first_texts(name)

    def passthrough_schema(self, keep: Sequence[str], typed: bool = True) -> pa.Schema:
        return self._source.passthrough_schema(keep, typed)

    def digest(self) -> str:
        return self._source.digest()

    def check_unchanged(self) -> None:
        self._source.check_unchanged()

    def close(self) -> None:
        self._source.close()


class LabelledReader(ReaderView):
    """The rows of a reader that have a value in each of the columns `names`.

    Chunks number these rows without gaps, but messages name a row by its number in the file.
    """

    def __init__(self, source: Reader, names: Sequence[str]) -> None:
        super().__init__(source)
        self._names, self._dropped = list(names), [np.empty(0, np.int64)]

    @property
    def dropped(self) -> int:
        """The number of rows that were left out in the last pass."""
        return sum(map(len, self._dropped))

    def coding(self, names: Iterable[str]) -> Self:
        view = type(self)(self._source.coding(names), self._names)
        view._dropped = self._dropped
        return view

    def settled(self) -> Self:
        return type(self)(self._source.settled(), self._names)

    def _chunks(self, wanted: Wanted) -> Iterator[Chunk]:
        self._dropped[:] = [np.empty(0, np.int64)]
        start, source = 0, self._source.coding(self._names)
        keep = list(dict.fromkeys([*wanted.keep, *self._names]))
        for chunk in source.chunks_of(wanted._replace(keep=keep)):
            missing = np.zeros(chunk.rows, dtype=bool)
            if chunk.passthrough is not None:
                for column in chunk.passthrough.select(self._names).columns:
                    missing |= missing_rows(column, self._source.asked.nulls or ())
            self._dropped.append(chunk.start + np.flatnonzero(missing))
            chunk = chunk.selected(~missing) if missing.any() else chunk
            if chunk.rows:
                yield replace(chunk, start=start, before=start - chunk.first_row)
            start += chunk.rows

    def locate(self, row: int) -> tuple[str, int]:
        dropped = np.concatenate(self._dropped)
        between = dropped - np.arange(len(dropped))  # number of labelled rows before each dropped one
        return self._source.locate(row + int(np.searchsorted(between, row, side="right")))


class WiderReader(ReaderView):
    """A reader in memory with additional columns `more`, arrays (n,). Its width and digest are those of `source`."""

    def __init__(self, source: Reader, more: Mapping[str, Array]) -> None:
        super().__init__(source)
        self.rows, self._more = source.rows, table_of(more)
        self.fields = (*source.fields, *(field_from(field, None) for field in self._more.schema))

    @property
    def width(self) -> int:
        return self._source.width

    def _chunks(self, wanted: Wanted) -> Iterator[Chunk]:
        more = self._more.select([name for name in wanted.keep if name in self._more.column_names])
        keep = [name for name in wanted.keep if name not in self._more.column_names]
        for chunk in self._source.chunks_of(wanted._replace(keep=keep)):
            yield replace(chunk, added=more.slice(chunk.start, chunk.rows))
