"""Detect the names and kinds of the columns of a CSV file from its first rows."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafeat.errors import DataError, quoted, spell_row
from kafeat.io.columns.fields import Field
from kafeat.io.columns.numbers import NOT_FINITE, to_doubles
from kafeat.io.readers.text_stream import LONGEST, LOOK, DecompressedStream, refuse_binary


@dataclass(frozen=True)
class CsvHead:
    """The fields of a CSV file, their first values, and a block size that holds any likely row.

    `skip` is the number of rows before the data. `empty` means that there is no data. `blanks` means that a blank line
    is a row.
    """

    fields: tuple[Field, ...]
    values: tuple[list[str], ...]
    block: int
    skip: int
    empty: bool
    blanks: bool


def sniff(location: str, text: DecompressedStream, delimiter: str, header: bool) -> CsvHead:
    """Inspect the first rows. `text` returns them again afterwards."""
    rows, block = _first_rows(location, text, delimiter)
    first = next((index for index, row in enumerate(rows) if row), None)
    if first is None:
        raise DataError(f"{location}: expected {'a header line' if header else 'rows'}, got an empty file")
    names = rows[first] if header else [f"c{i}" for i in range(len(rows[first]))]
    # With one column, a blank line is a missing value. With more, it is ignored.
    blanks = len(names) == 1
    rows = [row or [""] for row in rows] if blanks else [row for row in rows if row]
    skip = int(header) + (first if header and blanks else 0)
    rows = rows[skip:]
    empty = text.whole and not rows
    # Short or long rows are reported by the reader, which knows their numbers.
    rows = [row for row in rows if len(row) == len(names)]
    columns = [[row[i] for row in rows] for i in range(len(names))]
    fields = tuple(guessed(name, values) for name, values in zip(names, columns, strict=True))
    return CsvHead(fields, tuple(columns), block, skip, empty, blanks)


def _first_rows(location: str, text: DecompressedStream, delimiter: str) -> tuple[list[list[str]], int]:
    """Return the rows that end within the first bytes. More bytes are read until two rows are not blank."""
    size = LOOK
    while True:
        head = text.look(size)
        refuse_binary(location, head, "CSV")
        rows = _parsed(location, head, delimiter, text.whole)
        count = sum(map(bool, rows))
        if count >= 2 or text.whole:
            longest = len(head) // max(1, count) if count < 16 else 0
            return rows, max(LOOK, 4 * longest)
        if size >= LONGEST:
            raise DataError(
                f"{location}: expected rows of less than {LONGEST} bytes, got a longer one; is a quote left open?"
            )
        size *= 4


def _parsed(location: str, head: bytes, delimiter: str, whole: bool) -> list[list[str]]:
    # Invalid UTF-8 is refused by the reader, wherever it is.
    text = head.decode("utf-8-sig", errors="replace")
    csv.field_size_limit(LONGEST * 2)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise DataError(f"{location}: expected CSV, got: {error}") from error
    return rows if whole else rows[:-1]


def guessed(name: str, values: list[str]) -> Field:
    """Return a number field if most filled cells are numbers: a stray word must be refused, and not drop a column."""
    filled = [row for row, value in enumerate(values) if value.strip()]
    if values and not filled:
        return Field(name, "text", None, "empty fields")
    numbers = to_doubles(pa.array([values[row] for row in filled], pa.string()))
    words = [
        row for row, value in zip(filled, numbers, strict=True) if np.isnan(value) and _is_word(values[row])
    ]
    if 2 * len(words) < len(filled) or not words:
        code = next((values[row] for row in filled if _CODE.fullmatch(values[row])), "")
        return Field(name, "number", None, "numbers", code)
    return Field(name, "text", None, f"text ({values[words[0]][:60]!r} in {spell_row(words[0])})")


def _is_word(text: str) -> bool:
    return text.strip().lower().lstrip("+-") not in NOT_FINITE


# A double holds every number of at most 15 digits.
_SHORT = r"^-?(0|[1-9][0-9]{0,6})(\.[0-9]{1,8})?$"


# 007 and +49301234567 are names: as numbers they would lose characters.
_NAME = re.compile(r"[+-]?0[0-9]|\+[0-9]+\Z")


_CODE = re.compile(r"0[0-9]+")


_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)\Z", re.IGNORECASE)


_MOST_DIGITS = 767
"""Largest number of significant decimal digits of a double."""


def inferred(values: Sequence[str]) -> pa.DataType:
    """Return the narrowest type that loses nothing of these values. Empty values are null in it."""
    text = _present(pa.chunked_array([pa.array(values, pa.string())]))
    numbers = (pa.int64(), pa.float64()) if text.null_count < len(text) else ()
    return next((kind for kind in numbers if _as(text, kind) is not None), pa.string())


def typed(location: str, table: pa.Table, types: dict[str, pa.DataType], start: int) -> pa.Table:
    """Convert the text columns of `table` to `types`. Refuse a value that does not fit, with its row."""
    columns = [_typed(location, table.column(i), name, types[name], start) for i, name in enumerate(types)]
    return pa.Table.from_arrays(columns, schema=pa.schema(list(types.items())))


def _typed(location: str, text: pa.ChunkedArray, name: str, kind: pa.DataType, start: int) -> pa.ChunkedArray:
    if kind == pa.string():
        return text
    present = _present(text)
    numbers = _as(present, kind)
    if numbers is not None:
        return numbers
    row = next(row for row in range(len(present)) if _as(present.slice(row, 1), kind) is None)
    expected = np.dtype(kind.to_pandas_dtype())
    raise DataError(
        f"{location}: {spell_row(start + row)}, column {quoted(name)}: expected {expected} as in the first rows, "
        f"got {present[row].as_py()[:60]!r}; a CSV output keeps it as it is"
    )


def _present(text: pa.ChunkedArray) -> pa.ChunkedArray:
    # Not if_else: before pyarrow 24 it returns wrong bytes for text that begins inside a buffer.
    return pc.case_when(pc.make_struct(pc.not_equal(text, "")), text)


def _as(text: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """Return the values as numbers, or None if one of them would lose something."""
    try:
        numbers = text.cast(kind)
    except pa.ArrowInvalid:
        return None
    same = pc.equal(numbers.cast(pa.string()), text)
    if kind != pa.float64():
        return numbers if pc.all(same).as_py() is not False else None
    unlike = text.filter(pc.invert(pc.or_(same, pc.match_substring_regex(text, _SHORT))))
    return numbers if all(map(_is_double, unlike.to_pylist())) else None


def _is_double(text: str) -> bool:
    """Return true if a double is this number, or is written so with the same number of digits."""
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
