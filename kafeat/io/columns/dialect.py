"""The dialect of a table: how its text spells numbers and times, and what is missing.

It is guessed from the first rows when a map is fitted, unless options tell it. The map records it, and later files are
read by it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

NULLS = ("NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "#N/A", "?", "-", ".")
"""Words for a missing number or time. An empty field is missing, too."""
ISO = "%Y-%m-%d"
"""The form of dates of ISO 8601."""
SECONDS = "%s"
"""The form of times that are seconds since 1970."""
KEEP, UTC = "keep", "UTC"
"""Time zones: the hours that are written, whatever offset follows them, and those of UTC."""


@dataclass(frozen=True)
class Dialect:
    """The rules for reading a column of text. A map records them.

    `nulls` are the words for what is missing. `decimal` is a point or a comma. `dates` is the form of times in text,
    as `strftime` has it, and `timezone` the zone whose hours they get.
    """

    nulls: tuple[str, ...] = NULLS
    decimal: str = "."
    dates: str = ISO
    timezone: str = KEEP

    @cached_property
    def null_words(self) -> frozenset[str]:
        """The words for what is missing, and the empty one."""
        return frozenset({"", *self.nulls})

    @cached_property
    def plain(self) -> bool:
        """True if a text is a number exactly where Arrow reads it as one."""
        return self.decimal == "." and not any(map(_READ.fullmatch, self.nulls))

    def is_missing(self, text: str) -> bool:
        """Return true for a word for what is missing, and for the number NaN."""
        word = text.strip()
        return word in self.null_words or word.lower().lstrip("+-") == "nan"

    def remedy(self, word: str, may_miss: bool) -> str:
        """Return how to read a word that is no number in this dialect, in a column that may have missing ones."""
        if self.decimal == "." and _COMMA.fullmatch(word):
            return "; --decimal , reads decimal commas"
        if _GROUPED.fullmatch(word):
            return f"; {_NO_SEPARATORS}"
        if self.decimal == "," and _POINT.fullmatch(word):
            return "; --decimal . reads decimal points"
        return "; --null-values names words for what is missing" if may_miss else ""


USUAL = Dialect()
OLD = Dialect(nulls=("-",), dates="", timezone=UTC)
"""The dialect of maps that record none. Their times are ISO 8601, or seconds since 1970."""


@dataclass(frozen=True)
class Asked:
    """The parts of a dialect that the user gave. The others are known from a map, or guessed."""

    nulls: tuple[str, ...] | None = None
    decimal: str | None = None
    dates: tuple[str, ...] = ()

    @property
    def dialect(self) -> Dialect:
        """The dialect of a column whose values say nothing else."""
        return Dialect(NULLS if self.nulls is None else self.nulls)


NOTHING_ASKED = Asked()


_EXPONENT = r"(?:[eE][+-]?[0-9]+)?"
# Of no two neighbours may both match the same digit: a long text that fails in the end would be tried in every cut.
_POINT = re.compile(rf"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+){_EXPONENT}")
_READ = re.compile(rf"{_POINT.pattern}|[+-]?inf(?:inity)?", re.IGNORECASE)  # NaN is missing anyway
_COMMA = re.compile(rf"[+-]?[0-9]*,[0-9]+{_EXPONENT}")
_THREE_BEHIND = re.compile(r"[+-]?[0-9]*,[0-9]{3}")
# Groups of three digits: 1,234 and 1.234.567 and 1 234,5
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}([,.'’ \u00a0\u202f])[0-9]{3}(?:\1[0-9]{3})*(?:[.,][0-9]+)?")
_NO_SEPARATORS = "write numbers without thousands separators"


_LIKE_NUMBER = re.compile(r"[0-9+\-.,'’ \u00a0\u202feE]+")


def guess_decimal(values: Sequence[str], asked: str | None) -> tuple[str, str, str] | None:
    """Return the decimal mark of a column, and where it has none, the problem and a value that shows it.

    The result is None if most values are no numbers in any dialect.
    """
    counts = Counter(value.strip() for value in values)
    like = [word for word in counts if _LIKE_NUMBER.fullmatch(word)]
    commas, points = _all(_COMMA, like), [word for word in _all(_POINT, like) if "." in word]
    grouped = [word for word in _all(_GROUPED, like) if word not in {*commas, *points}]
    whole = [word for word in like if word.lstrip("+-").isdigit()]
    if 2 * sum(counts[word] for word in {*commas, *points, *grouped, *whole}) <= len(values):
        return None
    if grouped:
        return ".", f"expected a number, got {grouped[0]!r}; {_NO_SEPARATORS}", grouped[0]
    if asked != "." and commas and points:
        problem = f"expected one decimal mark, got {points[0]!r} and {commas[0]!r}: write one of the two"
        return ".", problem, commas[0]
    if asked is None and commas and len(_all(_THREE_BEHIND, commas)) == len(commas):
        problem = (
            f"expected a number, got {commas[0]!r}, where a decimal comma and a thousands separator look alike; "
            f"--decimal , reads {commas[0].replace(',', '.')}; else {_NO_SEPARATORS}"
        )
        return ".", problem, commas[0]
    if asked == "," and (problem := unclear_points(points)):
        return ".", problem, points[0]
    return "," if asked != "." and (commas or (asked and not points)) else ".", "", ""


def unclear_points(values: Sequence[str]) -> str:
    """Return the problem of a column beside decimal commas, if all points in it may separate thousands."""
    points = [value for value in map(str.strip, values) if "." in value]
    if not points or len(_all(_GROUPED, points)) < len(points):
        return ""
    return (
        f"expected a decimal comma, as others have, got {points[0]!r}, where a decimal point and a thousands separator "
        "look alike: write a comma, or no separator"
    )


def _all(pattern: re.Pattern[str], words: Sequence[str]) -> list[str]:
    return [word for word in words if pattern.fullmatch(word)]
