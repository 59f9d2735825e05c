"""Convert Arrow columns to plain values without categories, to text, to keys of 64 bits, and to NumPy arrays."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from decimal import Decimal

import numpy as np
import pyarrow as pa

from kafeat.io.columns.numbers import indices_of, is_number, is_text, to_doubles
from kafeat.types import Array

TEXT = pa.large_string()
_MICROSECONDS = (
    (r"(\d\d:\d\d:\d\d)($|[Z+-])", r"\1.000000\2"),
    (r"(\.\d{3})($|[Z+-])", r"\1000\2"),
    (r"(\.\d{6})000($|[Z+-])", r"\1\2"),
)
"""Patterns of times with other than six decimals of a second, and replacements that have six."""


def widened(values: pa.Array) -> pa.Array:
    """Return float16 as float32, which holds the same values: Arrow cannot format float16."""
    return values.cast(pa.float32()) if pa.types.is_float16(values.type) else values


def as_text(values: pa.Array, null: str | pa.Scalar | None = None) -> pa.Array:
    """Return the values as text. Nulls become the text `null`. If `null` is None, nulls stay null."""
    text = widened(values).cast(TEXT)
    return text.fill_null(null) if null is not None and text.null_count else text


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with simpler types: categories, runs and views become the values that they stand for."""
    kind = plain(pa.nulls(0, column.type)).type
    return pa.chunked_array([plain(chunk) for chunk in column.chunks], kind)


def plain(values: pa.Array) -> pa.Array:
    """Return an array with a simpler type: categories, runs and views become the values that they stand for."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(values.indices, plain(values.dictionary)).dictionary_decode()
    if pa.types.is_run_end_encoded(kind):
        import pyarrow.compute as pc  # slow to import

        return plain(pc.run_end_decode(values))
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return values.cast(pa.string() if pa.types.is_string_view(kind) else pa.binary())
    return values


def column_values(column: pa.ChunkedArray) -> Array | None:
    """Return numbers (null is NaN), or text as in `text_values`, or None for a column of another type."""
    column = column if is_text(column.type) else decoded(column)
    if is_text(column.type):
        return text_values(column)
    return _numbers(column) if is_number(column.type) else None


def text_values(column: pa.ChunkedArray) -> Array:
    """Return a column of text as an array of objects. Equal texts are one object, and null is None."""
    if pa.types.is_dictionary(column.type):
        parts = column.chunks
    else:
        parts = [part.dictionary_encode() for part in decoded(column).chunks]
    words = [np.array([*part.dictionary.to_pylist(), None], dtype=object) for part in parts]
    codes = [indices_of(part, len(part.dictionary)) for part in parts]
    return np.concatenate(
        [np.empty(0, dtype=object), *(one[code] for one, code in zip(words, codes, strict=True))]
    )


def numbers_or_text(column: pa.ChunkedArray) -> Array:
    """Return a column like `column_values`, and a column of another type, such as times, as text.

    Times become text with microseconds, because parts of a data set may store equal times in different units.
    """
    values = column_values(column)
    if values is None:
        column = decoded(column)
        text = pa.chunked_array([as_text(part) for part in column.chunks], TEXT)
        if pa.types.is_timestamp(column.type) or pa.types.is_time(column.type):
            import pyarrow.compute as pc

            for pattern, spelled in _MICROSECONDS:
                text = pc.replace_substring_regex(text, pattern, spelled)
        return text_values(text)
    return values


def _numbers(column: pa.ChunkedArray) -> Array:
    """Return numbers in their stored type. But float32 becomes float64, and decimals become integers or float64."""
    if pa.types.is_float32(column.type):  # the double of the same spelling: 0.1, not 0.10000000149
        column = column.cast(pa.string()).cast(pa.float64())
    if not pa.types.is_decimal(column.type):
        return column.to_numpy()
    for kind in (pa.int64(), pa.uint64()) if column.type.scale <= 0 else ():
        with suppress(pa.ArrowInvalid):
            return column.cast(kind).to_numpy()
    return np.concatenate([np.empty(0), *map(to_doubles, column.chunks)])


def null_rows(column: pa.ChunkedArray, values: Array) -> Array:
    """Return a mask of the rows of a column that are null. `values` is the result of `column_values`."""
    if values.dtype.kind == "O":
        return values == np.array(None)
    return decoded(column).is_null().to_numpy()


def missing_rows(column: pa.ChunkedArray, words: Collection[str] = ()) -> Array:
    """Return a mask of the rows of a column that are null, NaN, blank text or one of the `words`."""
    import pyarrow.compute as pc

    column = decoded(column)
    if is_text(column.type):
        blank = pc.is_in(pc.utf8_trim_whitespace(column), pa.array(["", *words], column.type))
        return pc.or_(column.is_null(), blank).to_numpy()
    return column.is_null(nan_is_null=True).to_numpy()


def different_decimals(column: pa.ChunkedArray) -> set[Decimal]:
    """Return the distinct values of a column of decimals, or an empty set for other types."""
    column = decoded(column)
    return set(column.unique().to_pylist()) if pa.types.is_decimal(column.type) else set()


_MISSING = np.float64(np.nan).view(np.uint64)


def bits_or_text(column: pa.ChunkedArray) -> Array:
    """Return 64-bit keys (n,) for a column of numbers, and texts as objects (n,) for other columns.

    Equal whole numbers of all types have the same key, without loss of digits. Null has the key of NaN.
    """
    column = column if is_text(column.type) else decoded(column)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if pa.types.is_integer(column.type):
        # With a null, Arrow makes doubles, in which large numbers lose digits.
        return np.where(column.is_null().to_numpy(), _MISSING, _bits(column.fill_null(0).to_numpy()))
    if pa.types.is_decimal(column.type):
        different = column.unique().to_pylist()
        known = dict(zip(different, map(_bits_of_decimal, different), strict=True))
        return np.array([known[value] for value in column.to_pylist()], dtype=np.uint64)
    values = numbers_or_text(column)
    return values if values.dtype.kind == "O" else _bits(values)


def _bits_of_decimal(value: Decimal | None) -> int:
    """Return the key (see `bits_or_text`) of a decimal: a whole number, or the bits of the nearest double."""
    if value is None:
        return int(_MISSING)
    whole = value == int(value) and -(1 << 63) <= value < 1 << 64
    return int(value) % (1 << 64) if whole else int(np.float64(value).view(np.uint64))


def _bits(values: Array) -> Array:
    """Return a 64-bit key for each number, the same for equal whole numbers of any type."""
    if values.dtype.kind in "iub":
        return values.astype(np.int64).view(np.uint64)
    numbers = values.astype(np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    whole = (numbers == np.floor(numbers)) & (np.abs(numbers) < 2.0**63)
    bits = numbers.view(np.uint64).copy()
    bits[whole] = numbers[whole].astype(np.int64).view(np.uint64)
    return bits
