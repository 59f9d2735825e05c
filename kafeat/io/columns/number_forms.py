"""Find how a column of text writes numbers: decimal marks, thousands separators, units, and brackets for a minus."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from shlex import quote
from typing import NamedTuple

from kafeat.io.columns.dialect import (
    BLANKS,
    CODE,
    COMMA,
    GROUPED,
    MINUS,
    POINT,
    Asked,
    Dialect,
    as_option,
    mark_of,
)

_GAP = f"[{BLANKS}]*"
_CORE = rf"[0-9.,](?:[0-9.,'’{BLANKS}]*[0-9.,])?(?:[eE][+-]?[0-9]{{1,3}})?"
_PARTED = re.compile(
    rf"(\()?{_GAP}[+\-−]?{_GAP}([^0-9+\-−().,]*?){_GAP}([+\-−]?){_GAP}({_CORE}){_GAP}([^0-9()+\-−]*)(\))?"
)
_UNIT_SIGNS = "%‰°′″"
_CURRENCIES = re.compile(
    "AED|AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|ILS|INR|JPY|KRW|MXN|NOK|NZD|PLN|RUB|SAR|SEK|SGD|THB|TRY|USD|"
    "Fr|kr|Kr|Rs|zł"
)
# These may stand for powers of ten, by which a unit does not multiply.
_POWERS = re.compile("[kKMB]|[bBmM]n|Mio|Mrd|Tsd|T")
_LONGEST_UNIT, _NEARLY_ALL = 20, 0.9
_LONGEST = 200
"""Longer texts are no numbers: patterns would try them in many ways."""
_LEAST_LARGE = 3
"""So many numbers with one mark before three digits, beside whole ones below 1,000, have thousands separators."""
_SOME = 100
_OTHER = {",": ".", ".": ","}
TOTALS = re.compile(
    r"(?:grand )?total(?:e|s|i|en)?\b.*|sum(?:me|a)?|gesamt(?:summe)?|somme|totaal", re.IGNORECASE
)
"""Words that begin a line of totals."""


class NumberForm(NamedTuple):
    """The dialect of the numbers of a column; if it is not clear, the problem and a value that shows it.

    `note` is about a column that remains text.
    """

    dialect: Dialect
    problem: str = ""
    shown: str = ""
    note: str = ""


class _Word(NamedTuple):
    """A value that holds one number, its digits and marks, and what stands before or after these."""

    text: str
    core: str
    unit: str
    known: bool
    """The unit is one that can be nothing else."""
    brackets: bool


def guess_numbers(values: Sequence[str], asked: Asked) -> NumberForm | None:
    """Return how a column writes its numbers, or None if most values are no numbers in any form."""
    counts = Counter(value.strip()[:_LONGEST] for value in values)
    words, shares = list[_Word](), Counter[str]()
    for texts in ([*counts][:_SOME], [*counts]):  # the first are enough for most columns of other text
        words = [word for word in (_word(text, asked.units) for text in texts) if word is not None]
        shares.clear()
        for word in words:
            shares[word.unit] += counts[word.text]
        if 2 * max(shares.values(), default=0) <= sum(counts[text] for text in texts):
            return None
    own = tuple(
        unit for unit in asked.units if shares[unit]
    )  # those of other columns say nothing of this one
    unit = "" if own else shares.most_common(1)[0][0]
    taken = [word for word in words if word.unit in (unit, *own) and _is_number(word.core)]
    count = sum(counts[word.text] for word in taken)
    few = 2 * count <= len(values)
    other = next((word for word in words if word.known and word.unit not in ("", unit, *own)), None)
    if taken and other is not None and (own or (unit and taken[0].known)):
        both = f"{taken[0].text[:40]!r} and {other.text[:40]!r}"
        if few and not own:
            note = f"values such as {both} have several units: in one they are numbers"
            return NumberForm(asked.dialect, note=note)
        return NumberForm(asked.dialect, f"expected one unit, got {both}: write all in one", other.text)
    if few:
        return None
    if unit and not all(word.known for word in taken):
        others = counts.keys() - {word.text for word in taken}
        if count < _NEARLY_ALL * len(values) or any(word.core[0] == "0" != word.core for word in taken):
            return None
        but = f", {min(others)[:40]!r} is not" if others else ""
        note = f"values such as {taken[0].text[:40]!r} are no numbers{but}; --unit {quote(unit)} reads them as numbers"
        return NumberForm(asked.dialect, note=note)
    form = _separators(taken, asked, bool(unit))
    units = own or ((unit,) if unit else ())
    bare = bool(own) or (not units and any(MINUS in word.text for word in taken))
    dialect = replace(form.dialect, units=units, bare=bare, brackets=any(word.brackets for word in taken))
    return form._replace(dialect=dialect)


def _is_number(core: str) -> bool:
    return any(form.fullmatch(core) for form in (POINT, COMMA, GROUPED))


def _word(text: str, units: Sequence[str]) -> _Word | None:
    """Return a value in parts, or None if it is not one number, alone or with one text beside it."""
    match = _PARTED.fullmatch(text) if len(text) < _LONGEST else None
    if match is None or (match[1] is None) != (match[6] is None) or re.fullmatch(CODE, match[4]):
        return None
    before, inner, core, after = match[2], match[3], match[4], match[5].strip()
    if (before and after) or (inner and not before) or len(before + after) > _LONGEST_UNIT:
        return None
    known = before + after in units or _is_unit(before, after)
    name = before and (
        inner or " " in before or text[match.start(4) - 1] not in BLANKS
    )  # B-02, A1, Main Street 5
    return None if name and not known else _Word(text, core, before + after, known, match[1] is not None)


def remedy(text: str, dialect: Dialect, may_miss: bool) -> str:
    """Return how to read a value that is no number in a dialect, in a column that may have missing ones."""
    word = _word(text, dialect.units)
    if word is None or not _is_number(word.core):
        if re.search(rf"[0-9][-{MINUS}]$", text):
            return "; write the minus before the number"
        if TOTALS.fullmatch(text):
            return "; sed '$d' FILE > NEW.csv leaves out a last line of totals"
        begun = re.match(r"[+-]?[0-9]+(?=[^\w.,])", text)  # 5 - very good
        null = f"; --null-values {quote(text[:40])} reads it as missing, and is repeated for other words"
        return (f"; write {begun[0]} if it is that number" if begun else "") + (null if may_miss else "")
    units = [word.unit] if word.unit and word.unit not in dialect.units else []
    if units and dialect.units and word.known:
        return f"; others are in {dialect.units[0]}: write all in one unit"
    units = list(dialect.units[:1]) if dialect.units and not (word.unit or dialect.bare) else units
    unit = "".join(f"--unit {quote(one)}" for one in units)
    grouped, marks = GROUPED.fullmatch(word.core), []
    if not dialect.number.fullmatch(word.core.lstrip("+-")):
        if grouped is not None and not dialect.thousands:
            mark = mark_of(grouped[1])
            read = word.core.replace(grouped[1], "").replace(",", ".")
            marks = [(f"--thousands {as_option(mark)}", read)]
        decimals = ((",", COMMA), (".", POINT))
        marks += [
            (f"--decimal {mark}", word.core.replace(",", "."))
            for mark, form in decimals
            if form.fullmatch(word.core)
        ]
    if not marks:  # with any option the form of a file is found anew, with brackets and other minus signs
        marks = [("", word.core)] if unit else [(f"--decimal {dialect.decimal}", word.core)]
    return "".join(f"; {' '.join(filter(None, [option, unit]))} reads {read}" for option, read in marks)


@lru_cache(maxsize=256)
def _is_unit(before: str, after: str) -> bool:
    """Return true for a currency, and behind a number for words and signs of units."""
    unit = (before + after).removesuffix(".")
    if any(unicodedata.category(char) == "Sc" for char in unit) or _CURRENCIES.fullmatch(unit):
        return True
    signs = any(char.isalpha() or char in _UNIT_SIGNS for char in after)
    return signs and not _POWERS.fullmatch(unit) and '"' not in unit


def _separators(words: Sequence[_Word], asked: Asked, unit: bool) -> NumberForm:
    """Return the marks of numbers. Options decide where two readings are possible; what is beyond doubt stays."""
    commas = [word for word in words if COMMA.fullmatch(word.core)]
    points = [word for word in words if "." in word.core and POINT.fullmatch(word.core)]
    both = {*commas, *points}
    clear = next((word for word in words if word not in both and GROUPED.fullmatch(word.core)), None)
    whole = [len(word.core) for word in words if word.core.isdigit()]
    usual = replace(asked.numbers, decimal=".", units=(), bare=False)
    usual = replace(usual, thousands="" if usual.thousands == "." else usual.thousands)
    if clear is not None:
        thousands = mark_of(clear.core.lstrip("0123456789")[0])
        decimal = _OTHER.get(thousands) or (
            "," if asked.decimal == "," or any("," in word.core for word in words) else "."
        )
        return _with_thousands(words, clear, thousands, decimal, asked)
    for mark, marked, others in ((",", commas, points), (".", points, commas)):
        large = [word for word in marked if GROUPED.fullmatch(word.core)]
        doubt = mark == "," or unit or asked.decimal == "," or asked.thousands == "."
        if not large or len(large) < len(marked) or not doubt or asked.decimal == mark == ".":
            continue
        sure = bool(others) or (bool(whole) and max(whole) < 4 and len(large) >= _LEAST_LARGE)
        told = asked.thousands == mark or asked.decimal == _OTHER[mark]
        if (sure and (mark == "," or told)) or asked.thousands == mark or (told and (mark == "," or unit)):
            return _with_thousands(words, large[0], mark, _OTHER[mark], asked)
        if asked.decimal != mark:
            return NumberForm(usual, unclear(large[0].text, mark, asked.decimal == ","), large[0].text)
    if commas and points and asked.decimal != ".":
        got = (
            f"expected one decimal mark, got {points[0].text!r} and {commas[0].text!r}: write one of the two"
        )
        return NumberForm(usual, got, commas[0].text)
    decimal = "," if asked.decimal != "." and (commas or (asked.decimal and not points)) else "."
    thousands = "" if asked.thousands in (None, decimal) else asked.thousands
    return NumberForm(replace(usual, decimal=decimal, thousands=thousands))


def unclear(text: str, mark: str, commas: bool) -> str:
    """Return the problem of a number in which a mark may be of decimals or of thousands; others may have commas."""
    core = re.sub(rf"[^0-9{mark}]", "", text)
    plain = core.replace(mark, ".")
    other = (
        f"if it is {plain}, write {core.replace(mark, ',')}, as others have decimal commas"
        if commas and mark == "."
        else f"--decimal {mark} reads {plain}"
    )
    return (
        f"expected a number, got {text!r}, where a decimal mark and a thousands separator look alike: "
        f"--thousands {mark} reads {core.replace(mark, '')}; {other}"
    )


def _with_thousands(
    words: Sequence[_Word], shown: _Word, thousands: str, decimal: str, asked: Asked
) -> NumberForm:
    """Return the form with separators of thousands, or the problem if it is not that of all words, or not as asked."""
    dialect = replace(asked.dialect, decimal=decimal, thousands=thousands)
    odd = next((word for word in words if not dialect.number.fullmatch(word.core)), None)
    problem = ""
    if odd is not None:
        problem = (
            f"expected one way to write numbers, got {shown.text!r} and {odd.text!r}: write one of the two"
        )
    elif asked.decimal == thousands:
        problem = (
            f"--decimal {thousands}: expected such numbers, got {shown.text!r}, where {thousands!r} separates "
            "thousands: leave the option out"
        )
    return NumberForm(asked.dialect if problem else dialect, problem, shown.text)
