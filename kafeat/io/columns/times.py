"""Convert timestamps, dates and text to seconds since 1970-01-01 in the local time of a zone, the same in all formats.

A time without a zone is not shifted. A plain number is a number of seconds since 1970 in UTC.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC as UTC_ZONE
from datetime import datetime
from functools import lru_cache
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafeat.io.columns.dialect import EPOCHS, ISO, KEEP, UTC, Dialect
from kafeat.io.columns.numbers import doubles, indices_of, is_text, stored, to_doubles, valid, without_nulls
from kafeat.io.columns.values import decoded

Seconds = npt.NDArray[np.float64]

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY = 86_400
ZONES = "MES?Z|[CEW]ES?T|[ECMPA][SD]T|AK[SD]T|HST|BST|IST|MSK|[JK]ST|SGT|HKT|AE[SD]T|NZ[SD]T"
"""Abbreviations of zones after a time. They are allowed, and ignored, only if hours are read as written (`keep`)."""
MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan jän gen ene", "feb fev fév", "mar mär mrz maa", "apr abr avr", "may mai maj mei mag", "jun juin giu",
            "jul juil lug", "aug ago aoû aou", "sep set", "oct okt ott out", "nov", "dec dez dic déc des",
        ), 1,
    )
    for name in names.split()
}  # fmt: skip
"""Beginnings of the names of months in English, German, Dutch, Scandinavian and Romance languages."""
_MONTH = r"(?P<name>[a-zäéûçÄÉÛÇ]{3,10})\.?"
PARTS = {
    "Y": r"(?P<year>\d{4})", "y": r"(?P<short>\d\d)", "m": r"(?P<month>\d{1,2})", "d": r"(?P<day>\d{1,2})",
    "b": _MONTH, "B": _MONTH, "a": r"[a-zà-ÿ]{1,20}\.?", "A": r"[a-zà-ÿ]{1,20}\.?",
    "H": r"(?P<hour>\d{1,2})", "I": r"(?P<hour>\d{1,2})", "M": r"(?P<minute>\d\d)", "S": r"(?P<second>\d\d)",
    "f": r"(?P<fraction>\d{1,40})", "p": r"(?P<half>[ap])\.?m\.?", "%": "%",
    "z": r"(?:(?P<utc>Z|UTC|GMT)|(?P<sign>[+-])(?P<zone_hours>\d\d)(?::?(?P<zone_minutes>\d\d))?|(?P<zone>"
    rf"{ZONES}))",
}  # fmt: skip
"""The pattern of each letter after % in a date format. Repeats are limited, because a model file is untrusted."""
# An optional time of day after a date. It accepts at least what Arrow's parser accepts, because Arrow is tried first.
TIME_OF_DAY = (
    rf"(?:(?:T|,? (?:(?:klo?|um|om|at|à|às|a las|alle)\.? )?){PARTS['H']}"
    rf"(?:(?P<mark>[:.h]){PARTS['M']}(?:(?P=mark){PARTS['S']}(?:\.{PARTS['f']})?)?)?"
    rf"(?: ?{PARTS['p']})?(?: ?(?:uhr|hrs?|h))?"
    rf"(?: ?{PARTS['z']})?)?"
)
_JOINED = re.compile("%[YymdHMS]%[mdHMS]")
_OFFSET = r"([T ]\d\d(?::\d\d(?::\d\d(?:\.\d+)?)?)?)(?:Z|[+-]\d\d(?::?\d\d)?)$"
_OF_TEXT = (*(pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC")),)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC_ZONE)
_ZONE = re.compile(r"[A-Za-z0-9_+\-/:]{1,64}")
_MOST_SECONDS = 1e12
"""Times from here on (in seconds) are beyond the years that a map accepts, so they are not converted to a zone."""


def to_seconds(values: pa.Array, dialect: Dialect) -> Seconds:
    """Return seconds since 1970 in the local time of the dialect's zone; NaN for missing values and other text."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        table = np.append(to_seconds(values.dictionary, dialect), np.nan)
        return cast(Seconds, table[indices_of(values, len(table) - 1)])
    if is_text(kind):
        return _text_to_seconds(values, dialect)
    if not pa.types.is_temporal(kind):
        return local_seconds(to_doubles(values) / EPOCHS.get(dialect.dates, 1.0), dialect.timezone)
    if pa.types.is_date(kind):
        values = values.cast(pa.timestamp("ms" if pa.types.is_date64(kind) else "s"))
    counts, per_second = values.cast(pa.int64()), _PER_SECOND[values.type.unit]
    whole, rest = np.divmod(stored(counts), per_second)
    seconds = _without_carry(whole, rest / per_second)
    seconds = np.where(valid(counts), seconds, np.nan) if counts.null_count else seconds
    return seconds if values.type.tz is None else local_seconds(seconds, dialect.timezone)


