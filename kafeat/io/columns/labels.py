"""Checks and display of column names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from unicodedata import category

from kafeat.errors import LONGEST, quoted


def shown(name: str) -> str:
    """Return a name as it is if it is short and printable, and quoted otherwise."""
    return name if name.isprintable() and len(name) <= LONGEST else quoted(name)


def is_harmful(name: str) -> bool:
    """Return true if a name holds control characters other than white space, which a terminal would obey."""
    return any(category(char) == "Cc" and not char.isspace() for char in name)


def are_numbers(names: list[str]) -> bool:
    """Return true if the names look like a row of data: numbers that do not ascend, as those of a spectrum would."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return False
    return len(numbers) < 2 or not all(low < high for low, high in pairwise(numbers))


def unique(names: Iterable[str]) -> bool:
    """Return true if no name occurs twice."""
    return all(count == 1 for count in Counter(names).values())
