"""Convert timestamps, dates and text to seconds since 1970-01-01 on the clock of a zone. All formats agree to the bit.

A time without a zone stays as it is. A plain number is a number of seconds since 1970 in UTC.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC as UTC_ZONE
from datetime import datetime
from functools import lru_cache
from shlex import quote
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafeat.io.columns.dialect import EPOCHS, ISO, KEEP, SECONDS, UTC, Asked, Dialect
from kafeat.io.columns.number_forms import POWER, missed
from kafeat.io.columns.numbers import (
    doubles,
    far_ends,
    indices_of,
    is_text,
    stored,
    to_doubles,
    valid,
    without_nulls,
)
from kafeat.io.columns.values import decoded

Seconds = npt.NDArray[np.float64]

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY = 86_400
_ZONES = "MES?Z|[CEW]ES?T|[ECMPA][SD]T|AK[SD]T|HST|BST|IST|MSK|[JK]ST|SGT|HKT|AE[SD]T|NZ[SD]T"
"""Names of zones. They say what the clock showed, and are only read where hours stay as written."""
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan jän gen ene", "feb fev fév", "mar mär mrz maa", "apr abr avr", "may mai maj mei mag", "jun juin giu",
            "jul juil lug", "aug ago aoû aou", "sep set", "oct okt ott out", "nov", "dec dez dic déc des",
        ), 1,
    )
    for name in names.split()
}  # fmt: skip
"""Beginnings of the names of months in English, German, Dutch, Scandinavian and Romance languages, which agree."""
_MONTH = r"(?P<name>[a-zäéûçÄÉÛÇ]{3,10})\.?"
_PARTS = {
    "Y": r"(?P<year>\d{4})", "y": r"(?P<short>\d\d)", "m": r"(?P<month>\d{1,2})", "d": r"(?P<day>\d{1,2})",
    "b": _MONTH, "B": _MONTH, "a": r"[a-zà-ÿ]{1,20}\.?", "A": r"[a-zà-ÿ]{1,20}\.?",
    "H": r"(?P<hour>\d{1,2})", "I": r"(?P<hour>\d{1,2})", "M": r"(?P<minute>\d\d)", "S": r"(?P<second>\d\d)",
    "f": r"(?P<fraction>\d{1,40})", "p": r"(?P<half>[ap])\.?m\.?", "%": "%",
    "z": r"(?:(?P<utc>Z|UTC|GMT)|(?P<sign>[+-])(?P<zone_hours>\d\d)(?::?(?P<zone_minutes>\d\d))?|(?P<zone>"
    rf"{_ZONES}))",
}  # fmt: skip
"""Patterns of the letters after a % of a date format. All are bounded: model files name them in any order."""
# A time of day after a date, with all that Arrow's own parser accepts, and more.
_TIME_OF_DAY = (
    rf"(?:(?:T|,? (?:(?:klo?|um|om|at|à|às|a las|alle)\.? )?){_PARTS['H']}"
    rf"(?:(?P<mark>[:.]){_PARTS['M']}(?:(?P=mark){_PARTS['S']}(?:\.{_PARTS['f']})?)?)?"
    rf"(?: ?{_PARTS['p']})?(?: ?(?:uhr|hrs?|h))?"
    rf"(?: ?{_PARTS['z']})?)?"
)
_OFFSET = r"([T ]\d\d(?::\d\d(?::\d\d(?:\.\d+)?)?)?)(?:Z|[+-]\d\d(?::?\d\d)?)$"
_OF_TEXT = (*(pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC")),)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC_ZONE)
_ZONE = re.compile(r"[A-Za-z0-9_+\-/:]{1,64}")
_MOST_SECONDS = 1e12
"""A number of seconds beyond the years that a map accepts."""


def to_seconds(values: pa.Array, dialect: Dialect) -> Seconds:
    """Return seconds since 1970 on the clock of the dialect's zone, with NaN for missing values and other text."""
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
    counts = values.cast(pa.int64())
    seconds = _joined(stored(counts), _PER_SECOND[values.type.unit], counts)
    return seconds if values.type.tz is None else local_seconds(seconds, dialect.timezone)


def column_seconds(column: pa.ChunkedArray, dialect: Dialect) -> Seconds:
    """Do the same for a column. Numbers stay as they are."""
    return np.concatenate([np.empty(0), *(to_seconds(part, dialect) for part in decoded(column).chunks)])


