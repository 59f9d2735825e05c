"""The dialect of a table: how its text spells numbers, times, and missing values.

It is guessed from the first rows when a map is fitted, unless options specify it. The map records it, and later files
are read with it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from kafeat.errors import shell_word

NULLS = ("NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "#N/A", "?", "-", ".")
"""Words for a missing number or time. An empty field is missing as well."""
ISO = "%Y-%m-%d"
"""The form of dates of ISO 8601."""
SECONDS = "%s"
"""The form of times that are seconds since 1970."""
EPOCHS = {SECONDS: 1.0, "%Q": 1000.0}
"""The forms of times that are numbers since 1970, and how many of their units are in a second: 1000 for %Q."""
KEEP, UTC = "keep", "UTC"
"""Values of `timezone` that are not names: `keep` reads hours without their offset, `UTC` converts them to UTC."""


UTF8 = "utf-8"
"""The default encoding."""
BLANKS = " \u00a0\u202f\u2009"
"""The blanks that may separate thousands, and a number from its unit."""
MARKS = {" ": "blank", "'": "apostrophe"}
"""The names of thousands separators in options."""
MINUS = "\u2212"
DASH = f"[-–—{MINUS}]"
_EXPONENT = r"(?:[eE][+-]?[0-9]+)?"
# If adjacent parts could match the same digit, a long text that fails at its end would be tried in many ways.
_READ = re.compile(
    rf"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+){_EXPONENT}|inf(?:inity)?)",
    re.IGNORECASE,  # does not match NaN, which counts as missing
)
_WORTH = re.compile(rf"(.+)=([+-]?[0-9]+(?:\.[0-9]+)?{_EXPONENT})")
CODE = "[0-9]{2,}[eE][0-9]+"
"""The pattern of codes such as 98E02, which are not numbers: a program would write 98E02 as 9.8E+03."""


def check_delimiter(delimiter: str) -> str:
    """Return the delimiter. Raise ValueError if it is not a single character that can separate fields."""
    if len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii():
        raise ValueError(f"expected one character, got {delimiter!r}")
    return delimiter


def check_encoding(name: str) -> str:
    """Return Python's name for a text encoding, or raise ValueError if Python does not know it."""
    try:
        known = codecs.lookup(name) if re.fullmatch("[A-Za-z0-9_-]{1,40}", name) else None
        if known is not None and "A1".encode(name).decode(name) == "A1":
            return known.name
    except (LookupError, UnicodeError):
        pass
    raise ValueError(f"expected {UTF8}, cp1252, latin-1, utf-16 or another encoding, got {name!r:.60}")


def check_file(delimiter: str, encoding: str) -> tuple[str, str]:
    """Return the delimiter and the encoding of a file, or raise ValueError if one of them is invalid."""
    return check_delimiter(delimiter), check_encoding(encoding)


def as_option(mark: str) -> str:
    """Return a mark as a user writes it after an option, such as `tab`, `blank` or `';'`."""
    return {"\t": "tab", **MARKS}.get(mark) or shell_word(mark)


def factors_of(units: Iterable[str]) -> dict[str, float]:
    """Return the factor of each unit by its text: {"K": 1000.0, "kg": 1.0} for the units K=1000 and kg."""
    worth = {unit: _WORTH.fullmatch(unit) for unit in units}
    return {match[1] if match else unit: float(match[2]) if match else 1.0 for unit, match in worth.items()}


