"""Find how a column of text writes numbers: decimal marks, thousands separators, units, and brackets for a minus."""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from kafeat.io.columns.dialect import (
    BLANKS,
    CODE,
    DASH,
    MINUS,
    NULLS,
    USUAL,
    Asked,
    Dialect,
    as_option,
    factors_of,
)
from kafeat.io.columns.fields import ANYWHERE, Cells, null_options, options
from kafeat.io.columns.units import BOUNDS, FLAG, MARK, POWERS, is_unit, worth_of

_GAP = f"[{BLANKS}]*"
_CORE = rf"[0-9.,](?:[0-9.,'’{BLANKS}]*[0-9.,])?(?:[eE][+-]?[0-9]{{1,3}})?"
_PARTED = re.compile(
    rf"(\()?{_GAP}[+\-−]?{_GAP}([^0-9+\-−().,]*?(?:[^\W\d]\.)?){_GAP}([+\-−]?){_GAP}({_CORE})({DASH}{{0,2}}){_GAP}"
    r"([^0-9()+\-−]*)(\))?"
)
_ODD = r"[0-9()+\-−]"
_MONTH = r"[^\W\d]{3,}[-., /]{0,3}(?:19|20)?[0-9]{2}\b"
_TAIL = re.compile(rf"[^0-9()]*{_CORE}{_GAP}(?!{_MONTH})([^\W\d].*|[%‰°€$£/(+]\D+[0-9]?|[+^]|:{DASH})")
"""A number and the text after the number. The text must not be a month with a year."""
_LED = re.compile(r"([^\W\d_]{1,3})[0-9]")
"""The letters before a number, such as the T of T21 (a tied rank) or the V of V45 (a code)."""
_LONGEST_UNIT, _NEARLY_ALL = 20, 0.9
_MOST_WORDS = 6
"""Largest number of words of a column that a message lists."""
_LONGEST = 200
"""Texts of more characters are not read as numbers, because matching them could take very long."""
_LEAST_LARGE = 3
"""At least this many numbers such as 1,234, next to whole numbers below 1,000, show that a mark separates thousands."""
_SOME = 100
_FORMS = tuple(
    Dialect(decimal=decimal, thousands=mark)
    for mark in ("", ",", ".", " ", "'")
    for decimal in ".,"
    if mark != decimal
)
"""The pairs of decimal mark and thousands separator. If several read all numbers of a column, the first is used."""
_NUMBER = re.compile("|".join(form.number.pattern for form in _FORMS))
_CLOCK = re.compile(r"\d\d?\.[0-5]\d ?uhr", re.ASCII | re.IGNORECASE)
_FLAG_BEHIND = re.compile(r"(?<=[0-9 ])(?:\+|\(?[A-Za-z]{1,2}\))$")
"""A flag at the end of a value: the plus of 3+, or letters with a bracket, as in 5 (p)."""
_BOOLEAN = re.compile("true|false", re.IGNORECASE)
_YES_OR_NO = re.compile("true|false|[tfyn]|yes|no|on|off", re.IGNORECASE)
"""Values of a column of booleans. The advice is to write 1 or 0 for them, not to read them as missing."""
_HOURS, _MINUTES = r"\d{1,3} ?(?:h|hrs?|std\.?|hours?)", r"\d{1,3} ?(?:m|mins?|min\.|minutes?)"
LENGTH = re.compile(
    rf"{_HOURS}(?: ?{_MINUTES}|\d\d)?|{_MINUTES}|\d{{1,3}}:\d\d\.\d{{1,9}}", re.ASCII | re.IGNORECASE
)
POWER = re.compile(rf"([0-9.,]+)[{BLANKS}]*[x×*·][{BLANKS}]*10\^?([+-]?[0-9]+)")
_LASTING = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII)
_OTHER_MARKS = str.maketrans({"٫": ".", "٬": ",", "▲": "", "△": "", "▼": "-", "▽": "-"})
_WITHIN = re.compile(r"(?<![\w.,^+-])[+-]?[0-9]+(?:[.,][0-9]+)?(?![\w.,−-])")
TOTALS = re.compile(
    r"(?:(?:grand )?total(?:e|s|i|en)?\b.*|sum(?:me|a)?|gesamt(?:summe)?|totaal|mean|average|mittelwert|durchschnitt|"
    r"media|promedio|moyenne|median|std(?:\.? ?dev\.?)?|s\.?d\.?|±.*):?",
    re.IGNORECASE,
)
"""Words at the beginning of a line of totals or means."""


