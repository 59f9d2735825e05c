"""Convert passthrough columns to types that a format can store, and compare them with those of the input.

A column that cannot be converted is an error before anything is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from kafeat.errors import DataError, InvalidValueError, UsageError, quoted
from kafeat.io.columns.numbers import is_text, storage_of
from kafeat.io.columns.values import TEXT, as_text, decoded, plain
from kafeat.io.formats import FORMATS, Format
from kafeat.types import Mask


class PassthroughColumns:
    """The passthrough columns of an output. `schema` has the types in which its format stores them."""

    def __init__(self, location: str, format: Format, schema: pa.Schema) -> None:
        self._format = format
        held: dict[pa.DataType, bool] = {}
        for field in schema:
            if field.type not in held:
                held[field.type] = _held(format, field.type)
            if not held[field.type]:
                raise UsageError(
                    f"{location}: column {quoted(field.name)}: expected a passthrough column that {format.title} can "
                    f"hold, got {field.type}; {_remedy(format)}"
                )
        self.schema = pa.schema(
            [f.with_type(written(f.type, format)) for f in schema], metadata=schema.metadata
        )
        self._limited = [field.name for field in schema if is_limited(field.type, format)]

    def table(self, passthrough: pa.Table, good: Mask | None = None) -> pa.Table:
        """Convert rows to the written types. Raise InvalidValueError if a good row has an unsupported value."""
        for name in self._limited:
            self._check(name, passthrough.column(name), good)
        fields = [f.with_type(written(f.type, self._format)) for f in passthrough.schema]
        columns = [_as(column, f.type) for column, f in zip(passthrough.columns, fields, strict=True)]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=passthrough.schema.metadata))

    def _check(self, name: str, column: pa.ChunkedArray, good: Mask | None) -> None:
        if beyond(column, self._format) is None:
            return
        for row in range(len(column)) if good is None else map(int, np.flatnonzero(good)):
            value = beyond(column.slice(row, 1), self._format)
            if value is not None:
                got = quoted(value.as_py()) if is_text(value.type) else digits(value)
                raise InvalidValueError(
                    row,
                    name,
                    f"expected a {value.type} that {self._format.title} can hold, got {got}; "
                    f"{_remedy(self._format)}",
                )


def refuse_nested(location: str, schema: pa.Schema) -> None:
    """Raise DataError for passthrough columns of nested, run-end encoded or view types. Categories are allowed."""
    for field in schema:
        stored = storage_of(field.type)
        target = plain(pa.nulls(0, stored)).type
        nested = pa.types.is_nested(target)
        if nested or not (target == stored or pa.types.is_dictionary(stored)):
            raise DataError(
                f"{location}: column {quoted(field.name)}: expected a passthrough column of plain values, got "
                f"{field.type}; cast it first, to {'text or to one column for each value' if nested else target}, "
                "or leave it out of --keep"
            )


def _remedy(format: Format) -> str:
    others = [
        one.title
        for one in FORMATS.values()
        if one.typed and one.passthrough == "columns" and one is not format
    ]
    return f"leave it out of --keep, or write {' or '.join(others)}"


def _as(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_dictionary(kind):
        return pa.chunked_array([_coded(chunk) for chunk in column.chunks], kind)
    return column if column.type == kind else decoded(column)


def _held(format: Format, kind: pa.DataType) -> bool:
    """Return true if values of the type can be written. pyarrow shows this only when writing, here zero rows."""
    target = written(kind, format)
    try:
        column = _as(pa.chunked_array([pa.nulls(0, kind)], kind), target)
        if format.text:
            return _has_text(storage_of(target))
        if format.parquet_types:
            import pyarrow.parquet as pq

            pq.write_table(pa.table({"k": column}), pa.BufferOutputStream())
        else:
            column.take(pa.array([], pa.int64()))
    except (pa.ArrowException, NotImplementedError, OSError):
        return False
    return True


def _has_text(kind: pa.DataType) -> bool:
    """Return false for bytes, which Arrow does not format as text, and true for the other plain types.

    Types that Arrow cannot format at all raise one of Arrow's errors.
    """
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return False
    # Arrow looks up the time zone only if there is a value.
    as_text(pa.array([0]).cast(kind) if pa.types.is_timestamp(kind) else pa.array([], kind))
    return True


def written(kind: pa.DataType, format: Format) -> pa.DataType:
    """Return the type in which a format stores values of a type. Categories become values, except texts in Parquet."""
    if not pa.types.is_dictionary(kind):
        return kind
    of_values = plain(pa.nulls(0, kind)).type
    coded = format.parquet_types and is_text(of_values)
    return pa.dictionary(kind.index_type, of_values, kind.ordered) if coded else of_values


def _coded(values: pa.DictionaryArray) -> pa.DictionaryArray:
    kind, words, codes = values.type, plain(values.dictionary), values.indices
    if words.null_count:  # Parquet has nulls in the indices, but not in the dictionary
        missing = words.is_null().to_numpy(zero_copy_only=False)
        codes = pa.array(np.cumsum(~missing) - 1, kind.index_type, mask=missing).take(codes)
        words = words.drop_null()
    return pa.DictionaryArray.from_arrays(codes, words, ordered=kind.ordered)


_BEYOND = "<value out of range"
"""The beginning of the text that Arrow returns for a time that it cannot format."""


def is_limited(kind: pa.DataType, format: Format) -> bool:
    """Return true if some dates, times or texts of a type cannot be stored in the format. `beyond` finds them."""
    kind = storage_of(kind)
    if pa.types.is_dictionary(kind):
        return is_limited(kind.value_type, format)
    if is_text(kind):
        return format.delimited
    if format.parquet_types:  # Parquet has neither times in seconds nor 64-bit dates
        return bool(pa.types.is_date64(kind) or (pa.types.is_timestamp(kind) and kind.unit == "s"))
    times = (pa.types.is_date, pa.types.is_time, pa.types.is_timestamp)
    return format.text and any(test(kind) for test in times)


def beyond(column: pa.ChunkedArray, format: Format) -> pa.Scalar | None:
    """Return a date, a time or a text with a NUL character that the format cannot store, or None."""
    import pyarrow.compute as pc  # slow to import

    for chunk in column.chunks:
        values = chunk.storage if isinstance(chunk, pa.ExtensionArray) else plain(chunk)
        if is_text(values.type):
            place = pc.index(pc.match_substring(values, "\0"), True).as_py()
            if place >= 0:
                return values[place]
            continue
        ends = pc.min_max(values)
        for end in (ends["min"], ends["max"]):
            if end.is_valid and not _fits(end, format):
                return end
    return None


def _fits(end: pa.Scalar, format: Format) -> bool:
    kind = end.type
    if format.text:
        return not str(end.cast(pa.string())).startswith(_BEYOND)
    if pa.types.is_date64(kind):
        return abs(digits(end)) // 86_400_000 < 2**31
    try:
        end.cast(pa.timestamp("ms", kind.tz))
    except pa.ArrowInvalid:
        return False
    return True


def digits(value: pa.Scalar) -> int:
    """Return the integer that represents a date or time in Arrow."""
    return int(value.cast(pa.int32() if value.type.bit_width == 32 else pa.int64()).as_py())


KeptRows: TypeAlias = pa.Table
"""The passthrough columns of some rows, as a table."""


@dataclass(frozen=True)
class ValueDifference:
    """The first different value: its row among the compared rows (from 0), its column, and both values as text."""

    row: int
    column: str
    expected: str
    got: str


def difference(expected: KeptRows, got: KeptRows) -> ValueDifference | None:
    """Return the first difference of two tables with the same columns and number of rows, or None.

    Values of `expected` are first converted to the types of `got`. In text, null equals an empty text. NaN equals NaN.
    """
    differences = [
        ValueDifference(row, name, _shown(ours[row]), _shown(theirs[row]))
        for name, ours, theirs in zip(expected.column_names, expected.columns, got.columns, strict=True)
        if (row := _first(ours, theirs)) is not None
    ]
    return min(differences, key=lambda one: one.row, default=None)


def _first(ours: pa.ChunkedArray, theirs: pa.ChunkedArray) -> int | None:
    import pyarrow.compute as pc

    ours, theirs = decoded(ours), decoded(theirs)
    missing = pc.and_(pc.is_null(ours, nan_is_null=True), pc.is_null(theirs, nan_is_null=True))
    if not ours.type.equals(theirs.type):
        try:
            ours = ours.cast(theirs.type)
        except pa.ArrowException:  # a value does not fit the type of the output
            ours, theirs = ours.cast(TEXT), theirs.cast(TEXT)
    if pa.types.is_nested(theirs.type):
        pairs = zip(ours, theirs, strict=True)
        return next((row for row, (one, other) in enumerate(pairs) if not one.equals(other)), None)
    if theirs.type in (TEXT, pa.string()):
        ours, theirs = pc.fill_null(ours, ""), pc.fill_null(theirs, "")
    same = pc.or_(pc.fill_null(pc.equal(ours, theirs), False), missing)
    other = np.flatnonzero(~same.to_numpy())
    return int(other[0]) if len(other) else None


def _shown(value: pa.Scalar) -> str:
    return repr(value.as_py())[:60]
