"""Divide rows at random, by groups or by time into parts, which are held out in turn (cross-validation).

All rows of a group are in one part, so that a score holds for new groups. With parts by time, held-out rows come after
all training rows, because a score for rows between the training rows tells little about tomorrow's rows.
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
        """Return the keys of the rows with these numbers, or where a mask is true."""
        return type(self)(self.values[rows], self.ordered)

    def shuffled(self, rng: np.random.Generator) -> Self:
        """Return the keys with the groups renumbered in random order. Times are not changed."""
        if self.ordered:
            return self
        groups, numbers = np.unique(self.values, return_inverse=True)
        return type(self)(rng.permutation(len(groups))[numbers].astype(np.float64), False)

    def last(self, count: int, rng: np.random.Generator) -> Mask:
        """Return a mask of about `count` rows to hold out: the latest rows, or all rows of randomly drawn groups."""
        order = self.shuffled(rng).values
        held: Mask = order >= _edges(order, [len(order) - count])[0]
        if not held.any():
            raise one_only(self.ordered)
        return held


def one_only(ordered: bool) -> DataError:
    """Return the error for rows that all have one time (if `ordered`) or are in one group, so none can be held out."""
    expected = "times that differ" if ordered else "several groups"
    return DataError(
        f"split_by: expected {expected} among the rows, got one, so that none can be held out: give rows of more "
        f"{'times' if ordered else 'groups'}, or split by another column"
    )


def _edges(values: Floats, places: list[int]) -> Floats:
    """Return edges of parts: sorted values at `places`, but not the lowest value, because no row is below it."""
    edges: Floats = np.sort(values)[np.clip(places, 0, len(values) - 1)]
    above = values[values > values.min()]
    return np.maximum(edges, above.min(initial=np.inf))


class Cut(NamedTuple):
    """The numbers of the parts to train on, and of the part to hold out."""

    train: tuple[int, ...]
    held: int


@dataclass(frozen=True)
class Folds:
    """A rule that assigns rows to parts, and the cuts: each has parts to train on, and one part to hold out.

    With `edges`, a row is in the part whose edges enclose its key. Without edges, its hash chooses one of `random`
    parts. If `held` is a number, the only cut is the one that holds out this part.
    """

    edges: Floats | None = None
    ordered: bool = False
    held: int | None = None
    random: int = FOLDS

    @classmethod
    def by(cls, keys: RowKeys | None, n: int = FOLDS) -> Self:
        """Return folds with `n` cuts at quantiles of these keys. Without keys, there are `FOLDS` random parts."""
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
        """Return the part numbers (n,) of rows, from `keys` (n,): the rows' keys or, without edges, their hashes."""
        if self.edges is None:
            if keys.dtype.kind not in "iu":
                raise TypeError("expected hashes, which random parts need, got keys, which need edges")
            return (keys % keys.dtype.type(self.random)).astype(np.intp)
        return np.searchsorted(self.edges, keys, side="right")

    def cut(self, held: int) -> Cut:
        """Return the cut that holds out this part, and trains on all other parts or, if ordered, all earlier parts."""
        every = range(held if self.ordered else self.count)
        return Cut(tuple(part for part in every if part != held), held)

    @property
    def cuts(self) -> list[Cut]:
        """A cut for each part to hold out. The first of ordered parts is never held out, because no part is earlier."""
        return [self.cut(held) for held in range(self.ordered, self.count) if self.held in (None, held)]

    @property
    def one_part(self) -> DataError:
        """The error for a search on rows that are all in one part, so that none can be held out."""
        if self.edges is not None:
            return one_only(self.ordered)
        return DataError(
            f"penalty: expected rows in at least two of the {self.random} random parts, which are held out in turn, "
            "got all rows in one part: give more rows, or a number as the penalty"
        )


RANDOM = Folds()


@dataclass(frozen=True)
class Folded:
    """Rows that are divided into folds: `parts` (n,) has the number of the part of each row."""

    parts: Array
    folds: Folds

    @classmethod
    def of(cls, keys: RowKeys | None, n: int) -> Self:
        """Divide n rows into folds by their keys. Without keys, rows go to the parts in turn."""
        folds = Folds.by(keys)
        return cls(folds.parts(np.arange(n) if keys is None else keys.values), folds)

    def select(self, rows: Array | Mask | slice) -> Self:
        """Return the parts of some rows, by a slice, their numbers or a mask."""
        return type(self)(self.parts[rows], self.folds)

    @property
    def cuts(self) -> list[tuple[Mask, Mask]]:
        """The masks of training and held-out rows, for each cut that has both. Raise an error if no cut has both."""
        masks = [(np.isin(self.parts, cut.train), self.parts == cut.held) for cut in self.folds.cuts]
        cuts = [(train, held) for train, held in masks if train.any() and held.any()]
        if not cuts:
            raise self.folds.one_part
        return cuts


def cuts_by(keys: RowKeys, n: int) -> list[tuple[Mask, Mask]]:
    """Return masks of the training rows and of the held-out rows for `n` cuts by the keys, or fewer if keys repeat."""
    folds = Folds.by(keys, n)
    return Folded(folds.parts(keys.values), folds).cuts


def turns(n: int, places: Sequence[int]) -> list[tuple[Mask, Mask]]:
    """Return masks of training and held-out rows: each cut holds out the rows from one of `places` up to the next."""
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