class NumberForm(NamedTuple):
    """The form in which a column writes numbers. `dialect` is None if the column stays text.

    `problem` is a message if several readings are possible, and `shown` is a value that has this problem. `note` is a
    remark about the column, such as how the user could get numbers from it.
    """

    dialect: Dialect | None = None
    problem: str = ""
    shown: str = ""
    note: str = ""


class _Word(NamedTuple):
    """A value that contains one number. In `€ 1,234.50`, `core` is `1,234.50` and `units` are ("€",)."""

    text: str
    core: str
    units: tuple[str, ...]
    known: bool
    """True if an option names the unit, or if the text of the unit, such as kg, can only be a unit."""
    brackets: bool
    trailing: bool
    """True if a minus follows the number."""
    dashes: bool
    """True if dashes stand in the place of decimals, as in 5,- or 5.--."""

    @property
    def of_amount(self) -> bool:
        """True if the value is surely an amount: its unit is known, or it has two units, as in $ 5 per hour."""
        return self.known or len(self.units) > 1


def guess_numbers(values: Sequence[str], asked: Asked) -> NumberForm:
    """Return how a column writes its numbers, if most values are numbers in some form."""
    counts = Counter(value.strip()[:_LONGEST] for value in values)
    given_as = dict(zip(factors_of(asked.units), asked.units, strict=False))
    asked = replace(asked, units=tuple(given_as))
    words, shares = list[_Word](), Counter[tuple[str, ...]]()
    for texts in ([*counts][:_SOME], [*counts]):  # most columns of text need only the first values
        tails = _tails(texts, counts)
        words = [word for word in (_word(text, asked.units, tails) for text in texts) if word is not None]
        shares.clear()
        for word in words:
            shares[word.units] += counts[word.text]
        amounts = sum(counts[word.text] for word in words if word.units and word.of_amount)
        total = sum(counts[text] for text in texts)
        given = sum(share for units, share in shares.items() if {*units} <= {*asked.units})
        if 2 * max([*shares.values(), amounts, given]) <= total:
            return _of_many_forms(words, texts)
    # If a unit of the options does not occur in this column, it belongs to another column.
    own = [units for units in shares if units and {*units} <= {*asked.units}]
    unit = () if own else shares.most_common(1)[0][0]
    same = [unit, *own, *(one for one in sorted(shares) if _is_plural(one, unit) or _is_plural(unit, one))]
    taken = [word for word in words if word.units in same and _is_number(word.core)]
    count = sum(counts[word.text] for word in taken)
    few = 2 * count <= len(values)
    other = next((word for word in words if word.of_amount and word.units and word.units not in same), None)
    if taken and other is not None and (own or (unit and taken[0].of_amount)):
        both = f"{taken[0].text[:40]!r} and {other.text[:40]!r}"
        told = f"write all in one{_advice(words) or _advice([taken[0], other])}"
        if few and not own:
            return NumberForm(note=f"values such as {both} have several units: {told}")
        return NumberForm(asked.dialect, f"expected one unit, got {both}: {told}", other.text)
    if few:
        return NumberForm()
    if unit and not all(word.known for word in taken):
        others = counts.keys() - {word.text for word in taken}
        if any(re.match("0[0-9]", word.core) for word in taken):
            return NumberForm()
        if count < _NEARLY_ALL * len(values):
            return _of_many_forms(words, [*counts])
        first, but = taken[0], f", {min(others)[:40]!r} is not" if others else ""
        worth = options("unit", worth_of([unit]))
        read = f"{worth} reads them" if worth else f"{options('unit', unit)} reads {first.core} of it"
        return NumberForm(note=f"values such as {first.text[:40]!r} are no numbers{but}; {read}")
    form = _marks(taken, asked, bool(unit))
    units = tuple(dict.fromkeys(given_as.get(part, part) for one in same for part in one))
    bare = bool(own) or (not units and any(MINUS in word.text or word.dashes for word in taken))
    brackets, found = any(word.brackets for word in taken), form.dialect or asked.dialect
    trailing = next((word.text for word in taken if word.trailing), "")
    dialect = replace(found, units=units, bare=bare, brackets=brackets, trailing=bool(trailing))
    leading = next((word.text for word in taken if re.match(rf"[^0-9]*[(\-{MINUS}]", word.text)), "")
    if trailing and leading:
        both = f"expected one way to write a minus, got {leading[:40]!r} and {trailing[:40]!r}"
        return NumberForm(dialect, f"{both}: write one of the two", trailing)
    alike = [one for one in own if not {*map(given_as.get, one)} - {*one}]
    return form._replace(dialect=dialect, note=_of_one_scale(alike, taken))


