"""Columns of categories, and the rules by which they are read as codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

MOST_CATEGORIES = 1_000_000
"""Largest number of categories of a column that a model file holds."""


@dataclass(frozen=True)
class Coding:
    """Rules for reading a column as codes of categories: places in a vocabulary that the fit learns.

    Attributes:
        lenient: True if a missing or unknown category passes, as -1.
        least: None refuses a column of more categories than `most`. Otherwise such a column keeps those that at least
            so many rows of the fit sample have, or that share of them, and all others have the last code together.
        most: The number of categories up to which all of the rows that the fit reads are kept.
        null: True if a missing category is one of its own.
        group: True if the categories decide the folds of rows, for messages.
    """

    lenient: bool
    least: int | float | None = None
    most: int = 10_000
    null: bool = False
    group: bool = False

    def joined(self, other: Coding) -> Coding:
        """Return a way to read one column for two steps: it keeps what either needs, and refuses what either does."""
        whole = [one.most for one in (self, other) if one.least is None]
        least, most = (None, min(whole)) if whole else (other.least, other.most)
        lenient, null = self.lenient and other.lenient, self.null or other.null
        return Coding(lenient, least, most, null, self.group or other.group)

    def least_rows(self, rows: int) -> float:
        """Return the number of rows of a sample of `rows` that a category has to have."""
        least = self.least or 0
        return least * rows if isinstance(least, float) else least


EVERY_VALUE = Coding(lenient=True, most=MOST_CATEGORIES, null=True)
"""Keeps all categories, of which a missing one is one."""
OF_GROUPS = replace(EVERY_VALUE, group=True)


def joined_codings(steps: Iterable[Mapping[str, Coding]]) -> dict[str, Coding]:
    """Return how the columns that steps read as codes, by name or pattern, are read for all of them."""
    joined: dict[str, Coding] = {}
    for of_step in steps:
        for name, coding in of_step.items():
            joined[name] = joined[name].joined(coding) if name in joined else coding
    return joined