def local_seconds(instants: Seconds, zone: str) -> Seconds:
    """Return what the clocks of a zone show at instants (seconds since 1970 in UTC), also as seconds."""
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
    """Return the name of a time zone that this machine knows, `UTC` or `keep`. Others raise ValueError."""
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


def _joined(counts: npt.NDArray[np.int64], per_second: int, values: pa.Array) -> Seconds:
    """Return counts of a unit in seconds."""
    whole, rest = np.divmod(counts, per_second)
    seconds = _without_carry(whole, rest / per_second)
    return np.where(valid(values), seconds, np.nan) if values.null_count else seconds


def _without_carry(whole: npt.NDArray[np.int64], fraction: Seconds) -> Seconds:
    """Return whole seconds plus fractions. Rounding never carries a time into the next second."""
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
            # The first value only, because a failure of many values takes a thousand times as long.
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
    return (
        re.search(rf":\d\d.{{0,40}}(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?|{_ZONES})$", text.strip(), re.ASCII)
        is not None
    )


@lru_cache(maxsize=64)
def time_pattern(form: object) -> re.Pattern[str]:
    """Return the pattern of a date format, which a time of day may follow if it has none. Others raise ValueError."""
    expected = "expected %s, %Q, or year, month and day, such as %d.%m.%Y, with letters of strftime"
    if not isinstance(form, str) or len(form) > 100 or not form.isprintable():
        raise ValueError(f"{expected}, got {form!r:.60}")
    letters = re.findall("%(.?)", form)
    once = f"{expected}, each of them once, got {form!r}"
    signs = [letter for letter in letters if letter != "%"]
    if len(set(signs)) < len(signs):  # else every split of a text between adjacent names would be tried
        raise ValueError(once)
    if form not in EPOCHS:
        clock = set("HI") & set(letters) and not set("Yymbd") & set(letters)  # a time of day, of 1970-01-01
        dated = clock or (set("Yy") & set(letters) and set("mbB") & set(letters))
        if not dated or not set(letters) <= set(_PARTS):
            raise ValueError(f"{expected}, got {form!r}")
    pieces = re.split("%(.)", form)
    pattern = "".join(_PARTS.get(piece, "") if i % 2 else re.escape(piece) for i, piece in enumerate(pieces))
    if _JOINED.search(form):  # where 1 or 2 digits would be read in several ways
        pattern = pattern.replace(r"\d{1,2}", r"\d\d") + r"(?:\.0)?"
    if not set("HI") & set(letters):
        pattern += _TIME_OF_DAY
    elif "z" not in letters:
        pattern += rf"(?: ?{_PARTS['z']})?"
    try:
        return re.compile(pattern, re.ASCII | re.IGNORECASE)
    except re.error:
        raise ValueError(once) from None


def parse_time(text: str, dialect: Dialect) -> tuple[float, bool]:
    """Return a time in seconds, or NaN, and whether it is an instant: a number, or text with an offset that counts."""
    found = time_pattern(dialect.dates or ISO).fullmatch(text)
    if dialect.dates in EPOCHS or (found is None and not dialect.dates):
        number = doubles([text])  # not `to_doubles`: true is 1 as a number, but no time
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
    """Return the seconds since 1970 in a text, their fraction, and the seconds of its offset; None without a time."""
    number = {"year": 1970, "month": 1, "day": 1}  # of a time of day
    number |= {name: int(part) for name, part in parts.items() if part is not None and part.isdigit()}
    month = (parts.get("name") or "").lower()
    if month:
        number["month"] = _MONTHS.get(month[:4], _MONTHS.get(month[:3], 0))
    if "short" in number:  # the rule of strptime
        number["year"] = number["short"] + (2000 if number["short"] < 69 else 1900)
    hour = number.get("hour", 0)
    half = (parts.get("half") or "").lower()
    if half:
        hour = hour % 12 + 12 * (half == "p") if 1 <= hour <= 12 else 99
    minutes, seconds = number.get("minute", 0), number.get("second", 0)
    zone_hours, zone_minutes = number.get("zone_hours", 0), number.get("zone_minutes", 0)
    fraction = parts.get("fraction") or "0"
    midnight = hour == 24 and not (minutes or seconds or int(fraction))  # the end of the day
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