def _tails(texts: Sequence[str], counts: Mapping[str, int]) -> list[str]:
    """Return [unit] if nearly all values have a unit with digits, brackets or signs, such as m2, and [] if not."""
    tails = Counter[str]()
    for match in filter(None, map(_TAIL.fullmatch, texts)):
        tails[match[1]] += counts[match[0]] * bool(re.search(_ODD, match[1]))
    least = max(1.0, _NEARLY_ALL * sum(counts[text] for text in texts))
    return [tail for tail, count in tails.most_common(1) if count >= least]


def _of_one_scale(own: Sequence[tuple[str, ...]], taken: Sequence[_Word]) -> str:
    """Return a remark if a column mixes two units of the options that have no factors, such as kg and g."""
    first = {word.units: repr(word.text[:40]) for word in reversed(taken) if word.units in own}
    for one, other in combinations(sorted(first), 2):
        if not {*one} & {*other} and not all(map(FLAG.fullmatch, one + other)):
            return (
                f"{first[one]} and {first[other]} are read on one scale, because --unit names both units: "
                f"if they differ, {options('unit', worth_of([one, other]) or [f'{other[-1]}=FACTOR'])} multiplies one"
            )
    return ""


def _advice(words: Collection[_Word]) -> str:
    """Return options that read numbers with these units, if all units are signs such as < or convert to one scale."""
    found = sorted({word.units for word in words if word.units and _is_number(word.core)})
    signs = sorted({unit for units in found for unit in units})
    share = signs == ["%"] and any(not word.units for word in words)  # a column with 50 % and 0.5
    read = ["%=0.01"] if share else signs if all(map(FLAG.fullmatch, signs)) else worth_of(found)
    return f"; {options('unit', read)} reads them as numbers" if read else ""


def _of_many_forms(words: Sequence[_Word], texts: Sequence[str]) -> NumberForm:
    """Return a remark about a column whose distinct texts are mostly numbers, but with several units or in few rows."""
    numbers = [word for word in words if _is_number(word.core)]
    first = {word.units: word.text[:40] for word in reversed(numbers)}
    units = sorted({unit for units in first for unit in units})
    others = sorted({*texts} - {word.text for word in numbers})
    if 2 * len(numbers) < len(texts) or len(numbers) <= _MOST_WORDS or len(units) > _MOST_WORDS:
        return NumberForm()
    shown = " and ".join(map(repr, [*first.values(), *others][:2]))
    note = f"values such as {shown} have several units: write all in one"
    marks = FLAG if all(word.units for word in numbers) else MARK
    if all(map(marks.fullmatch, units)):
        nulls = null_options(ANYWHERE.table, others) if 0 < len(others) <= _MOST_WORDS else ""
        read = " ".join(filter(None, [options("unit", units), nulls]))
        remedy = f"; {read} reads them as numbers" if read else ": leave fields without a number empty"
        return NumberForm(note=f"values such as {shown} are no numbers{remedy}")
    powers = all(word.known or {*word.units} <= POWERS for word in numbers)
    return NumberForm(note=note + _advice(numbers) if powers else "")


