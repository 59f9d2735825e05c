"""Compare the passthrough columns of an output with those of its input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafeat.io.writers.csv import TEXT
from kafeat.io.writers.passthrough import decoded
from kafeat.types import Mask

KeptRows: TypeAlias = pa.Table
"""Passthrough columns of some rows."""


@dataclass(frozen=True)
class ValueDifference:
    """The first different value: its row among those compared, its column, and both values as text."""

    row: int
    column: str
    expected: str
    got: str


def taken(passthrough: KeptRows, good: Mask) -> KeptRows:
    """Return the rows that are good."""
    return passthrough.filter(pa.array(good))


def difference(expected: KeptRows, got: KeptRows) -> ValueDifference | None:
    """Return the first difference of two tables with the same columns and number of rows, or None.

    Values are compared in the type that was written. In text, a null equals an empty text. NaN equals NaN.
    """
    differences = [
        ValueDifference(row, name, _shown(ours[row]), _shown(theirs[row]))
        for name, ours, theirs in zip(expected.column_names, expected.columns, got.columns, strict=True)
        if (row := _first(ours, theirs)) is not None
    ]
    return min(differences, key=lambda one: one.row, default=None)


def _first(ours: pa.ChunkedArray, theirs: pa.ChunkedArray) -> int | None:
    ours, theirs = decoded(ours), decoded(theirs)
    if not ours.type.equals(theirs.type):
        try:
            ours = ours.cast(theirs.type)
        except pa.ArrowException:  # other values may not fit this type
            ours, theirs = ours.cast(TEXT), theirs.cast(TEXT)
    if pa.types.is_nested(theirs.type):
        pairs = zip(ours, theirs, strict=True)
        return next((row for row, (one, other) in enumerate(pairs) if not one.equals(other)), None)
    if theirs.type in (TEXT, pa.string()):
        ours, theirs = pc.fill_null(ours, ""), pc.fill_null(theirs, "")
    same = pc.fill_null(pc.equal(ours, theirs), False)
    same = pc.or_(same, pc.and_(pc.is_null(ours, nan_is_null=True), pc.is_null(theirs, nan_is_null=True)))
    other = np.flatnonzero(~same.to_numpy())
    return int(other[0]) if len(other) else None


def _shown(value: pa.Scalar) -> str:
    return repr(value.as_py())[:60]