_FORMS = (
    ISO, "%Y/%m/%d", "%Y.%m.%d", "%Y-%m", "%d %b %Y", "%d-%b-%Y", "%d. %b %Y", "%d %b %y", "%d-%b-%y", "%b %d, %Y",
    "%b %d %Y", "%b-%Y", "%b %Y", "%m/%Y", "%d de %b de %Y", "%b de %Y", "%d%b%Y",
    "%d%b%Y:%H:%M:%S", "%d/%b/%Y:%H:%M:%S", "%b %d %H:%M:%S %Y",
)  # fmt: skip
"""The name of a weekday may come before each."""
_WEEKDAY = re.compile(
    r"(?:mo|tu|di|we|mi|th|do|fr|sa|su|so|lu|ma|me|ju|je|gi|vi|ve|sá)[a-zà-ÿ]{0,9}\.?(,? )",
    re.ASCII | re.IGNORECASE,
)
_JOINED = re.compile("%[YymdHMS]%[mdHMS]")
_MONTH_OF_YEAR, _CLOCK = r"(?:19|20)\d\d(?:0[1-9]|1[0-2])", r"(?:[01]\d|2[0-3])[0-5]\d"
_DAY_OF_YEAR = rf"{_MONTH_OF_YEAR}(?:0[1-9]|[12]\d|3[01])"
_SINCE_1970 = r"(?:9[5-9]\d{7}|1\d{9}|2[0-4]\d{8})"  # 2000 to 2049
_DIGITS = {
    form: re.compile(rf"{pattern}(?:\.0)?", re.ASCII | re.IGNORECASE)
    for form, pattern in {
        "%Y%m%d": _DAY_OF_YEAR + _TIME_OF_DAY,
        "%Y%m%d%H%M": _DAY_OF_YEAR + _CLOCK,
        "%Y%m%d%H%M%S": rf"{_DAY_OF_YEAR}{_CLOCK}[0-5]\d",
        "%Y%m%dT%H%M%S": rf"{_DAY_OF_YEAR}T{_CLOCK}[0-5]\d(?: ?{_PARTS['z']})?",
        "%Y%m": _MONTH_OF_YEAR,
        SECONDS: rf"{_SINCE_1970}(?:\.\d{{1,9}})?",
        "%Q": rf"{_SINCE_1970}\d{{3}}",
    }.items()
}
"""Forms without marks, and what all values of a column must be to have them."""
_OFTEN_NUMBERS = ("%Y%m", *EPOCHS)
"""Those of them that ordinary numbers have, too: they are only read if an option names them."""
_ORDERS = {4: ("%d{0}%m{0}%Y", "%m{0}%d{0}%Y"), 2: ("%d{0}%m{0}%y", "%m{0}%d{0}%y", "%y{0}%m{0}%d")}
"""Forms with the same mark twice, by the digits of the year. A number above 12 or 31 shows which one it is."""
_THREE_NUMBERS = re.compile(
    rf"\d{{1,2}}([./-])\d{{1,2}}\1(\d{{4}}|\d\d){_TIME_OF_DAY}", re.ASCII | re.IGNORECASE
)
_ONE = r"[$€£]?[0-9]{1,12}(?:[.,][0-9]{1,12}){0,3}[kKMB%]?"
_BETWEEN = r" ?(?!-\d{4})(?:[^\w\s.,]{1,3}|,(?= )|[x×]) ?[+-]?| ?[^\W\d]{1,4}\.? | (?=\d\d?/)"
_AFTER = r"[^\w\s]?(?: ?[^\W\d]{1,12}\.?)?[^\w\s]?"
_SEVERAL = rf"(?=.{{3,60}}$)[^\w\s]{{0,2}} ?{_ONE}(?:(?:{_BETWEEN}){_ONE}){{1,5}}{_AFTER}"
_ONE_EACH = "holds several numbers or times in a value, such as {word}: write one in each column"
_GAP, _NAME = "[-., /]{1,3}", r"[^\W\d]{3,12}\.?"
_ASKED = ("%b-%y", "%b %y", "%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M%p", "%H:%M h", "%H:%M Uhr", "%H.%M Uhr")
"""Forms that are only read if an option names them."""
_UNREAD = {
    rf"(?:{'|'.join(_MONTHS)})[^\W\d]{{0,6}}\.?[- ]\d\d": "looks like times: --date-format {form} reads {word}",
    r"1 ?: ?\d{1,6}": _ONE_EACH,
    r"\d{1,2}[:.]\d\d.{0,10}": "looks like hours and minutes: --date-format {form} reads {word} as a time of day; "
    "write lengths of time, and a label, as hours, such as 13.5",
    r"\d{1,2}:\d\d(?::\d\d(?:\.\d{1,9})?)?(?: ?(?:[ap]\.?m\.?|uhr|h))?|\d{1,3} ?h(?: ?\d\d?(?: ?m(?:in)?)?)?": "looks "
    "like hours and minutes, such as {word}: write them as hours, such as 13.5",
    r"(?:19|20)\d\d[-/ ]{0,3}(?:k?w|q)\d\d?(?:-\d)?|(?:k?w|q)\d\d?[-/ ]{0,3}(?:19|20)\d\d": "looks like weeks or "
    "quarters, such as {word}: write the first day of each, such as 2024-04-01",
    POWER.pattern: "holds powers of ten, such as {word}: write 1.5e3 for 1.5x10^3",
    _SEVERAL: _ONE_EACH,
    rf"\d{{1,2}}{_GAP}{_NAME}{_GAP}(?:19|20)\d\d|{_NAME}{_GAP}\d{{1,2}},? (?:19|20)\d\d": "looks like times, got "
    "{word}: write the months as numbers or in English",
    r"(?=.{0,30}\b(?:19|20)\d\d\b)(?=.{0,30}\b\d\d?[:.]\d\d).{12,50}": "looks like times, got {word}: write them as "
    "2024-02-29 12:30, or with an offset such as +01:00 in the place of the name of a zone",
}
"""Patterns of times and numbers that are not read, and the remark about a column of them."""
_SOME, LEAST_TIMES = 100, 0.9
MOSTLY = 0.5
"""Numbers are times if more than this share of a column has the form of times."""


