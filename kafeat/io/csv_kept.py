"""Kept columns of a CSV file: numbers where these say all that the text says, else the text.

The first rows show the type of a column; a later value that the type would change is refused with its row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from kafeat.errors import DataError, quoted, spell_row

Type = Literal["int64", "float64", "string"]
ARROW: dict[Type, pa.DataType] = {"int64": pa.int64(), "float64": pa.float64(), "string": pa.string()}

# A double holds every number of at most 15 digits.
_SHORT = r"^-?(0|[1-9][0-9]{0,6})(\.[0-9]{1,8})?$"
# 007 and +49301234567: what makes them the names that they are is lost in a number.
_NAME = re.compile(r"[+-]?0[0-9]|\+[0-9]+\Z")
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)\Z", re.IGNORECASE)
_MOST_DIGITS = 767
"""No double has more."""


def inferred(values: Sequence[str]) -> Type:
    """The narrowest type that loses nothing of these values; empty ones are null in it."""
    text = _present(pa.chunked_array([pa.array(values, pa.string())]))
    numbers: tuple[Type, ...] = ("int64", "float64") if text.null_count < len(text) else ()
    return next((kind for kind in numbers if _as(text, kind) is not None), "string")


def typed(place: str, table: pa.Table, types: dict[str, Type], start: int) -> pa.Table:
    """The text columns of `table` in `types`; a value that does not fit is refused with its row."""
    columns = [_typed(place, table.column(i), name, types[name], start) for i, name in enumerate(types)]
    return pa.Table.from_arrays(
        columns, schema=pa.schema([(name, ARROW[kind]) for name, kind in types.items()])
    )


def _typed(place: str, text: pa.ChunkedArray, name: str, kind: Type, start: int) -> pa.ChunkedArray:
    if kind == "string":
        return text
    present = _present(text)
    numbers = _as(present, kind)
    if numbers is not None:
        return numbers
    row = _first_unlike(present, kind)
    raise DataError(
        f"{place}: {spell_row(start + row)}, column {quoted(name)}: expected {kind} as in the first rows, "
        f"got {present[row].as_py()[:60]!r}; a CSV output keeps it as it is"
    )


def _first_unlike(text: pa.ChunkedArray, kind: Type) -> int:
    """The first value that loses something; there is one."""
    first, rows = 0, len(text)
    while rows > 1:
        half = rows // 2
        if _as(text.slice(first, half), kind) is None:
            rows = half
        else:
            first, rows = first + half, rows - half
    return first


def _present(text: pa.ChunkedArray) -> pa.ChunkedArray:
    # Not if_else: with text that begins inside of a buffer it gives other bytes of memory (pyarrow before 24).
    return pc.case_when(pc.make_struct(pc.not_equal(text, "")), text)


def _as(text: pa.ChunkedArray, kind: Type) -> pa.ChunkedArray | None:
    """The values as numbers; None if one of them would lose something."""
    try:
        numbers = text.cast(ARROW[kind])
    except pa.ArrowInvalid:
        return None
    same = pc.equal(numbers.cast(pa.string()), text)
    if kind == "int64":
        return numbers if pc.all(same).as_py() is not False else None
    unlike = text.filter(pc.invert(pc.or_(same, pc.match_substring_regex(text, _SHORT))))
    return numbers if all(map(_is_double, unlike.to_pylist())) else None


def _is_double(text: str) -> bool:
    """Whether a double is this number, or the one that is written so with as many digits."""
    if _NAME.match(text):
        return False
    if _NOT_FINITE.match(text):
        return True
    try:
        number, double = Decimal(text), float(text)
    except (InvalidOperation, ValueError):
        return False
    digits = len(number.as_tuple().digits)
    return number == Decimal(repr(double)) or (
        digits <= _MOST_DIGITS and number == Decimal(f"{double:.{digits - 1}e}")
    )
