"""Columns of categories, and the rules by which they are read as codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

MOST_CATEGORIES = 1_000_000
"""Largest number of categories of a column that a model file holds."""


@dataclass(frozen=True)
class Coding:
    """Rules for reading a column as codes of categories, which are places in a vocabulary that is learned when fitting.

    Attributes:
        lenient: True if a missing or unknown category passes, as -1.
        least: With None, a column with more than `most` categories is refused. Otherwise such a column keeps the
            categories that at least this many rows of the fit sample have, or this share of the rows. All others share
            the last code.
        most: Up to this many categories, all categories of the rows that the fit reads are kept.
        null: True if missing values are a category of their own.
        group: True if the categories decide the folds of rows, for messages.
    """

    lenient: bool
    least: int | float | None = None
    most: int = 10_000
    null: bool = False
    group: bool = False

    def joined(self, other: Coding) -> Coding:
        """Return rules that serve two steps for one column: keep what either needs, refuse what either does."""
        whole = [one.most for one in (self, other) if one.least is None]
        least, most = (None, min(whole)) if whole else (other.least, other.most)
        lenient, null = self.lenient and other.lenient, self.null or other.null
        return Coding(lenient, least, most, null, self.group or other.group)

    def least_rows(self, rows: int) -> float:
        """Return the number of rows, out of `rows` in a sample, that a category needs."""
        least = self.least or 0
        return least * rows if isinstance(least, float) else least


EVERY_VALUE = Coding(lenient=True, most=MOST_CATEGORIES, null=True)
"""Keeps all categories. Missing values are one of them."""
OF_GROUPS = replace(EVERY_VALUE, group=True)


def joined_codings(steps: Iterable[Mapping[str, Coding]]) -> dict[str, Coding]:
    """Return the rules that serve all steps, for each column that steps read as codes, by name or pattern."""
    joined: dict[str, Coding] = {}
    for of_step in steps:
        for name, coding in of_step.items():
            joined[name] = joined[name].joined(coding) if name in joined else coding
    return joined