class Guess(NamedTuple):
    """The form of the times of a column, the share of its texts with that form, and the problem if it is not clear.

    `note` is the reason why texts that look like times are not read as times.
    """

    form: str
    share: float
    problem: str = ""
    note: str = ""


def guess_dates(texts: Sequence[str], asked: Asked) -> Guess:
    """Return the form that most of the distinct texts have. A form from the options comes first."""
    words = _present(texts, asked)
    some = words[:_SOME]
    found = [(word[:3].lower(), match[1]) for word in some if (match := _WEEKDAY.match(word))]
    days = [
        mark for word, mark in found if mark != " " or word not in _MONTHS
    ]  # Jul 31, and mar, 31 (Tuesday)
    weekday = f"%a{days[0]}" if 2 * len(days) > len(some) else ""
    dates = (_WEEKDAY.sub("", word, count=1) if weekday else word for word in some)
    marks = {(match[1], len(match[2])) for match in map(_THREE_NUMBERS.fullmatch, dates) if match}
    orders = (form.format(mark) for mark, year in sorted(marks) for form in _ORDERS[year])
    digits = digits_form(words, asked)
    plain = [] if digits in ("", *_OFTEN_NUMBERS) else [digits]
    forms = [*asked.dates, *(weekday + form for form in (*_FORMS, *orders)), *plain]
    first = {form: _have(some, form, asked) for form in forms}
    least = min(max(map(sum, first.values())), 0.5 * len(some))
    have = {form: _have(words, form, asked) for form in forms if sum(first[form]) >= least}
    best = max(have, key=lambda form: sum(have[form]))
    own, share = have[best], sum(have[best]) / max(1, len(words))
    note = "" if share >= LEAST_TIMES else _unread(some, [*first.values()], first[best], best, asked)
    odd = [word for word, has in zip(words, own, strict=True) if not has][:_SOME]
    other = next((word for form in forms for word in odd if any(_have([word], form, asked))), None)
    if other is not None and any(own):
        both = f"{words[own.index(True)][:40]!r} and {other[:40]!r}"
        return Guess(best, share, f"expected times in one form, got {both}: write all in one form", note)
    alike = [form for form in have if any(own) and have[form] == own]  # other values have other forms
    if best in asked.dates or len(alike) < 2:
        return Guess(best, share, "", note)
    alike = [
        form for form in alike if not form.removeprefix(weekday).startswith("%y") or "-" in form
    ]  # 13/01/20 begins with a day
    alike.sort(key=lambda form: "%m" in form.partition("%d")[0])  # days first
    problem = (
        f"expected a time, got {words[own.index(True)]!r}, and no value tells the day from the month"
        f"{' or the year' if len(alike) > 2 else ''}: --date-format {' or '.join(map(quote, alike))}"
    )
    return Guess(alike[0], share, problem if len(alike) > 1 else "", note)