def _is_plural(units: tuple[str, ...], of: tuple[str, ...]) -> bool:
    """Return true if a unit is a plural of another: days of day, or a German plural in -e, -n or -en."""
    unit, one = "".join(units), "".join(of)
    return len(one) > 2 and unit.startswith(one) and unit.removeprefix(one) in ("s", "e", "n", "en")


def _is_number(core: str) -> bool:
    return _NUMBER.fullmatch(core) is not None


def _word(text: str, asked_units: Sequence[str], tails: Sequence[str] = ()) -> _Word | None:
    """Return the parts of a value with one number, and perhaps text before or after it. Return None for other values.

    The text after the number may be one of the `tails`, or a flag, even if it contains digits, signs or brackets.
    """
    if len(text) >= _LONGEST or _CLOCK.fullmatch(text):
        return None
    flag = _FLAG_BEHIND.search(text)
    flags = [flag[0]] if flag and text.find("(") in (-1, flag.start()) else []
    odd = (unit for unit in (*asked_units, *tails, *flags) if re.search(_ODD, unit) and text.endswith(unit))
    tail = max(odd, key=len, default="")
    match = _PARTED.fullmatch(text.removesuffix(tail))
    if match is None or (match[1] is None) != (match[7] is None) or re.fullmatch(CODE, match[4]):
        return None
    before, inner, core, minus, after = match[2], match[3], match[4], match[5], match[6].strip() + tail
    dashes = minus if core[-1] in ".," else ""
    if dashes:
        minus = ""
    elif minus not in ("", "-", MINUS):
        return None
    # No minus: 2- is a school mark, 5-kg a size, and 5- very good an answer.
    two = match[1] is not None or re.search(rf"[+\-{MINUS}]", text[: match.start(4)])
    if minus and (two or len(core) < 3 or (after and not is_unit(after, ""))):
        return None
    if (inner and not before) or len(before + after) > _LONGEST_UNIT:
        return None
    if any(unicodedata.numeric(char, 0.0) % 1 for char in after):  # a fraction such as 9½
        return None
    units = tuple(filter(None, (before, after)))
    asked, first = {*units} <= {*asked_units}, is_unit(before, "")
    if before and after and not (asked or first):
        return None
    known = asked or (first if before and not after else not before and is_unit("", after))
    beside = inner or " " in before or text[match.start(4) - 1] not in BLANKS  # names: B-02 and Main Street 5
    name = before and beside and not FLAG.fullmatch(before)
    if name and not (known or first):
        return None
    return _Word(text, core, units, known, match[1] is not None, bool(minus), bool(dashes))


def respelled(text: str) -> str:
    """Return a number in usual digits, such as 26 for 0x1A, ="26" or full-width digits. Other text is unchanged.

    A length of time such as PT26M42S becomes its number of seconds.
    """
    if (lasting := _LASTING.fullmatch(text)) and any(lasting.groups()):
        parts = zip(lasting.groups(), (86400, 3600, 60, 1), strict=True)
        return f"{sum(float(part or 0) * seconds for part, seconds in parts):g}"
    if re.fullmatch("0[xX][0-9A-Fa-f]{1,12}", text):
        return str(int(text, 16))
    text = html.unescape(text[2:-1] if re.fullmatch('="[^"]*"', text) else text)
    wide = (unicodedata.normalize("NFKC", char) if "！" <= char <= "～" else char for char in text)
    return "".join(str(unicodedata.decimal(char, char)) for char in wide).translate(_OTHER_MARKS)


