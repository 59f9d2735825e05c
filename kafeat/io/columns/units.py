"""Recognize the units and the signs of bounds next to numbers, and convert units into each other."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache


def _table(*rows: tuple[float, str]) -> dict[str, float]:
    return {word: worth for worth, words in rows for word in words.split()}


_UNIT_SIGNS = "%‰°′″"
_CURRENCIES = re.compile(
    "AED|AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|ILS|INR|JPY|KRW|MXN|NOK|NZD|PLN|RUB|SAR|SEK|SGD|THB|TRY|USD|"
    "Fr|kr|Kr|Rs|zł"
)
_MANY = _table((1e3, "k K Tsd"), (1e6, "m M mn Mn Mio"), (1e9, "b B bn Bn Mrd"))
POWERS = {*_MANY, "T"} - {"m", "b"}
"""Units such as k and M that may mean powers of ten. They multiply numbers only if the user says so."""
_PREFIXES = {
    **_table((1e-9, "n"), (1e-6, "µ"), (1e-3, "m"), (1e-2, "c"), (1e3, "k"), (1e6, "M"), (1e9, "G")),
    "": 1.0,
}
_LENGTHS = _table((1.0, "s sec"), (60.0, "min mins"), (3600.0, "h hr hrs"), (86400.0, "d"))
_SIDES = _table((1.0, "CR Cr H Haben"), (-1.0, "DR Dr S Soll"))
_INDIAN = _table((1e3, "k K"), (1e5, "L Lac Lacs lakh Lakh"), (1e7, "Cr cr Crore"))
_COMPASS = _table((1.0, "N E °N °E"), (-1.0, "S W °S °W"))
_COMPASS |= {unit.replace("°", "° "): worth for unit, worth in _COMPASS.items()}
_SCALES = (_SIDES, _MANY, _INDIAN, _COMPASS, _PREFIXES, _LENGTHS)
"""Tables of the factors of units: credit and debit, powers of ten, compass points, prefixes, and times in seconds."""
BOUNDS = "<>≤≥"
FLAG = re.compile(
    f"[{BOUNDS}~≈↑↓']|[*]{{1,4}}|H{{1,2}}|L{{1,2}}|(?:ca|approx|circa|etwa)\\.?|[+^†‡]|\\(?[A-Za-z]\\)"
)
"""Text next to numbers that is not a unit: bounds such as <, `ca.`, and flags of laboratories such as H for high."""
MARK = re.compile(f"{FLAG.pattern}|(?!{'|'.join(sorted(POWERS))})[A-Za-z]")
"""The pattern of a `FLAG` or a single letter, by which laboratories qualify some values of a column."""


@lru_cache(maxsize=256)
def is_unit(before: str, after: str) -> bool:
    """Return true for a currency before or after a number, and for a unit (not of `POWERS`) after a number."""
    unit = (before + after).removesuffix(".")
    if any(unicodedata.category(char) == "Sc" for char in unit) or _CURRENCIES.fullmatch(unit):
        return True
    signs = any(char.isalpha() or char in _UNIT_SIGNS for char in after)
    words = [word for word in after.split()[1:] if word.isalpha()]  # not CO2
    name = after[:1] != "°" and any(word[0].isupper() for word in words)  # a name, as in 12 Main Street
    return signs and not (name or after[:1] in "+(") and unit not in POWERS and '"' not in unit


def worth_of(found: Sequence[tuple[str, ...]]) -> list[str]:
    """Return values of --unit that convert these units to one scale, such as K=1000 and M=1e6; [] if none fits."""
    every = {unit for units in found for unit in units}
    signs = {unit for unit in every if len(unit) == 1 and unicodedata.category(unit) == "Sc"}
    money = signs | {unit for unit in every if _CURRENCIES.fullmatch(unit)}
    units = sorted(every - money)
    for scale in _SCALES if units and len(money) < 2 else ():
        for stem in (units[0].removeprefix(one) for one in scale if units[0].startswith(one)):
            if (stem[:1].isalpha()) != (scale is _PREFIXES):
                continue
            worth = {unit: scale.get(unit.removesuffix(stem), 0.0) for unit in units if unit.endswith(stem)}
            least = min(worth.values()) if scale in (_PREFIXES, _LENGTHS) else 1.0
            if len(worth) == len(units) and all(worth.values()) and {*worth.values()} != {least}:
                told = (f"{unit}={one / least:g}".replace("e+0", "e") for unit, one in worth.items())
                return [*sorted(money), *(one.removesuffix("=1") for one in told)]
    return []
