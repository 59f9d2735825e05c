"""Readers of typed Arrow columns."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from kafeat.io.columns.columns import Columns
from kafeat.io.columns.field import Field
from kafeat.io.columns.names import indices_of
from kafeat.io.columns.numbers import field_from, is_list, storage_of
from kafeat.io.readers.base import Chunk, Reader
from kafeat.io.readers.table import TableChunk, cut

PEEK = 1024


class ArrowReader(Reader):
    """A reader of a typed table that comes in record batches."""

    schema: pa.Schema
    first = 0
    """Number of the first row to read."""

    @abstractmethod
    def pieces(self, indices: list[int], height: int) -> Iterator[pa.RecordBatch]:
        """Yield record batches of the columns at `indices`, in that order."""

    @property
    def notes(self) -> Mapping[str, str]:
        return {key: note for key, note in self._noted(b"kafeat").items() if isinstance(note, str)}

    @property
    def row_names(self) -> frozenset[str]:
        index = self._noted(b"pandas").get("index_columns")
        # A range index is not a column: pandas describes it by a mapping.
        names = (name for name in index if isinstance(name, str)) if isinstance(index, list) else ()
        return frozenset(names) & set(self.schema.names)

    def _noted(self, program: bytes) -> dict[str, Any]:
        """Return the JSON object that a program has put into the schema. Its content is not trusted."""
        try:
            found = json.loads((self.schema.metadata or {}).get(program, b"{}"))
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def _chunks(
        self, columns: Columns, keep: Sequence[str], height: int, *, typed_passthrough: bool
    ) -> Iterator[Chunk]:
        del typed_passthrough
        features = indices_of(self, (column.name for column in columns.features))
        passthrough = indices_of(self, keep)
        indices = list(dict.fromkeys([*features, *passthrough]))
        where = [indices.index(i) for i in passthrough]
        take_passthrough = (lambda table, _start: table.select(where)) if passthrough else None
        for start, table in cut(self.pieces(indices, height), height, self.first):
            yield TableChunk(self.location, start, table, columns, take_passthrough)

    def passthrough_schema(self, keep: Sequence[str], typed: bool = True) -> pa.Schema:
        del typed
        return pa.schema([self.schema.field(i) for i in indices_of(self, keep)])


def fields_from(schema: pa.Schema, peek: Callable[[int], pa.Array | pa.ChunkedArray]) -> tuple[Field, ...]:
    """Return the fields of a schema. `peek` returns first values of a list column of variable length."""
    fields = []
    for index, field in enumerate(schema):
        width, kind = None, storage_of(field.type)
        if is_list(kind) and not pa.types.is_fixed_size_list(kind):
            width = next((len(value) for value in peek(index) if value.is_valid and len(value)), None)
        fields.append(field_from(field, width))
    return tuple(fields)
