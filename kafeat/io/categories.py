"""Columns of categories as codes: 0, 1, ... by place in a vocabulary that is learned when a map is fitted.

A category is the text of a cell without the spaces around it, or a whole number as it is written out, so that the
formats agree: 7, 7.0 and "7" are one category, and 007 is another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafeat.errors import DataError
from kafeat.io.buffers import indices_of

MOST = 10_000
"""Categories of a column; more are a quantity or a name."""
UNKNOWN = -1.0
"""The code of an unknown or missing category where these are let through."""

_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)\Z")
_POINT_ZERO = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+\Z")

Codes = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Categories:
    """The vocabulary of a column, in the order of its codes; `lenient` lets unknown and missing ones through."""

    values: tuple[str, ...]
    lenient: bool

    @cached_property
    def _known(self) -> Mapping[str, int]:
        return {value: code for code, value in enumerate(self.values)}

    def codes(self, values: pa.Array) -> Codes:
        """A code for every value; NaN for one to refuse."""
        return _codes(values, self._code)

    def _code(self, category: str | None) -> float:
        return self._known.get(category or "", UNKNOWN if self.lenient else np.nan)

    def problem(self, value: object) -> str:
        """What is wrong with a value whose code is NaN."""
        return _problem(value) or (
            f"expected one of the {len(self.values)} categories of the fit, got {_spell(value)}; "
            "one_hot with unknown: ignore lets others through"
        )


class Vocabulary:
    """A vocabulary while it is learned: a new category gets the next code."""

    def __init__(self, where: str, lenient: bool) -> None:
        self._where, self.lenient = where, lenient
        self._known: dict[str, int] = {}

    def codes(self, values: pa.Array) -> Codes:
        """A code for every value; NaN for one to refuse. It is preliminary: `settled` says what becomes of it."""
        return _codes(values, self._code)

    def _code(self, category: str | None) -> float:
        if category is None:
            return UNKNOWN if self.lenient else np.nan
        code = self._known.setdefault(category, len(self._known))
        if len(self._known) > MOST:
            raise DataError(
                f"{self._where}: expected at most {MOST:,} categories, got more: a quantity needs no one_hot"
            )
        return code

    def problem(self, value: object) -> str:
        """What is wrong with a value whose code is NaN."""
        return _problem(value) or f"expected a category, got {_spell(value)}"

    def settled(self) -> tuple[Categories, npt.NDArray[np.intp]]:
        """In order: whole numbers by size if all are, else text; and the final code of each preliminary one."""
        if not self._known:
            raise DataError(f"{self._where}: expected at least one category, got none")
        whole = all(_WHOLE.match(category) for category in self._known)
        values = sorted(self._known, key=(lambda c: (int(c), c)) if whole else (lambda c: (0, c)))
        places = {category: code for code, category in enumerate(values)}
        return Categories(tuple(values), self.lenient), np.array([places[c] for c in self._known], np.intp)


def _codes(values: pa.Array, code: Callable[[str | None], float]) -> Codes:
    """Each different value is looked at once."""
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    table = [np.nan if _unfit(value) else code(_category(value)) for value in values.dictionary.to_pylist()]
    indices = indices_of(values, len(table))
    table.append(code(None) if values.indices.null_count else np.nan)
    return np.array(table, dtype=np.float64)[indices]


def _category(value: object) -> str | None:
    """None for a missing one."""
    if isinstance(value, str):
        text = value.strip()
        zero = _POINT_ZERO.match(text)
        return (zero[1] if zero else text) or None
    if value is None or value != value:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(cast(float, value)))


def _unfit(value: object) -> bool:
    """A number that is not whole; a NaN is missing."""
    if isinstance(value, float):
        return value == value and not value.is_integer()
    return isinstance(value, Decimal) and value != value.to_integral_value()


def _problem(value: object) -> str | None:
    if _unfit(value):
        return f"expected text or a whole number as a category, got {value}"
    return "expected a category, got null" if _category(value) is None else None


def _spell(value: object) -> str:
    return repr(value.strip()[:60]) if isinstance(value, str) else str(value)