def _respelled_number(text: str) -> str:
    """Return usual digits for a number in another spelling, such as 26 for 0x1A, or an empty text for other text."""
    plain = respelled(text)
    return plain if plain != text and _word(plain, ()) is not None else ""


def note_of(texts: Sequence[str]) -> str:
    """Return a remark about a column of text whose values are mostly numbers in another spelling."""
    some = [*dict.fromkeys(map(str.strip, texts))][:_SOME]
    known = {text: plain for text in some if (plain := _respelled_number(text))}
    if 2 * len(known) <= len(some):
        return ""
    text, plain = next(iter(known.items()))
    return f"values such as {text[:40]} are no numbers, and remain text: write {plain[:40]} for them"


def missed(words: Sequence[str], dialect: Dialect = USUAL, cells: Cells = ANYWHERE) -> str:
    """Return advice with options that read these words as missing, in addition to the words in use."""
    others = () if dialect.nulls == NULLS else dialect.nulls
    nulls = null_options(cells.table, [*(word[:60] for word in words), *others])
    it = "it" if len(words) == 1 else "these words"
    return f"{nulls} reads {it} as missing, and is repeated for other words"


def remedy(text: str, dialect: Dialect, may_miss: bool, cells: Cells = ANYWHERE) -> str:
    """Return advice on a value that is not a number in a dialect: how to read it, or how to declare it missing.

    The advised options also read all numbers among the first values of the column, and other words there as missing.
    """
    texts, number = cells.texts, re.compile(dialect.forms)
    odd = [
        one for one in texts if not (number.match(one) or dialect.is_missing(one) or TOTALS.fullmatch(one))
    ]
    odd = [*dict.fromkeys([text, *odd])]
    words = {one: word for one in odd if (word := _number_word(one, [*dialect.factors])) is not None}
    others = [one for one in odd[1:] if one not in words]
    word = words.get(text)
    marked = {one: w.units for one, w in words.items() if any(map(MARK.fullmatch, w.units))}
    flags = sorted({unit for units in marked.values() for unit in units})
    listed = others if len(others) < _MOST_WORDS else []
    if word is None and (lead := _LED.match(text)):
        tied = [one for one in odd if number.match(one.removeprefix(lead[1]))]
        rest = [one for one in odd if one not in tied]
        if len(tied) > 1 and not any(map(_LED.match, rest)):
            also = f" {null_options(cells.table, rest)}" if 0 < len(rest) <= _MOST_WORDS and may_miss else ""
            return f"{cells.kept}; {options('unit', [lead[1]])}{also} reads {text.removeprefix(lead[1])}"
    if word is None:
        signs = f"{options('unit', flags)} " if flags else ""
        null = f"; {signs}{missed([text, *listed], dialect, cells)}"
        return _of_word(text, dialect, cells, null * may_miss)
    bounds = [*marked, *listed] if text in marked and text[0] in BOUNDS else [text]
    null = f"; {missed(bounds, dialect, cells)}" * (may_miss and len(bounds) <= _MOST_WORDS)
    flags = flags if text in marked else []
    own = [*dialect.factors]
    units = flags or [unit for unit in word.units if unit not in own]
    if units and own and word.known and not flags:
        worth = options("unit", worth_of([(own[0],), word.units]))
        return f"; others are in {own[0]}: write all in one unit{worth and f', or fit with {worth}'}"
    absent = bool(own) and not (word.units or dialect.bare)
    unit = options("unit", dialect.units[:1] if absent else units)
    # Brackets have no option: any option makes kafeat examine the column, and then it also finds brackets.
    marks = {dialect.plain_digits(word.core): "" if unit else f"--decimal {dialect.decimal}"}
    unlike = ""
    if not dialect.number.fullmatch(word.core):
        # The first values may be written in one way, and this value in another.
        given = None if text in texts else cells.table.asked.decimal
        marks, unlike = _by_mark(word.core, dialect, texts, given)
    below = word.brackets or word.trailing or re.search(rf"[-{MINUS}][^0-9]*$", text.partition(word.core)[0])
    minus = "-" if below else ""
    scale = "; 50 % is then 50, next to 0.5: --unit %=0.01 makes it 0.5" if "%" in unit else ""
    if units and units[0].isalpha() and not (flags or dialect.units):
        scale = f"; numbers without a unit are then in {units[0]} as well"
    # a number such as 999 without the unit of its column may stand for a missing value
    marker = null if absent and re.fullmatch("99+(?:[.,]0*)?", word.core) else ""
    also = null_options(cells.table, listed) if listed and may_miss else ""
    told = "".join(
        f"; {' '.join(filter(None, [option, unit, also]))} reads {minus}{read}{scale}"
        for read, option in marks.items()
    )
    told += cells.kept * (text[-1] == "+")  # 3+ may be one of several answers
    return marker + unlike + told + null * (text[0] in BOUNDS or text[-1] == "+")