def _unread(
    some: Sequence[str], have: Sequence[Sequence[bool]], own: Sequence[bool], form: str, asked: Asked
) -> str:
    """Return why texts, some of which have these forms, are not read as times; empty if they look different."""
    least = LEAST_TIMES * len(some)
    other = next((word for word, has in zip(some, own, strict=True) if not has), "")[:40]
    odd = repr(other)
    for pattern, said in _UNREAD.items():
        found = [match for word in some if (match := re.fullmatch(pattern, word, re.IGNORECASE))]
        forms = [one for one in _ASKED if len(found) >= least and sum(_have(some, one, asked)) >= least]
        if len(found) >= least > 0 and (forms or "{form}" not in said):
            return said.format(word=odd, form=quote([*forms, ""][0]))
    if least and (sum(own) >= MOSTLY * len(some) or sum(map(any, zip(*have, strict=True))) >= least):
        any_form = any(has[some.index(other)] for has in have) if other in some else True
        advice = "write all in one form" if any_form else missed([other])
        return f"looks like times, of which some, such as {odd}, are not as {form}: {advice}"
    return ""


def _have(words: Sequence[str], form: str, asked: Asked) -> list[bool]:
    """Return which words are times in this form."""
    dialect = replace(asked.dialect, dates=form)
    return [not math.isnan(parse_time(word, dialect)[0]) for word in words]


def digits_form(texts: Iterable[str], asked: Asked) -> str:
    """Return the form without marks, such as 20200131, that all texts have, or an empty text."""
    first = next((word for word in map(str.strip, texts) if not asked.dialect.is_missing(word)), "")
    forms = [form for form, pattern in _DIGITS.items() if pattern.fullmatch(first)]
    words = _present(texts, asked) if forms else ()
    return next((form for form in forms if all(map(_DIGITS[form].fullmatch, words))), "")


def _present(texts: Iterable[str], asked: Asked) -> list[str]:
    """Return the distinct texts that are not missing."""
    return [word for word in dict.fromkeys(map(str.strip, texts)) if not asked.dialect.is_missing(word)]


def are_times(texts: Sequence[str], asked: Asked) -> tuple[bool, str]:
    """Return true for numbers that are read as times, or else why they may be meant as times."""
    form, named = digits_form(texts, asked), [one for one in asked.dates if one not in EPOCHS]
    words = sorted(_present(texts, asked)) if form or named else []
    if form not in _OFTEN_NUMBERS or form in asked.dates:
        every = (all(_have([word], one, asked)[0] for word in words) for one in named if words)
        return bool(form) or any(every), ""
    several = len(words) > 2 and (form != "%Y%m" or words[0][:4] < words[-1][:4])
    return False, f"looks like times: --date-format {form} reads {words[0]}" if several else ""


def far_times(texts: Sequence[str], dialect: Dialect) -> tuple[str, ...]:
    """Return times that repeat, and are far from all others, such as 9999-12-31."""
    words = np.array([*map(str.strip, texts)], dtype=object)
    seconds = to_seconds(pa.array(words, pa.string()), dialect)
    far = np.isin(seconds, far_ends(seconds[np.isfinite(seconds)]))
    return tuple(sorted({*words[far].tolist()}))


def spell_time_problem(value: object, dialect: Dialect) -> str:
    """Describe a value that is not a time."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return "expected a time such as 2024-02-29 or 2024-02-29T12:30:00Z, got null"
    if not isinstance(value, str):
        return f"expected a time such as 2024-02-29 or 2024-02-29T12:30:00Z, got {value}"
    if dialect.is_missing(value):
        return f"expected a time, got {value[:60]!r}, which is read as null"
    form = (
        "such as 2024-02-29 or 2024-02-29T12:30:00Z" if dialect.dates in ("", ISO) else f"as {dialect.dates}"
    )
    if dialect.timezone != KEEP and re.search(rf"[0-9] ?(?:{_ZONES})$", value.strip()):
        return (
            f"expected a time {form}, got {value[:60]!r}; write an offset such as +01:00 in the place of the name of "
            "the zone, or fit with `timezone: keep`"
        )
    guess = guess_dates([value], Asked(nulls=dialect.nulls))
    forms = guess.problem.partition("--date-format ")[2] or quote(guess.form)
    if guess.share:
        remedy = f"--date-format {forms} reads it, if all values are so; otherwise write all in one of the two forms"
    else:
        other = "--date-format names another form; " if re.search("[1-9]", value) else ""  # 00/00/0000
        remedy = other + missed([value.strip()], dialect)
    return f"expected a time {form}, got {value[:60]!r}; {remedy}"