def column_seconds(column: pa.ChunkedArray, dialect: Dialect) -> Seconds:
    """Return the values of all chunks of a column in seconds, as `to_seconds` does for one."""
    return np.concatenate([np.empty(0), *(to_seconds(part, dialect) for part in decoded(column).chunks)])


def local_seconds(instants: Seconds, zone: str) -> Seconds:
    """Convert instants (seconds since 1970 in UTC) to the local time of a zone, also as seconds since 1970."""
    if zone in (UTC, KEEP):
        return instants
    import pyarrow.compute as pc

    known = np.abs(instants) < _MOST_SECONDS
    whole = np.floor(np.where(known, instants, 0.0))
    at = pa.array(whole.astype(np.int64)).cast(pa.timestamp("s", zone))
    local = stored(pc.local_timestamp(at).cast(pa.int64()))
    shifted = _without_carry(local, instants - whole)
    return np.where(known, shifted, instants)


def check_timezone(zone: object) -> str:
    """Return the zone: `UTC`, `keep` or a time zone that this machine knows. Raise ValueError for anything else."""
    if zone in (UTC, KEEP):
        return str(zone)
    expected = f"expected {KEEP}, {UTC} or a name such as America/New_York, got {zone!r:.60}"
    if not isinstance(zone, str) or not _ZONE.fullmatch(zone):
        raise ValueError(expected)
    import pyarrow.compute as pc

    try:
        pc.local_timestamp(pa.array([0], pa.timestamp("s", zone)))
    except (pa.ArrowException, ValueError):
        raise ValueError(f"{expected}; does this machine have the names of zones (tzdata)?") from None
    return zone


def _without_carry(whole: npt.NDArray[np.int64], fraction: Seconds) -> Seconds:
    """Return the sum of whole seconds and fractions below 1, rounded so that it stays below the next second."""
    seconds = whole + fraction
    return np.where(seconds < whole + 1.0, seconds, np.nextafter(whole + 1.0, -np.inf))


def _text_to_seconds(values: pa.Array, dialect: Dialect) -> Seconds:
    import pyarrow.compute as pc  # slow to import

    text = without_nulls(values.cast(pa.string()), dialect)
    if dialect.dates in EPOCHS:
        return local_seconds(to_doubles(text) / EPOCHS[dialect.dates], dialect.timezone)
    first = text.drop_null()[:1]
    kinds = _OF_TEXT if dialect.dates == ISO else (*_OF_TEXT, pa.float64()) if not dialect.dates else ()
    if kinds and dialect.timezone == KEEP and pc.match_substring_regex(first, _OFFSET).true_count:
        text = pc.replace_substring_regex(text, _OFFSET, r"\1")
        first = text.drop_null()[:1]
    for kind in kinds:
        try:
            # Try the first value only, because a failure of many values takes a thousand times as long.
            first.cast(kind)
            return to_seconds(text.cast(kind), dialect)
        except pa.ArrowInvalid:
            continue
    different = text.dictionary_encode()
    parsed = [parse_time(word, dialect) for word in different.dictionary.to_pylist()]
    table = np.array([*(seconds for seconds, _ in parsed), np.nan])
    instant = np.array([*(instant for _, instant in parsed), False])
    table[instant] = local_seconds(table[instant], dialect.timezone)
    return cast(Seconds, table[indices_of(different, len(table) - 1)])


def has_offset(text: str) -> bool:
    """Return true for a time with an offset from UTC at its end."""
    offset = rf":\d\d.{{0,40}}(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?|{ZONES})$"
    return re.search(offset, text.strip(), re.ASCII) is not None


