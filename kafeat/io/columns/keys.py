"""Values of a column of groups as 64 bits, the same for equal ones, whatever type, unit or chunk they come in."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa

from kafeat.io.columns.numbers import is_text
from kafeat.io.columns.values import decoded, numbers_or_text
from kafeat.types import Array

_MISSING = np.float64(np.nan).view(np.uint64)


def bits_or_text(column: pa.ChunkedArray) -> Array:
    """Return 64 bits for each number, the same for a whole number of any type; a column of another type as text."""
    column = column if is_text(column.type) else decoded(column)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if pa.types.is_integer(column.type):  # beside a null, Arrow would give doubles, which merge large numbers
        return np.where(column.is_null().to_numpy(), _MISSING, _bits(column.fill_null(0).to_numpy()))
    if pa.types.is_decimal(column.type):
        different = column.unique().to_pylist()
        known = dict(zip(different, map(_bits_of_decimal, different), strict=True))
        return np.array([known[value] for value in column.to_pylist()], dtype=np.uint64)
    values = numbers_or_text(column)
    return values if values.dtype.kind == "O" else _bits(values)


def _bits_of_decimal(value: Decimal | None) -> int:
    """Return the bits of the whole number, or of the nearest double."""
    if value is None:
        return int(_MISSING)
    whole = value == int(value) and -(1 << 63) <= value < 1 << 64
    return int(value) % (1 << 64) if whole else int(np.float64(value).view(np.uint64))


def _bits(values: Array) -> Array:
    """Return 64 bits for each number, the same for a whole number of any type."""
    if values.dtype.kind in "iub":
        return values.astype(np.int64).view(np.uint64)
    numbers = values.astype(np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    whole = (numbers == np.floor(numbers)) & (np.abs(numbers) < 2.0**63)
    bits = numbers.view(np.uint64).copy()
    bits[whole] = numbers[whole].astype(np.int64).view(np.uint64)
    return bits