@dataclass(frozen=True)
class Dialect:
    """The rules for reading a column of text. A map records them.

    `nulls` are the words for missing values. `decimal` is a point or a comma. `dates` is the `strftime` form of times
    in text, and `timezone` the zone to whose local time they are converted. `thousands` separates groups of three
    digits. Each number has one of the `units` next to it; a unit such as K=1000 multiplies the number. With `bare`, a
    number may also have no unit, or two. A minus may be U+2212. With `brackets`, (5) is −5; with `trailing`, 5- is −5.
    `whole` means that training rows had separators of thousands but no decimals. A decimal mark before three digits, as
    in 1.234, is then an error, because it may separate thousands. `delimiter` and `encoding` are those of the file.
    """

    nulls: tuple[str, ...] = NULLS
    decimal: str = "."
    dates: str = ISO
    timezone: str = KEEP
    thousands: str = ""
    units: tuple[str, ...] = ()
    bare: bool = False
    brackets: bool = False
    trailing: bool = False
    whole: bool = False
    delimiter: str = ","
    encoding: str = UTF8

    @cached_property
    def null_words(self) -> frozenset[str]:
        """The words for missing values: `nulls`, the empty text and, if `nulls` are the defaults, the word of MySQL."""
        return frozenset({"", *self.nulls, *([r"\N"] if self.nulls == NULLS else [])})

    @cached_property
    def plain(self) -> bool:
        """True if Arrow can parse numbers as they are written, and no word for missing values looks like a number."""
        return self.decimal == "." and not (self.dressed or any(map(_READ.fullmatch, self.nulls)))

    @property
    def usual_file(self) -> bool:
        return (self.delimiter, self.encoding) == (",", UTF8)

    @property
    def dressed(self) -> bool:
        """True if numbers contain more than digits and a decimal mark, such as units."""
        return bool(self.thousands or self.units or self.bare or self.brackets or self.trailing)

    @cached_property
    def factors(self) -> dict[str, float]:
        return factors_of(self.units)

    @cached_property
    def separators(self) -> str:
        chars = BLANKS if self.thousands == " " else "'’" if self.thousands == "'" else self.thousands
        return f"[{chars}]"

    @cached_property
    def number(self) -> re.Pattern[str]:
        """The pattern of a number without sign and unit."""
        mark = re.escape(self.decimal)
        pairs = "(?:,[0-9]{2})*" if self.thousands == "," else ""
        fraction = rf"(?:{mark}[0-9]*)?"
        grouped = (
            rf"[1-9][0-9]{{0,2}}{pairs}(?:{self.separators}[0-9]{{3}})+{fraction}|" if self.thousands else ""
        )
        short = rf"[0-9]+(?:{mark}(?:[0-9]{{0,2}}|[0-9]{{4,}}))?" if self.whole else f"[0-9]+{fraction}"
        return re.compile(rf"(?:{grouped}{short}|{mark}[0-9]+){_EXPONENT}")

    def plain_digits(self, number: str) -> str:
        """Return a number without separators, and with a decimal point."""
        return (re.sub(self.separators, "", number) if self.thousands else number).replace(self.decimal, ".")

    @cached_property
    def forms(self) -> str:
        """The pattern, for Arrow and Python, of a cell with a number. Its groups hold the number without its unit."""
        gap, sign, number = f"[{BLANKS}]*", f"[+\\-{MINUS}]?", f"({self.number.pattern})"
        sign, behind = (r"\+?", f"|[{MINUS}\\-]?") if self.trailing else (sign, "|")
        number = f"{number}(?:{re.escape(self.decimal)}{DASH}{{1,2}}{behind})"  # such as 5,- for 5
        unit = f"(?:{'|'.join(map(re.escape, self.factors))})"
        signed = rf"(?:{sign}{gap}{unit}|{unit}{gap}{sign})"
        beside = [rf"{signed}{gap}{number}", rf"{sign}{gap}{number}{gap}{unit}"] if self.units else []
        beside += [rf"{signed}{gap}{number}{gap}{unit}"] if self.bare and len(self.units) > 1 else []
        alone = [rf"{sign}{gap}{number}"] if self.bare or not self.units else []
        within = "|".join([*beside, *alone])
        return rf"^(?:{within}|\({gap}(?:{within}){gap}\))$" if self.brackets else f"^(?:{within})$"

    @cached_property
    def beside(self) -> str:
        """The pattern of a number with units. Its two groups are the units before and after the number."""
        unit, sign = f"({'|'.join(map(re.escape, self.factors))})?", f"[+(\\-{MINUS}{BLANKS}]*"
        return rf"^{sign}{unit}{sign}(?:{self.number.pattern})[).,{BLANKS}\-–—{MINUS}]*{unit}[{BLANKS})]*$"

    def seen_in(self, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield each rule that these texts need, with its marks if any: ("units", "kg, g"), ("decimal commas", "")."""
        text = "\n".join(texts)
        if self.decimal == "," and "," in text:
            yield "decimal commas", ""
        if self.thousands and re.search(f"[0-9]{self.separators}[0-9]", text):
            yield "separators of thousands", MARKS.get(self.thousands, self.thousands)
        if units := [unit for unit in self.units if any(word in text for word in factors_of([unit]))]:
            yield "units", ", ".join(units)
        if self.brackets and "(" in text:
            yield "(5) for -5", ""
        if self.trailing and re.search(f"[0-9][{MINUS}-]", text):
            yield "5- for -5", ""

    def is_missing(self, text: str) -> bool:
        """Return true for a word that stands for a missing value, and for the number NaN."""
        word = text.strip()
        return word in self.null_words or word.lower().lstrip("+-") == "nan"


FLAGS = ("bare", "brackets", "trailing", "whole")
"""Names of the rules of a dialect that are true or false, in the order of its fields."""
USUAL = Dialect()
OLD = Dialect(nulls=("-",), dates="", timezone=UTC)
"""The dialect of model files that do not store one. Their times are in ISO 8601, or seconds since 1970."""


@dataclass(frozen=True)
class Asked:
    """The parts of a dialect that the user's options give. The other parts come from a map, or are guessed."""

    nulls: tuple[str, ...] | None = None
    decimal: str | None = None
    dates: tuple[str, ...] = ()
    thousands: str | None = None
    units: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    """The columns that stay text, or patterns of their names."""
    delimiter: str = ","
    encoding: str = UTF8

    @cached_property
    def dialect(self) -> Dialect:
        """The dialect with the user's words for missing values, delimiter and encoding, and defaults for the rest."""
        nulls = NULLS if self.nulls is None else self.nulls
        return Dialect(nulls, delimiter=self.delimiter, encoding=self.encoding)

    @property
    def numbers(self) -> Dialect:
        """The dialect with the user's options for numbers, and defaults for the rest."""
        decimal, thousands = self.decimal or ".", self.thousands or ""
        return replace(
            self.dialect, decimal=decimal, thousands="" if thousands == decimal else thousands, units=self.units,
            bare=bool(self.units),
        )  # fmt: skip

    def over(self, recorded: Dialect, found: Dialect) -> Dialect:
        """Return the recorded dialect of numbers with the user's options applied.

        Marks for decimals and thousands come from `found`, the guess for this column, if the recorded ones are the
        defaults or contradict the options. Recorded units stay, because the options may name units of other columns.
        Without recorded units, the units of the options apply. Brackets and a trailing minus count in either dialect.
        """
        mark = recorded.decimal
        knows = recorded.dressed or mark == ","
        kept = knows and self.decimal in (None, mark) and self.thousands != mark
        marks = replace(recorded, thousands=self.thousands or recorded.thousands) if kept else found
        asked = set(self.units)
        units = recorded.units or (found.units if asked & {*found.units} else self.units)
        bare = recorded.bare or bool(asked & {*units}) or (not units and found.bare)
        return replace(
            recorded, decimal=marks.decimal, thousands=marks.thousands, units=units, bare=bare,
            brackets=recorded.brackets or found.brackets, trailing=recorded.trailing or found.trailing,
            whole=marks.whole and self.decimal is None,
        )  # fmt: skip

    @property
    def plain(self) -> bool:
        """True if the user gave no options for numbers."""
        return self.dialect.plain and self.decimal != "," and not (self.thousands or self.units)


NOTHING_ASKED = Asked()
