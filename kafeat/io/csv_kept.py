"""Kept columns of a CSV file: unchanged text, or the type that the first rows show."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from kafeat.errors import DataError, quoted, spell_row
from kafeat.io.csv_sniff import Type

ARROW = {"int64": pa.int64(), "float64": pa.float64(), "string": pa.string()}


def typed(place: str, table: pa.Table, types: dict[str, Type], start: int) -> pa.Table:
    """The text columns of `table` in `types`; a value that does not fit is refused with its row."""
    columns = [_typed(place, table.column(i), name, types[name], start) for i, name in enumerate(types)]
    return pa.Table.from_arrays(
        columns, schema=pa.schema([(name, ARROW[kind]) for name, kind in types.items()])
    )


def _typed(place: str, text: pa.ChunkedArray, name: str, kind: Type, start: int) -> pa.ChunkedArray:
    if kind == "string":
        return text
    # Not if_else: with text that begins inside of a buffer it gives other bytes of memory (pyarrow before 24).
    present = pc.case_when(pc.make_struct(pc.not_equal(text, "")), text)
    fits = _fits(present, kind)
    if fits is not None:
        return fits
    for row in range(len(present)):
        if _fits(present.slice(row, 1), kind) is None:
            raise DataError(
                f"{place}: {spell_row(start + row)}, column {quoted(name)}: expected {kind} as in the first rows, "
                f"got {present[row].as_py()[:60]!r}"
            )
    raise AssertionError("every value fits")


def _fits(text: pa.ChunkedArray, kind: Type) -> pa.ChunkedArray | None:
    try:
        values = text.cast(ARROW[kind])
    except pa.ArrowInvalid:
        return None
    if kind == "int64":
        lost = pc.not_equal(values.cast(pa.string()), text)
    else:
        lost = pc.match_substring_regex(text, r"^[+-]?0[0-9]")
    return None if pc.any(lost).as_py() else values
