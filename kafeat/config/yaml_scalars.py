"""The values of plain YAML 1.2 scalars."""

from __future__ import annotations

import re

_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{word: float("nan") for word in (".nan", ".NaN", ".NAN")},
    **{sign + word: float(f"{sign}inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
}
_WHOLE = re.compile(r"(?P<decimal>[-+]?[0-9]+)|0o(?P<octal>[0-7]+)|0x(?P<hexadecimal>[0-9a-fA-F]+)", re.ASCII)
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_DIGITS_OF_INT64 = 19


def resolve(text: str) -> str | bool | int | float | None:
    """Return the value of a plain (unquoted) scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if whole := _WHOLE.fullmatch(text):
        return _whole(whole)
    return float(text) if _NUMBER.fullmatch(text) else text


def _whole(match: re.Match[str]) -> int | float:
    """Return a whole number, or beyond 64 bits a float: no count is that large, and parsing its digits is slow."""
    if digits := match["decimal"]:
        return int(digits) if len(digits.lstrip("+-0")) < _DIGITS_OF_INT64 else _large(digits)
    value = int(match["octal"], 8) if match["octal"] else int(match["hexadecimal"], 16)
    if value < 2**63:
        return value
    return float(value) if value.bit_length() < 1024 else float("inf")


def _large(digits: str) -> int | float:
    number = float(digits)
    exact = int(digits) if abs(number) < 1e20 else 2**64
    return exact if abs(exact) < 2**63 else number
