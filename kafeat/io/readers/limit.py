"""A reader of the first rows of another reader, for a trial."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Self

from kafeat.io.columns.columns import Columns
from kafeat.io.readers.base import Chunk, Reader

if TYPE_CHECKING:
    import pyarrow as pa


class LimitedReader(Reader):
    """The first `limit` rows of a reader, in its own chunks. The last one is cut.

    The output of a row does not depend on later rows, so the output is the beginning of the complete one. The digest is
    that of the complete input.
    """

    def __init__(self, reader: Reader, limit: int) -> None:
        self._reader, self._limit = reader, limit
        self.fields, self.positional, self.untyped = reader.fields, reader.positional, reader.untyped
        self.sparse = reader.sparse
        self.rows = None if reader.rows is None else min(reader.rows, limit)

    @property
    def location(self) -> str:
        """The location of the reader, which may be changed."""
        return self._reader.location

    @location.setter
    def location(self, name: str) -> None:
        self._reader.location = name

    @property
    def row_names(self) -> frozenset[str]:
        return self._reader.row_names

    @property
    def notes(self) -> Mapping[str, str]:
        return self._reader.notes

    @property
    def rereadable(self) -> bool:
        return self._reader.rereadable

    def estimated_rows(self) -> int | None:
        rows = self._reader.estimated_rows()
        return None if rows is None else min(rows, self._limit)

    def coding(self, names: Iterable[str]) -> Self:
        view = copy(self)
        view._reader = self._reader.coding(names)
        return view

    def settled(self) -> Self:
        view = copy(self)
        view._reader = self._reader.settled()
        view.fields = view._reader.fields
        return view

    def _chunks(
        self, columns: Columns, keep: Sequence[str], height: int, *, typed_passthrough: bool, set_aside: bool
    ) -> Iterator[Chunk]:
        left = self._limit
        for chunk in self._reader.chunks(
            columns, keep, height, typed_passthrough=typed_passthrough, set_aside=set_aside
        ):
            yield chunk if chunk.rows <= left else _cut(chunk, left)
            left -= chunk.rows
            if left <= 0:  # before the reader makes a chunk that is not needed
                return

    def locate(self, row: int) -> tuple[str, int]:
        return self._reader.locate(row)

    def passthrough_schema(self, keep: Sequence[str], typed: bool = True) -> pa.Schema:
        return self._reader.passthrough_schema(keep, typed)

    def digest(self) -> str:
        return self._reader.digest()

    def check_unchanged(self) -> None:
        self._reader.check_unchanged()

    def close(self) -> None:
        self._reader.close()


def _cut(chunk: Chunk, rows: int) -> Chunk:
    head = chunk.head(rows)
    head.before = chunk.before
    return head
