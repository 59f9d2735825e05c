"""The unit of INT96 timestamps of Parquet: a day, and nanoseconds in it. Arrow wraps what 64 bits do not hold."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kafeat.errors import DataError, quoted, spell_row
from kafeat.io.columns.numbers import stored
from kafeat.io.readers.table import cut
from kafeat.types import Array

Unit = Literal["s", "us", "ns"]
_PER_SECOND: dict[Unit, int] = {"us": 10**6, "ns": 10**9}
_ROWS = 1 << 16


def exact_unit(location: str, name: str, in_seconds: pq.ParquetFile, in_nanoseconds: pq.ParquetFile) -> Unit:
    """Return the unit in which every value of a column is exact: microseconds if there are no digits below them.

    Both files are the same one, read in these units. A value that the unit does not hold is refused.
    """
    unit: Unit = "us"
    beyond: dict[Unit, tuple[int, int]] = {}
    pieces = [cut(file.iter_batches(_ROWS, columns=[name]), _ROWS) for file in (in_seconds, in_nanoseconds)]
    for (row, coarse), (_, fine) in zip(*pieces, strict=True):
        seconds, counts = (_counts(table.column(name)) for table in (coarse, fine))
        # Seconds hold every day. The counts may have wrapped; the product wraps alike, so the difference is right.
        rest = counts - seconds * _PER_SECOND["ns"]
        unit = "ns" if (rest % 1000).any() else unit
        for each, per_second in _PER_SECOND.items():
            held = seconds * per_second + rest // (_PER_SECOND["ns"] // per_second)
            for place in np.flatnonzero(held // per_second != seconds)[:1]:
                beyond.setdefault(each, (row + int(place), int(seconds[place])))
    if unit in beyond:
        row, second = beyond[unit]
        why = ", as other values have digits below a microsecond" if unit == "ns" else ""
        raise DataError(
            f"{location}: {spell_row(row)}, column {quoted(name)}: expected a time that 64 bits of "
            f"{'nano' if unit == 'ns' else 'micro'}seconds can hold{why}, got {np.datetime64(second, 's')}; "
            "leave the column out, or write it as text"
        )
    return unit


def _counts(column: pa.ChunkedArray) -> Array:
    """Return the stored numbers of timestamps, and 0 for null."""
    return stored(column.cast(pa.int64()).fill_null(0).combine_chunks())
