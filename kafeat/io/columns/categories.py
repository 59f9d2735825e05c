"""Columns of categories as codes: 0, 1, ... the position in a vocabulary that is learned when a map is fitted.

A category is the text of a cell without the spaces around it. Values of other types are spelled as in text files: 7 and
7.0 are `7`, a float is its shortest decimal, a decimal keeps its digits, a boolean is `true` or `false`, and a date is
`2024-02-29`. If no known category has the same spelling, the only category with the same value is used: `1.50` is 1.5,
`True` and `1` are true. So all formats agree. `007` is not a number, and differs from 7.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafeat.contract.coding import Coding
from kafeat.errors import DataError
from kafeat.io.columns.numbers import indices_of, is_text
from kafeat.io.columns.values import plain
from kafeat.types import Array, Floats

UNKNOWN = -1.0
"""The code of unknown and missing categories if the step accepts them. If the step rejects them, the code is NaN."""

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[-+][0-9]{1,3})?", re.IGNORECASE)
_POINT_ZERO = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")

Codes = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Categories:
    """The vocabulary of a column, in the order of its codes. `lenient` accepts unknown and missing categories.

    An empty text in `values` stands for a missing category. With `rest`, `values` are only the frequent categories, and
    all other categories share the code `len(values)`.
    """

    values: tuple[str, ...]
    lenient: bool
    rest: bool = False

    @property
    def n_codes(self) -> int:
        return len(self.values) + self.rest

    @cached_property
    def _known(self) -> Mapping[str, int]:
        return {value: code for code, value in enumerate(self.values)}

    @cached_property
    def _numbers(self) -> Mapping[Decimal, int]:
        """The code of each category that is a number, by its value. A value that two categories share is left out."""
        numbers = [_number(value) for value in self.values]
        counts = Counter(numbers)
        return {n: code for code, n in enumerate(numbers) if n is not None and counts[n] == 1}

    def codes(self, values: pa.Array) -> Codes:
        """Return the codes (n,) of values. The code of an invalid value is NaN."""
        return _codes(values, self._known, self._code)

    def _code(self, category: str | None) -> float:
        code = self._known.get(category or "")
        if code is None and category and self._numbers:
            number = _number(category)
            code = None if number is None else self._numbers.get(number)
        if code is None and category and self.rest:
            return len(self.values)
        if code is None:
            return UNKNOWN if self.lenient else np.nan
        return code

    def problem(self, value: object) -> str:
        """Return the message about an invalid value, whose code is NaN."""
        return _problem(value) or (
            f"expected one of the {len(self.values)} categories of the fit, got {_spell(value)}; "
            "one_hot with unknown: ignore accepts others"
        )


class Vocabulary:
    """A vocabulary that is being learned: each new category gets the next code.

    With too many categories to keep all, only categories of rows that may be in the fit sample stay in memory. A
    forgotten category gets a new code when it occurs again, which is harmless: no row of the sample has the old code.
    """

    def __init__(self, where: str, coding: Coding) -> None:
        self._where, self._coding, self.lenient = where, coding, coding.lenient
        self._known: dict[str, int] = {}
        self._next, self._room = 0, 2 * coding.most
        self._used: set[int] | None = None

    @property
    def _many(self) -> bool:
        """True if more categories have occurred than memory should hold. Until then, none is forgotten."""
        return self._next > self._coding.most

    @property
    def crowded(self) -> bool:
        """True if memory holds too many categories. The caller should then call `forget_others`."""
        return len(self._known) > self._room

    def forget_others(self, codes: Floats) -> None:
        """Keep the categories with these codes, which occur in the fit sample, and forget all others."""
        kept = set(codes.tolist())
        self._known = {category: code for category, code in self._known.items() if code in kept}
        self._room = 2 * max(self._coding.most, len(self._known))

    def use(self, codes: Floats) -> None:
        """Record the codes of rows in the fit sample. After the first call, only recorded codes become categories."""
        if not self._many:
            self._used = (self._used or set()) | set(np.unique(codes[codes >= 0.0]).astype(int).tolist())

    def codes(self, values: pa.Array) -> Codes:
        """Return a preliminary code for every value, and NaN for an invalid value. `settled` gives the final codes."""
        return _codes(values, self._known, self._code)

    def _code(self, category: str | None) -> float:
        if category is None and self._coding.null:
            category = ""
        if category is None:
            return UNKNOWN if self.lenient else np.nan
        code = self._known.get(category)
        if code is None:
            code = self._known[category] = self._next
            self._next += 1
            if self._many and self._coding.least is None:
                raise DataError(
                    f"{self._where}: expected at most {self._coding.most:,} categories, got more: leave the column out "
                    "if it is a quantity; otherwise, one_hot with min_frequency keeps the frequent categories, and "
                    "target keeps all"
                )
        return code

    def problem(self, value: object) -> str:
        """Return the message about an invalid value, whose code is NaN."""
        return _problem(value) or f"expected a category, got {_spell(value)}"

    def settled(self, codes: Floats) -> tuple[Categories, Floats]:
        """Return the sorted categories and the final codes. `codes` (n,) are the preliminary codes of the fit sample.

        Categories are sorted by value if all are numbers, and as text if some are not.
        """
        spelled = {code: category for category, code in self._known.items()}
        known = codes >= 0.0
        different, places, counts = np.unique(codes[known], return_inverse=True, return_counts=True)
        seen = [spelled[int(code)] for code in different]
        if self._many:
            used = self._frequent(seen, counts, self._coding.least_rows(len(codes)))
        else:
            used = [c for c, code in self._known.items() if self._used is None or code in self._used]
        if not used:
            raise DataError(f"{self._where}: expected at least one category, got none")
        numbers = all(_NUMBER.fullmatch(category) for category in used)
        values = sorted(used, key=(lambda c: (Decimal(c), c)) if numbers else (lambda c: (0, c)))
        rest = len(values) if self._many else UNKNOWN
        final, code_of = codes.copy(), {category: code for code, category in enumerate(values)}
        final[known] = np.array([code_of.get(category, rest) for category in seen], dtype=np.float64)[places]
        return Categories(tuple(values), self.lenient, rest=self._many), final

    def _frequent(self, seen: list[str], counts: Array, least: float) -> list[str]:
        """Return the categories that at least `least` rows of the sample have."""
        frequent = [category for category, count in zip(seen, counts, strict=True) if count >= least]
        if not 1 <= len(frequent) <= self._coding.most:
            got, advice = ("more", "raise") if frequent else ("none", "lower")
            raise DataError(
                f"{self._where}: expected from 1 to {self._coding.most:,} categories that at least {least:g} rows of "
                f"the fit sample have, got {got}: {advice} min_frequency"
            )
        return frequent


def spelled(values: pa.Array) -> Array:
    """Return every value as text (n,), spelled like a category. A missing value is empty."""
    if not is_text(values.type) or pa.types.is_dictionary(values.type):
        values = _coded(values)
        words = [("" if _unfit(value) else _category(value)) or "" for value in _builtins(values.dictionary)]
        return np.array([*words, ""], dtype=object)[indices_of(values, len(words))]
    # only a text that ends with 0 may be a number with another spelling: 7.0 becomes 7
    words = [_category(text) or "" if text and text[-1] == "0" else text or "" for text in values.to_pylist()]
    return np.array([*words, ""], dtype=object)[:-1]


def _codes(values: pa.Array, known: Mapping[Any, int], code: Callable[[str | None], float]) -> Codes:
    """Return the code of every value (n,): `known[value]`, or `code(spelling)` if `known` lacks the value."""
    values = _coded(values)
    table: list[float | None] = []
    for value in _builtins(values.dictionary):
        found = known.get(value)
        table.append(found if found is not None else np.nan if _unfit(value) else code(_category(value)))
    indices = indices_of(values, len(table))
    table.append(code(None) if values.indices.null_count else np.nan)
    return np.array(table, dtype=np.float64)[indices]


def _coded(values: pa.Array) -> pa.DictionaryArray:
    """Return a dictionary array of the values, without the unused entries that the dictionary of a file may have."""
    if pa.types.is_dictionary(values.type):
        used = values.indices.dictionary_encode()
        return pa.DictionaryArray.from_arrays(used.indices, plain(values.dictionary).take(used.dictionary))
    if pa.types.is_float16(values.type):  # Arrow cannot dictionary-encode float16
        different, places = np.unique(values.to_numpy(zero_copy_only=False), return_inverse=True)
        values = pa.array(np.array([float(str(value)) for value in different])[places])
    return values.dictionary_encode()


def _builtins(values: pa.Array) -> list[Any]:
    """Return the values as builtins. A float32 becomes the double of the same spelling: 0.1, not 0.10000000149."""
    builtins: list[Any] = values.to_pylist()
    if pa.types.is_float32(values.type):
        return [None if value is None else float(str(np.float32(value))) for value in builtins]
    return builtins


def _category(value: object) -> str | None:
    """Return the spelling of a value, and None for a missing value."""
    if value is None or value != value:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float | Decimal) and value == int(value):
        return str(int(value))
    text = f"{value:f}" if isinstance(value, Decimal) else str(value).strip()
    zero = _POINT_ZERO.fullmatch(text)
    text = zero[1] if zero else text
    return "0" if text == "-0" else text or None


def _number(category: str) -> Decimal | None:
    """Return the number that a category stands for (true is 1, false is 0), and None for any other text."""
    word = category.lower()
    if word in ("true", "false"):
        return Decimal(word == "true")
    return Decimal(category) if _NUMBER.fullmatch(category) else None


def _unfit(value: object) -> bool:
    """Return true if a value cannot be a category: an infinity, or a type such as bytes. NaN counts as missing."""
    if isinstance(value, float):
        return bool(np.isinf(value))
    return not (value is None or isinstance(value, bool | int | str | Decimal | date))


def _problem(value: object) -> str | None:
    if _unfit(value):
        return f"expected a finite number as a category, got {value}"
    if _category(value) is None:
        return "expected a category, got null; one_hot with unknown: ignore makes it zeros"
    return None


def _spell(value: object) -> str:
    return repr(value.strip()[:60]) if isinstance(value, str) else str(value)
