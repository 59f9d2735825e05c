"""Whole columns of numbers or text as NumPy arrays, for labels and what stands beside them."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal

import numpy as np
import pyarrow as pa

from kafeat.io.columns.numbers import indices_of, is_number, is_text, to_doubles
from kafeat.io.writers.passthrough import decoded
from kafeat.types import Array


def column_values(column: pa.ChunkedArray) -> Array | None:
    """Return numbers, or text as `text_values` does; None for a column of another type. A null of numbers is NaN."""
    column = column if is_text(column.type) else decoded(column)
    if is_text(column.type):
        return text_values(column)
    return _numbers(column) if is_number(column.type) else None


def text_values(column: pa.ChunkedArray) -> Array:
    """Return a column of text as an array of objects, of which equal ones are one object, and None for null."""
    if pa.types.is_dictionary(column.type):
        parts = column.chunks
    else:
        parts = [part.dictionary_encode() for part in decoded(column).chunks]
    words = [np.array([*part.dictionary.to_pylist(), None], dtype=object) for part in parts]
    codes = [indices_of(part, len(part.dictionary)) for part in parts]
    return np.concatenate(
        [np.empty(0, dtype=object), *(one[code] for one, code in zip(words, codes, strict=True))]
    )


def _numbers(column: pa.ChunkedArray) -> Array:
    """Return numbers as they are stored; decimals as whole numbers if their type has no others."""
    if pa.types.is_float32(column.type):  # the number that text has: 0.1, not 0.10000000149
        column = column.cast(pa.string()).cast(pa.float64())
    if not pa.types.is_decimal(column.type):
        values: Array = column.to_numpy()
        return values
    for kind in (pa.int64(), pa.uint64()) if column.type.scale <= 0 else ():
        with suppress(pa.ArrowInvalid):
            values = column.cast(kind).to_numpy()
            return values
    return np.concatenate([np.empty(0), *map(to_doubles, column.chunks)])


def null_rows(column: pa.ChunkedArray, values: Array) -> Array:
    """Return true for the rows of a column with these values that are null."""
    if values.dtype.kind == "O":
        missing: Array = values == np.array(None)
        return missing
    nulls: Array = decoded(column).is_null().to_numpy()
    return nulls


def different_decimals(column: pa.ChunkedArray) -> set[Decimal]:
    """Return the different values of a column of decimals; none of another column."""
    column = decoded(column)
    return set(column.unique().to_pylist()) if pa.types.is_decimal(column.type) else set()
