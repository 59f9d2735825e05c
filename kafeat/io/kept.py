"""Kept columns in types and values that a format can hold: what it cannot is refused before anything is written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kafeat.errors import UsageError, ValueRefused, quoted
from kafeat.io.kept_plain import plain, written
from kafeat.io.kept_times import beyond, digits, is_timed
from kafeat.types import Mask

NAMES = {"csv": "CSV", "jsonl": "JSON lines", "arrow": "Arrow", "parquet": "Parquet"}
_EXPECTED = {"csv": "of plain values", "jsonl": "that JSON can spell"}


class Kept:
    """The kept columns of an output: `schema` is theirs as they are written."""

    def __init__(self, place: str, format: str, schema: pa.Schema) -> None:
        self._format = format
        held: dict[pa.DataType, bool] = {}
        for field in schema:
            if field.type not in held:
                held[field.type] = _held(format, field.type)
            if not held[field.type]:
                raise UsageError(
                    f"{place}: column {quoted(field.name)}: expected a kept column "
                    f"{_EXPECTED.get(format, f'that {NAMES[format]} can hold')}, got {field.type}; {_remedy(format)}"
                )
        self.schema = pa.schema(
            [f.with_type(written(f.type, format)) for f in schema], metadata=schema.metadata
        )
        self._timed = [field.name for field in schema if is_timed(field.type, format)]

    def table(self, kept: pa.Table, good: Mask | None = None) -> pa.Table:
        """The same rows as they are written; ValueRefused for a value of a good row that has no place in the format."""
        for name in self._timed:
            self._check(name, kept.column(name), good)
        fields = [f.with_type(written(f.type, self._format)) for f in kept.schema]
        columns = [_as(column, f.type) for column, f in zip(kept.columns, fields, strict=True)]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=kept.schema.metadata))

    def _check(self, name: str, column: pa.ChunkedArray, good: Mask | None) -> None:
        if beyond(column, self._format) is None:
            return
        for row in range(len(column)) if good is None else map(int, np.flatnonzero(good)):
            found = beyond(column.slice(row, 1), self._format)
            if found is not None:
                raise ValueRefused(
                    row,
                    name,
                    f"expected a {found.type} that {NAMES[self._format]} can hold, got {digits(found)}; "
                    f"{_remedy(self._format)}",
                )


def _remedy(format: str) -> str:
    others = [name for key, name in NAMES.items() if key != format and key != "csv"]
    return f"leave it out of --keep, or write {' or '.join(others[::-1])}"


def _as(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([plain(chunk, kind) for chunk in column.chunks], kind)


def _held(format: str, kind: pa.DataType) -> bool:
    """Whether values of the type can be written: Arrow tells by doing it, of no rows."""
    target = written(kind, format)
    try:
        column = _as(pa.chunked_array([pa.nulls(0, kind)], kind), target)
        if format == "csv":
            from kafeat.io.csv_text import spelled
        elif format == "jsonl":
            from kafeat.io.jsonl_text import spelled
        elif format == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(pa.table({"k": column}), pa.BufferOutputStream())
            return True
        else:
            column.take(pa.array([], pa.int64()))
            return True
        return bool(spelled(target))
    except (pa.ArrowException, NotImplementedError, OSError):
        return False
