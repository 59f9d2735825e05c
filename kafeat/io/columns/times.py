"""Convert timestamps, dates and ISO 8601 text to seconds since 1970-01-01 in UTC. All formats agree to the bit.

A time without a zone is taken as it is, as if it was in UTC. A plain number is a number of seconds already.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafeat.io.columns.numbers import indices_of, is_text, stored, to_doubles, valid

Seconds = npt.NDArray[np.float64]

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY = 86_400
# All that Arrow's own parser accepts, with any number of digits behind the point.
_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?(?:(Z)|([+-])(\d\d)(?::?(\d\d))?)?)?",
    re.ASCII,
)
_OF_TEXT = (
    *(pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC")),
    pa.float64(),
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_seconds(values: pa.Array) -> Seconds:
    """Return seconds since 1970 (UTC), with NaN for missing values and for text that is no time."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        table = np.append(to_seconds(values.dictionary), np.nan)
        return cast(Seconds, table[indices_of(values, len(table) - 1)])
    if is_text(kind):
        return _text_to_seconds(values)
    if not pa.types.is_temporal(kind):
        return to_doubles(values)
    if pa.types.is_date(kind):
        values = values.cast(pa.timestamp("s"))
    counts = values.cast(pa.int64())
    return _joined(stored(counts), _PER_SECOND[values.type.unit], counts)


def text_to_seconds(words: Sequence[str]) -> Seconds:
    """Return the same of text in memory."""
    return to_seconds(pa.array(words, pa.string()))


def _joined(counts: npt.NDArray[np.int64], per_second: int, values: pa.Array) -> Seconds:
    """Return counts of a unit as seconds. No rounding carries a time into the second after it."""
    whole, rest = np.divmod(counts, per_second)
    seconds = whole + rest / per_second
    seconds = np.where(seconds < whole + 1.0, seconds, np.nextafter(whole + 1.0, -np.inf))
    return np.where(valid(values), seconds, np.nan) if values.null_count else seconds


def _text_to_seconds(values: pa.Array) -> Seconds:
    import pyarrow.compute as pc  # slow to import

    text = pc.utf8_trim_whitespace(values.cast(pa.string()))
    text = pc.if_else(pc.equal(text, ""), None, text)
    first = text.drop_null()[:1]
    for kind in _OF_TEXT:
        try:
            # The first value alone, as a failure of many values takes a thousand times as long.
            first.cast(kind)
            return to_seconds(text.cast(kind))
        except pa.ArrowInvalid:
            continue
    different = text.dictionary_encode()
    table = np.array([_one(value) for value in different.dictionary.to_pylist()] + [np.nan])
    return cast(Seconds, table[indices_of(different, len(table) - 1)])


def _one(text: str) -> float:
    parts = _ISO.fullmatch(text)
    if parts is None:
        return _number(text)
    year, month, day, hour, minute, second, fraction, _, sign, zone_hours, zone_minutes = parts.groups("0")
    try:
        time = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=UTC)
    except ValueError:
        return np.nan
    offset = timedelta(hours=int(zone_hours), minutes=int(zone_minutes))
    if int(zone_hours) > 23 or int(zone_minutes) > 59:
        return np.nan
    since = time - _EPOCH
    whole = since.days * _DAY + since.seconds
    whole -= round(offset.total_seconds()) * (-1 if sign == "-" else 1)
    part = int(fraction) / 10 ** len(fraction)
    return float(min(whole + part, math.nextafter(whole + 1.0, -math.inf)))


def _number(text: str) -> float:
    """Return a number as Arrow reads it, and NaN for other text: true is 1 as a number, but no time."""
    try:
        return float(pa.scalar(text).cast(pa.float64()).as_py())
    except pa.ArrowInvalid:
        return np.nan


def spell_time_problem(value: object) -> str:
    """Describe a value that is no time."""
    got = "null" if value is None or (isinstance(value, str) and not value.strip()) else value
    got = repr(got[:60]) if isinstance(got, str) and got != "null" else got
    return f"expected a time such as 2024-02-29 or 2024-02-29T12:30:00Z, got {got}"
