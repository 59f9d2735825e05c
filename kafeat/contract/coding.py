"""Rules for reading columns of categories as integer codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

MOST_CATEGORIES = 1_000_000
"""Largest number of categories that a model can store for a column."""


@dataclass(frozen=True)
class Coding:
    """Rules for reading a column as codes: positions in the list of its categories, which is learned when fitting.

    Attributes:
        lenient: True if a missing or unknown category gets the code -1; False if it is an error.
        most: A column with at most this many categories keeps all of them.
        least: None if more than `most` categories are an error. Otherwise, a column with more than `most` keeps those
            that occur in at least `least` rows of the fit sample (int), or in this share of the rows (float). All other
            categories share the last code.
        null: True if missing values are a category of their own.
        group: True if the categories are groups that decide the folds of rows; only messages depend on it.
    """

    lenient: bool
    least: int | float | None = None
    most: int = 10_000
    null: bool = False
    group: bool = False

    def joined(self, other: Coding) -> Coding:
        """Return rules for a column that two steps read. A value is rejected if the rules of either step reject it."""
        whole = [one.most for one in (self, other) if one.least is None]
        least, most = (None, min(whole)) if whole else (other.least, other.most)
        lenient, null = self.lenient and other.lenient, self.null or other.null
        return Coding(lenient, least, most, null, self.group or other.group)

    def least_rows(self, rows: int) -> float:
        """Return how many of the `rows` rows in a sample must have a category for it to be kept."""
        least = self.least or 0
        return least * rows if isinstance(least, float) else least


EVERY_VALUE = Coding(lenient=True, most=MOST_CATEGORIES, null=True)
"""Rules that keep all categories, and treat missing values as a category of their own."""
OF_GROUPS = replace(EVERY_VALUE, group=True)


def joined_codings(steps: Iterable[Mapping[str, Coding]]) -> dict[str, Coding]:
    """Merge the rules of all steps. Keys are the names or patterns of the columns that the steps read as codes."""
    joined: dict[str, Coding] = {}
    for of_step in steps:
        for name, coding in of_step.items():
            joined[name] = joined[name].joined(coding) if name in joined else coding
    return joined
