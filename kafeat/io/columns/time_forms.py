"""Find how a column of text writes times, and explain why texts that look like times or numbers are not read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import compress
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kafeat.errors import shell_word
from kafeat.io.columns.dialect import EPOCHS, ISO, KEEP, SECONDS, Asked, Dialect
from kafeat.io.columns.fields import ANYWHERE, Cells
from kafeat.io.columns.number_forms import LENGTH, POWER, missed
from kafeat.io.columns.numbers import far_ends
from kafeat.io.columns.times import MONTHS, PARTS, TIME_OF_DAY, ZONES, parse_time, to_seconds

_FORMS = (
    ISO, "%Y/%m/%d", "%Y.%m.%d", "%Y-%m", "%d %b %Y", "%d-%b-%Y", "%d. %b %Y", "%d %b %y", "%d-%b-%y", "%b %d, %Y",
    "%b %d %Y", "%b-%Y", "%b %Y", "%m/%Y", "%d de %b de %Y", "%b de %Y", "%Y年%m月%d日", "%Y년 %m월 %d일",
    "%Y. %m. %d.", "%d%b%Y", "%d%b%Y:%H:%M:%S", "%d/%b/%Y:%H:%M:%S", "%b %d %H:%M:%S %Y",
)  # fmt: skip
"""Forms of dates to try. The name of a weekday may come before each."""
_WEEKDAY = re.compile(
    r"(?:mo|tu|di|we|mi|th|do|fr|sa|su|so|lu|ma|me|ju|je|gi|vi|ve|sá)[a-zà-ÿ]{0,9}\.?(,? )",
    re.ASCII | re.IGNORECASE,
)
_MONTH_OF_YEAR, _CLOCK = r"(?:19|20)\d\d(?:0[1-9]|1[0-2])", r"(?:[01]\d|2[0-3])[0-5]\d"
_DAY_OF_YEAR = rf"{_MONTH_OF_YEAR}(?:0[1-9]|[12]\d|3[01])"
_SINCE_1970 = r"(?:9[5-9]\d{7}|1\d{9}|2[0-4]\d{8})"  # the years 2000 to 2049
_DIGITS = {
    form: re.compile(rf"{pattern}(?:\.0)?", re.ASCII | re.IGNORECASE)
    for form, pattern in {
        "%Y%m%d": _DAY_OF_YEAR + TIME_OF_DAY,
        "%Y%m%d%H%M": _DAY_OF_YEAR + _CLOCK,
        "%Y%m%d%H%M%S": rf"{_DAY_OF_YEAR}{_CLOCK}[0-5]\d",
        "%Y%m%dT%H%M%S": rf"{_DAY_OF_YEAR}T{_CLOCK}[0-5]\d(?: ?{PARTS['z']})?",
        "%Y%m": _MONTH_OF_YEAR,
        "%d%m%Y": r"(?:0[1-9]|[12]\d|3[01])(?:0[1-9]|1[0-2])(?:19|20)\d\d",
        "%m.%Y": r"(?:0[1-9]|1[0-2])\.(?:19|20)\d\d",
        "%H.%M": r"(?:[01]\d|2[0-3])\.[0-5]\d",
        SECONDS: rf"{_SINCE_1970}(?:\.\d{{1,9}})?",
        "%Q": rf"{_SINCE_1970}\d{{3}}",
    }.items()
}
"""Forms without separators, and the pattern that all values of a column must match to have the form."""
_OFTEN_NUMBERS = ("%Y%m", "%d%m%Y", "%m.%Y", "%H.%M", *EPOCHS)
"""Forms of `_DIGITS` that ordinary numbers also match, so a form is only used if an option names it."""
_LEAST_Q = 1e11
"""If options name both %s and %Q, numbers below this limit are seconds, and larger numbers are milliseconds."""
_ORDERS = {4: ("%d{0}%m{0}%Y", "%m{0}%d{0}%Y"), 2: ("%d{0}%m{0}%y", "%m{0}%d{0}%y", "%y{0}%m{0}%d")}
"""Possible forms of dates such as 31/12/2024, by the number of digits of the year. A 31 cannot be a month."""
_THREE_NUMBERS = re.compile(
    rf"\d{{1,2}}([./-])\d{{1,2}}\1(\d{{4}}|\d\d){TIME_OF_DAY}", re.ASCII | re.IGNORECASE
)
_ONE = r"[$€£]?[0-9]{1,12}(?:[.,][0-9]{1,12}){0,3}(?: ?[kKMB%])?"
_BETWEEN = r" ?(?!-\d{4})(?:[^\w\s.,]{1,3}|,(?= )|[x×]) ?[+-]?| ?[^\W\d]{1,6}(?: of)?\.? | (?=\d\d?/)"
_AFTER = r"[^\w\s]?(?: ?[^\W\d]{1,12}\.?)?[^\w\s]?"
_SEVERAL = rf"(?=.{{3,60}}$)[^\w\s]{{0,2}} ?{_ONE}(?:(?:{_BETWEEN}){_ONE}){{1,5}}{_AFTER}"
_ONE_EACH = "holds several numbers or times in a value, such as {word}: write one in each column"
_GAP, _NAME = "[-., /]{1,3}", r"[^\W\d]{3,12}\.?"
_ASKED = ("%b-%y", "%b %y", "%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M%p", "%H:%M h", "%H:%M Uhr", "%H.%M Uhr")
"""Forms that are only read if an option names them."""
_UNREAD = {
    rf"(?:{'|'.join(MONTHS)})[^\W\d]{{0,6}}\.?[- ]\d\d": "looks like times: --date-format {form} reads {word}",
    r"1 ?: ?\d{1,6}": _ONE_EACH,
    r"\d{1,2}[:.]\d\d.{0,10}": "looks like hours and minutes: --date-format {form} reads {word} as a time of day; "
    "write lengths of time, and a label, as hours, such as 13.5",
    r"(?:\d{1,3}:)?\d{1,2}\.\d{1,9}": "looks like minutes and seconds: write 62.35 for 1:02.35",
    rf"\d{{1,2}}:\d\d(?::\d\d(?:\.\d{{1,9}})?)?(?: ?(?:[ap]\.?m\.?|uhr|h))?|{LENGTH.pattern}": "looks like hours and "
    "minutes, such as {word}: write them as hours, such as 13.5",
    r"(?:19|20)\d\d[-/ ]{0,3}(?:k?w|q)\d\d?(?:-\d)?|(?:k?w|q)\d\d?[-/ ]{0,3}(?:19|20)\d\d": "looks like weeks or "
    "quarters, such as {word}: write the first day of each, such as 2024-04-01",
    POWER.pattern: "holds powers of ten, such as {word}: write 1.5e3 for 1.5x10^3",
    _SEVERAL: _ONE_EACH,
    rf"\d{{1,2}}{_GAP}{_NAME}{_GAP}(?:19|20)\d\d|{_NAME}{_GAP}\d{{1,2}},? (?:19|20)\d\d": "looks like times, got "
    "{word}: write the months as numbers or in English",
    r"(?=.{0,30}\b(?:19|20)\d\d\b)(?=.{0,30}\b\d\d?[:.]\d\d).{12,50}": "looks like times, got {word}: write them as "
    "2024-02-29 12:30, or with an offset such as +01:00 in the place of the name of a zone",
}
"""Patterns of texts that are not read as times or numbers, and the remark about a column of such texts."""
_SOME, LEAST_TIMES, _LATE, _IN_2030 = 100, 0.9, 2_556_144_000.0, "1893456000"  # _LATE begins 2051
MOSTLY = 0.5
"""A column of numbers is read as times if more than this share of its values has a form of times."""


class Guess(NamedTuple):
    """The form of the times of a column, its share of the texts, and the problem if the form is unclear.

    `note` is the reason why texts that look like times are not read as times.
    """

    form: str
    share: float
    problem: str = ""
    note: str = ""


def guess_dates(texts: Sequence[str], asked: Asked) -> Guess:
    """Return the form that most of the distinct texts have. Of equally frequent forms, one from the options wins."""
    words = _present(texts, asked)
    some = words[:_SOME]
    found = [(word[:3].lower(), match[1]) for word in some if (match := _WEEKDAY.match(word))]
    # In `Jul 31` the word is a month, in `mar, 31` a weekday (Spanish martes).
    days = [mark for word, mark in found if mark != " " or word not in MONTHS]
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
    other = next((word for form in forms for word in compress(odd, _have(odd, form, asked))), None)
    if other is not None and any(own):
        both = f"{words[own.index(True)][:40]!r} and {other[:40]!r}"
        return Guess(best, share, f"expected times in one form, got {both}: write all in one form", note)
    alike = [form for form in have if any(own) and have[form] == own]  # these forms read the same texts
    if best in asked.dates or len(alike) < 2:
        return Guess(best, share, "", note)
    # A year of two digits comes first only with hyphens, as in 24-12-31.
    alike = [form for form in alike if not form.removeprefix(weekday).startswith("%y") or "-" in form]
    alike.sort(key=lambda form: "%m" in form.partition("%d")[0])  # forms with the day first come first
    problem = (
        f"expected a time, got {words[own.index(True)]!r}, and no value tells the day from the month"
        f"{' or the year' if len(alike) > 2 else ''}: --date-format {' or '.join(map(shell_word, alike))}"
    )
    return Guess(alike[0], share, problem if len(alike) > 1 else "", note)


def _unread(
    some: Sequence[str], have: Sequence[Sequence[bool]], own: Sequence[bool], form: str, asked: Asked
) -> str:
    """Return the reason why texts that look like times are not read as times, or an empty text for other texts."""
    least = LEAST_TIMES * len(some)
    other = next((word for word, has in zip(some, own, strict=True) if not has), "")[:40]
    odd, every = repr(other), sum(map(any, zip(*have, strict=True)))
    for pattern, said in _UNREAD.items() if not every >= least > 0 else ():
        found = [match for word in some if (match := re.fullmatch(pattern, word, re.IGNORECASE))]
        forms = [one for one in _ASKED if len(found) >= least and sum(_have(some, one, asked)) >= least]
        if len(found) >= least > 0 and (forms or "{form}" not in said):
            return said.format(word=odd, form=shell_word([*forms, ""][0]))
    if least and (sum(own) >= MOSTLY * len(some) or every >= least):
        unread = other in some and not any(has[some.index(other)] for has in have)
        advice = missed([other]) if unread else "write all in one form"
        return f"looks like times, but some, such as {odd}, are not in the form {form}: {advice}"
    return ""


def _have(words: Sequence[str], form: str, asked: Asked) -> list[bool]:
    """Return for each word whether it is a time in this form. `_LEAST_Q` tells %s from %Q if options name both."""
    dialect, both = replace(asked.dialect, dates=form), {*EPOCHS} <= {*asked.dates} and form in EPOCHS
    times = [parse_time(word, dialect)[0] * EPOCHS.get(form, 1.0) for word in words]
    return [
        not math.isnan(time) and not (both and (abs(time) < _LEAST_Q) != (form == SECONDS)) for time in times
    ]


def digits_form(texts: Iterable[str], asked: Asked) -> str:
    """Return the form without separators, such as %Y%m%d, that all texts have, or an empty text."""
    first = next((word for word in map(str.strip, texts) if not asked.dialect.is_missing(word)), "")
    forms = [form for form, pattern in _DIGITS.items() if pattern.fullmatch(first)]
    words = _present(texts, asked) if forms else ()
    return next((form for form in forms if all(map(_DIGITS[form].fullmatch, words))), "")


def _present(texts: Iterable[str], asked: Asked) -> list[str]:
    return [word for word in dict.fromkeys(map(str.strip, texts)) if not asked.dialect.is_missing(word)]


def are_times(texts: Sequence[str], asked: Asked) -> tuple[bool, str]:
    """Return true if numbers are read as times. If not, return false and a remark if they may be meant as times."""
    form, named = digits_form(texts, asked), [one for one in asked.dates if one not in EPOCHS]
    words = sorted(_present(texts, asked)) if form or named else []
    if form not in _OFTEN_NUMBERS or form in asked.dates:
        every = (all(_have([word], one, asked)[0] for word in words) for one in named if words)
        return bool(form) or any(every), ""
    several = len(words) > 2 and (form != "%Y%m" or words[0][:4] < words[-1][:4])
    several &= form != "%H.%M" or words[0][0] == "0"  # only times begin with 0, as 08.30
    several &= form not in EPOCHS or words[0] < _IN_2030  # larger numbers identify documents
    return False, f"looks like times: --date-format {form} reads {words[0]}" if several else ""


def far_times(texts: Sequence[str], dialect: Dialect) -> tuple[str, ...]:
    """Return times that repeat, and are far from all others, such as 9999-12-31."""
    words = np.array([*map(str.strip, texts)], dtype=object)
    seconds = to_seconds(pa.array(words, pa.string()), dialect)
    far = np.isin(seconds, far_ends(seconds[np.isfinite(seconds)]))
    return tuple(sorted({*words[far].tolist()}))


def late_year(texts: Sequence[str], dialect: Dialect) -> str:
    """Return a note if a year of two digits is read as a year after 2050, although 55 may mean 1955."""
    words = map(str.strip, texts if "%y" in dialect.dates else ())
    late = next((word for word in words if parse_time(word, dialect)[0] >= _LATE), "")
    return f"years of two digits are read as 1969 to 2068, also in {late}: write all with four digits" * bool(
        late
    )


def spell_time_problem(value: object, dialect: Dialect, cells: Cells = ANYWHERE) -> str:
    """Return the message about a value that is not a time."""
    such = "such as 2024-02-29 or 2024-02-29T12:30:00Z"
    if not isinstance(value, str) or not value.strip():
        return f"expected a time {such}, got {'null' if value is None or isinstance(value, str) else value}"
    if dialect.is_missing(value):
        return f"expected a time, got {value[:60]!r}, which stands for a missing value"
    form = such if dialect.dates in ("", ISO) else f"as {dialect.dates}"
    if dialect.timezone != KEEP and re.search(rf"[0-9] ?(?:{ZONES})$", value.strip()):
        return (
            f"expected a time {form}, got {value[:60]!r}; write an offset such as +01:00 in the place of the name of "
            "the zone, or fit with `timezone: keep`"
        )
    guess = guess_dates([value], Asked(nulls=dialect.nulls))
    forms = guess.problem.partition("--date-format ")[2] or shell_word(guess.form)
    if guess.share:
        remedy = f"--date-format {forms} reads it if all have this form; otherwise write all in one form"
    else:
        other = "--date-format names another form; " if re.search("[1-9]", value) else ""  # not 00/00/0000
        remedy = other + missed([value.strip()], dialect, cells)
    return f"expected a time {form}, got {value[:60]!r}; {remedy}"
