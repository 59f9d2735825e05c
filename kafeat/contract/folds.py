"""Division of rows into parts, which are held out in turn: at random, by groups, or by time.

All rows of a group are in one part. Parts by time follow each other, and held-out rows come after all others: a score
for rows between the training rows shows little about tomorrow's rows, or about a new group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from kafeat.errors import DataError
from kafeat.types import Array, Floats, Mask

FOLDS = 3
"""Number of folds for the choice of a penalty."""


@dataclass(frozen=True)
class RowKeys:
    """A number (n,) for each row: its group, or its time if the keys are `ordered`."""

    values: Floats
    ordered: bool

    def select(self, rows: Array | Mask) -> Self:
        """Return the keys of these rows."""
        return type(self)(self.values[rows], self.ordered)

    def shuffled(self, rng: np.random.Generator) -> Self:
        """Return keys with the groups in another order. Times stay as they are."""
        if self.ordered:
            return self
        groups, numbers = np.unique(self.values, return_inverse=True)
        return type(self)(rng.permutation(len(groups))[numbers].astype(np.float64), False)

    def last(self, count: int, rng: np.random.Generator) -> Mask:
        """Return true for about `count` rows: the latest, or those of some groups, drawn at random."""
        order = self.shuffled(rng).values
        held: Mask = order >= _edges(order, [len(order) - count])[0]
        if not held.any():
            raise one_only(self.ordered)
        return held


def one_only(ordered: bool) -> DataError:
    """Return the error for rows that cannot be divided."""
    expected, got = ("times that differ", "one time") if ordered else ("several groups", "one")
    return DataError(
        f"split_by: expected {expected} among the rows, got {got} only where some are to be held out: give rows of "
        f"more {'times' if ordered else 'groups'}, or split by another column"
    )


def _edges(values: Floats, places: list[int]) -> Floats:
    """Return the values at these places of the sorted ones, except the smallest, because no row is below it."""
    edges: Floats = np.sort(values)[np.clip(places, 0, len(values) - 1)]
    above = values[values > values.min()]
    return np.maximum(edges, above.min(initial=np.inf))


class Cut(NamedTuple):
    """The parts to learn from, and the part that is held out."""

    train: tuple[int, ...]
    held: int


@dataclass(frozen=True)
class Folds:
    """Parts of rows, and the cuts into parts to learn from and a part to hold out.

    With `edges`, a row is in the part whose edges its key lies between. Without, its hash chooses one of the `random`
    parts. With `held`, the only cut is the one that holds out this part.
    """

    edges: Floats | None = None
    ordered: bool = False
    held: int | None = None
    random: int = FOLDS

    @classmethod
    def by(cls, keys: RowKeys | None, n: int = FOLDS) -> Self:
        """Return folds with `n` cuts by the keys of a sample of the rows, or at random without keys."""
        if keys is None:
            return cls()
        parts = n + keys.ordered
        places = [k * len(keys.values) // parts for k in range(1, parts)]
        return cls(_edges(keys.values, places), keys.ordered)

    @property
    def count(self) -> int:
        """The number of parts."""
        return self.random if self.edges is None else len(self.edges) + 1

    def parts(self, keys: Array) -> Array:
        """Return the part of each row from its key (n,) or, without edges, from its hash (n,), a whole number."""
        if self.edges is None:
            if keys.dtype.kind not in "iu":
                raise TypeError("random parts follow from hashes, got keys, which need edges")
            return (keys % keys.dtype.type(self.random)).astype(np.intp)
        return np.searchsorted(self.edges, keys, side="right")

    def cut(self, held: int) -> Cut:
        """Return the cut that holds out this part, to learn from all others or, if ordered, from earlier ones."""
        every = range(held if self.ordered else self.count)
        return Cut(tuple(part for part in every if part != held), held)

    @property
    def cuts(self) -> list[Cut]:
        """The cuts. Each part is held out once, except the first if they are ordered."""
        return [self.cut(held) for held in range(self.ordered, self.count) if self.held in (None, held)]

    @property
    def one_part(self) -> DataError:
        """The error for a search on rows that are all in one part, so that none can be held out."""
        if self.edges is not None:
            return one_only(self.ordered)
        return DataError(
            f"penalty: expected rows in at least two of the {self.random} random parts, which are held out in turn, "
            "got them in one: give more rows, or a number as the penalty"
        )


RANDOM = Folds()


@dataclass(frozen=True)
class Folded:
    """Rows with the part of each (n,)."""

    parts: Array
    folds: Folds

    @classmethod
    def of(cls, keys: RowKeys | None, n: int) -> Self:
        """Return n rows in folds by their keys, or in turn without keys."""
        folds = Folds.by(keys)
        return cls(folds.parts(np.arange(n) if keys is None else keys.values), folds)

    def select(self, rows: Array | Mask | slice) -> Self:
        """Return these rows."""
        return type(self)(self.parts[rows], self.folds)

    @property
    def cuts(self) -> list[tuple[Mask, Mask]]:
        """The masks of the rows to learn from and to hold out, for each cut that has both. There has to be one."""
        masks = [(np.isin(self.parts, cut.train), self.parts == cut.held) for cut in self.folds.cuts]
        cuts = [(train, held) for train, held in masks if train.any() and held.any()]
        if not cuts:
            raise self.folds.one_part
        return cuts


def cuts_by(keys: RowKeys, n: int) -> list[tuple[Mask, Mask]]:
    """Return masks of the rows to learn from and of the held-out rows, for about `n` cuts by the keys."""
    folds = Folds.by(keys, n)
    return Folded(folds.parts(keys.values), folds).cuts


def turns(n: int, places: Sequence[int]) -> list[tuple[Mask, Mask]]:
    """Return masks as `cuts_by` does, for held-out rows between each place and the next."""
    rows = np.arange(n)
    return [(~held, held) for held in ((a <= rows) & (rows < b) for a, b in pairwise(places))]


def uneven_folds(counts: Array) -> str | None:
    """Return a sentence if a fold holds less than half or more than twice its share of the rows, otherwise None."""
    share, least, most = float(counts.mean()), int(counts.min()), int(counts.max())
    if 2 * least >= share and most <= 2 * share:
        return None
    return (
        f"expected about {share:,.0f} rows in each of {len(counts)} folds, got from {least:,} to {most:,}: there are "
        "few different rows, so what is learned from some of them says little about the others"
    )