@lru_cache(maxsize=64)
def time_pattern(form: object) -> re.Pattern[str]:
    """Return the pattern of a date format, and of an optional time of day. Raise ValueError for an invalid format."""
    expected = "expected %s, %Q, or year, month and day, such as %d.%m.%Y, with letters of strftime"
    if not isinstance(form, str) or len(form) > 100 or not form.isprintable():
        raise ValueError(f"{expected}, got {form!r:.60}")
    letters = re.findall("%(.?)", form)
    once = f"{expected}, each of them once, got {form!r}"
    signs = [letter for letter in letters if letter != "%"]
    if len(set(signs)) < len(signs):  # with %a%a, the pattern would try every split of a text
        raise ValueError(once)
    if form not in EPOCHS:
        clock = set("HI") & set(letters) and not set("Yymbd") & set(letters)  # a time of day, on 1970-01-01
        dated = clock or (set("Yy") & set(letters) and set("mbB") & set(letters))
        if not dated or not set(letters) <= set(PARTS):
            raise ValueError(f"{expected}, got {form!r}")
    pieces = re.split("%(.)", form)
    pattern = "".join(PARTS.get(piece, "") if i % 2 else re.escape(piece) for i, piece in enumerate(pieces))
    if _JOINED.search(form):  # in %d%m, days and months need two digits each
        pattern = pattern.replace(r"\d{1,2}", r"\d\d") + r"(?:\.0)?"
    if not set("HI") & set(letters):
        pattern += TIME_OF_DAY
    elif "z" not in letters:
        pattern += rf"(?: ?{PARTS['z']})?"
    try:
        return re.compile(pattern, re.ASCII | re.IGNORECASE)
    except re.error:
        raise ValueError(once) from None


def parse_time(text: str, dialect: Dialect) -> tuple[float, bool]:
    """Return the seconds of a time (NaN for other text), and true if they are in UTC, false if in local time."""
    found = time_pattern(dialect.dates or ISO).fullmatch(text)
    if dialect.dates in EPOCHS or (found is None and not dialect.dates):
        number = doubles([text])  # not `to_doubles`, which reads true as 1
        return (math.nan if number is None else float(number[0]) / EPOCHS.get(dialect.dates, 1.0)), True
    parts = {} if found is None else found.groupdict()
    named = parts.get("zone") is not None and dialect.timezone != KEEP
    written = None if found is None or named else _written(parts)
    if written is None:
        return math.nan, False
    whole, fraction, offset = written
    instant = offset is not None and dialect.timezone != KEEP
    whole -= (offset or 0) if instant else 0
    return float(min(whole + fraction, math.nextafter(whole + 1.0, -math.inf))), instant


def _written(parts: Mapping[str, str | None]) -> tuple[int, float, int | None] | None:
    """Return whole seconds since 1970, their fraction, and the offset in seconds (None if the text has none).

    `parts` are the named groups of a date pattern. The result is None if there is no such date, such as 30 February.
    """
    number = {"year": 1970, "month": 1, "day": 1}  # the date if the text is only a time of day
    number |= {name: int(part) for name, part in parts.items() if part is not None and part.isdigit()}
    month = (parts.get("name") or "").lower()
    if month:
        number["month"] = MONTHS.get(month[:4], MONTHS.get(month[:3], 0))
    if "short" in number:  # strptime's rule for years of two digits
        number["year"] = number["short"] + (2000 if number["short"] < 69 else 1900)
    hour = number.get("hour", 0)
    half = (parts.get("half") or "").lower()
    if half:
        hour = hour % 12 + 12 * (half == "p") if 1 <= hour <= 12 else 99
    minutes, seconds = number.get("minute", 0), number.get("second", 0)
    zone_hours, zone_minutes = number.get("zone_hours", 0), number.get("zone_minutes", 0)
    fraction = parts.get("fraction") or "0"
    midnight = hour == 24 and not (minutes or seconds or int(fraction))  # 24:00 is the end of the day
    try:
        day = (number["year"], number["month"], number["day"])
        time = datetime(*day, hour * (not midnight), minutes, seconds, tzinfo=UTC_ZONE)
    except ValueError:
        return None
    if zone_hours > 23 or zone_minutes > 59:
        return None
    since = time - _EPOCH
    offset = (zone_hours * 60 + zone_minutes) * (-60 if parts.get("sign") == "-" else 60)
    has_offset = parts.get("sign") is not None or parts.get("utc") is not None
    whole = (since.days + midnight) * _DAY + since.seconds
    return whole, int(fraction) / 10 ** len(fraction), offset if has_offset else None