def _number_word(text: str, units: Sequence[str]) -> _Word | None:
    word = _word(text, units)
    code = re.fullmatch("[0-9.,]+[A-Ze]", text)  # a code such as 0A
    return None if code or word is None or not _is_number(word.core) else word


def _of_word(text: str, dialect: Dialect, cells: Cells, null: str) -> str:
    """Return advice on text that is not a number with a unit. `null` is the advice to read the text as missing."""
    if re.search(rf"[0-9][^0-9]{{0,8}}[-{MINUS}]$", text):
        return f"; write the minus before the number{cells.kept.replace(';', ', or', 1)}"
    if LENGTH.fullmatch(text):
        return "; write lengths of time in one unit, such as 2.75 h"
    texts, odd_rows = cells.texts, cells.table.odd_rows
    if TOTALS.fullmatch(text) or repr(text[:40]) in odd_rows:
        return f"; {odd_rows or 'leave the line out if it is one of totals'}"
    if _YES_OR_NO.fullmatch(text) and any(map(_BOOLEAN.fullmatch, [text, *texts])):
        return "; write 1 for yes and 0 for no"
    power, plain = POWER.fullmatch(text), _respelled_number(text)
    found = [] if text.startswith("#") else re.findall(_WITHIN, text)  # the 5 of `5 - very good`
    found = [f"{power[1]}e{power[2]}"] if power else [plain] if plain else found
    numbers = [one for one in texts if re.match(dialect.forms, one)]
    remedy = f"; write {found[0]} if it is that number" if len(found) == 1 else ""
    several = re.fullmatch("[0-9]+(?:[,;|] ?[0-9]+){2,}", text)  # answers such as 1,3,4
    whole = not any("." in one or "," in one for one in numbers)
    codes = any(map(_LED.match, [text, *texts]))
    return remedy + cells.kept * bool(numbers and (several or whole or codes)) + null


def _by_mark(
    core: str, dialect: Dialect, texts: Iterable[str], given: str | None
) -> tuple[dict[str, str], str]:
    """Return the options that read `core`, by the number that they read: {"1234": "--thousands ,"} for 1,234.

    Only options that also read all numbers in `texts` are returned. If no option does so, the second result is advice.
    `given` is the decimal mark of the user's options.
    """
    marks, unlike = dict[str, str](), ""
    words = [word.core for word in (_word(text, [*dialect.factors]) for text in texts) if word is not None]
    others = sorted(filter(dialect.number.fullmatch, words))
    for form in sorted(_FORMS, key=lambda form: not form.thousands):
        key = "thousands" if form.thousands else "decimal"
        if not form.number.fullmatch(core) or (form.thousands and not re.search(form.separators, core)):
            continue
        mark = getattr(form, key)
        same = (one.number for one in _FORMS if getattr(one, key) == mark)
        odd = min(([other for other in others if not number.fullmatch(other)] for number in same), key=len)
        if odd or (key == "decimal" and given not in (None, mark)):
            how = f"as {odd[0]}" if odd else f"with --decimal {given}"
            unlike = f"; others are written {how}: write all in one way"
        else:
            marks.setdefault(form.plain_digits(core), f"--{key} {as_option(mark)}")
    return marks, "" if marks else unlike


