"""Names of columns: how they are shown, and which cannot be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING
from unicodedata import category

from kafeat.errors import LONGEST, quoted

if TYPE_CHECKING:
    pass


def shown(name: str) -> str:
    """A name as it stands if it is short and harmless to a terminal."""
    return name if name.isprintable() and len(name) <= LONGEST else quoted(name)


def is_harmful(name: str) -> bool:
    """Whether the name holds control characters other than white space: a terminal would obey them."""
    return any(category(char) == "Cc" and not char.isspace() for char in name)


def are_numbers(names: list[str]) -> bool:
    """Whether a row may stand where names should: only numbers that do not rise, as those of a spectrum would."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return False
    return len(numbers) < 2 or not all(here < there for here, there in pairwise(numbers))


def unique(names: Iterable[str]) -> bool:
    """Whether no name comes twice."""
    return all(count == 1 for count in Counter(names).values())