def _marks(words: Sequence[_Word], asked: Asked, unit: bool) -> NumberForm:
    """Return the decimal mark and thousands separator of numbers. Options decide only between several readings."""
    cores = "\n".join(word.core for word in words)
    forms = [
        form
        for form in _FORMS
        if form.thousands in ("", asked.thousands) or re.search(form.separators, cores)
    ]
    fit = [form for form in forms if all(form.number.fullmatch(word.core) for word in words)]
    if not fit:
        reads = min(([form.number.fullmatch(word.core) is None for word in words] for form in forms), key=sum)
        both = f"{words[0].text!r} and {words[reads.index(not reads[0])].text!r}"
        problem = f"expected one way to write numbers, got {both}: write one of the two"
        return NumberForm(asked.dialect, problem, words[0].text)
    chosen = next((form for form in fit if _as_asked(form, asked)), fit[0])
    plain = next((form for form in fit if not form.thousands), None)
    grouped = next((form for form in fit if plain and form.thousands and _differ(words, plain, form)), None)
    if plain is not None and grouped is not None:
        large = [word for word in words if re.search(grouped.separators, word.core)]
        mark, told = grouped.thousands, asked.decimal == grouped.decimal
        whole = [len(word.core) for word in words if word.core.isdigit()]
        sure = bool(whole) and max(whole) < 4 and len(large) >= _LEAST_LARGE and (mark == "," or told)
        if sure or asked.thousands == mark or (told and (mark == "," or unit)):
            chosen = grouped
        elif asked.decimal == mark or (mark == "." and not (unit or asked.decimal)):
            chosen = plain
        else:
            problem = unclear(large[0].text, mark, asked.decimal == ",")
            return NumberForm(replace(asked.numbers, units=(), bare=False), problem, large[0].text)
    if chosen.thousands and asked.decimal == chosen.thousands:
        shown = next((word for word in words if re.search(chosen.separators, word.core)), words[0])
        problem = (
            f"--decimal {chosen.thousands}: expected this mark in numbers, got {shown.text!r}, where "
            f"{chosen.thousands!r} separates thousands: leave the option out"
        )
        return NumberForm(asked.dialect, problem, shown.text)
    decimal = "." if asked.decimal == "." and not chosen.thousands else chosen.decimal
    return NumberForm(replace(asked.dialect, decimal=decimal, thousands=chosen.thousands))


def _as_asked(form: Dialect, asked: Asked) -> bool:
    return asked.decimal in (None, form.decimal) and asked.thousands in (None, form.thousands)


def _differ(words: Sequence[_Word], *forms: Dialect) -> bool:
    return any(len({form.plain_digits(word.core) for form in forms}) > 1 for word in words)


def unclear(text: str, mark: str, commas: bool) -> str:
    """Return the message about a number, such as 1,234, whose mark may separate decimals or thousands.

    `commas` is true if other numbers have decimal commas.
    """
    core = re.sub(rf"[^0-9{mark}]", "", text)
    plain, other = core.replace(mark, "."), f"--decimal {mark} reads {core.replace(mark, '.')}"
    if commas and mark == ".":
        other = f"if it is {plain}, write {core.replace(mark, ',')}, as others have decimal commas"
    return (
        f"expected a number, got {text!r}, where a decimal mark and a thousands separator look alike: "
        f"--thousands {mark} reads {core.replace(mark, '')}; {other}"
    )
