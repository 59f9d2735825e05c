"""A random sample of rows: those with the smallest hash of (seed, row number).

The choice is uniform and mergeable, needs one pass without knowing the number of rows, and is the same for any format,
chunk and order of parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from kafeat.contract.tile import TextRows
from kafeat.maths.task import joined
from kafeat.types import Array

Hashes = npt.NDArray[np.uint64]


def row_hashes(seed: int, start: int, rows: int) -> Hashes:
    """Return a hash for each of `rows` row numbers from `start` on (splitmix64, Steele et al. 2014). All differ."""
    return mixed(seed, np.arange(start, start + rows, dtype=np.uint64))


def mixed(seed: int, numbers: Hashes) -> Hashes:
    """Return the hash of each row number, as in `row_hashes`."""
    key = np.random.SeedSequence(seed, spawn_key=(0,)).generate_state(1, np.uint64)[0]
    with np.errstate(over="ignore"):
        return splitmix64((numbers + key) * np.uint64(GAMMA))


GAMMA = 0x9E3779B97F4A7C15
"""The constant that splitmix64 adds to its state for each number."""


def splitmix64(z: Hashes) -> Hashes:
    """Return the output of splitmix64 for each state (Steele, Lea & Flood 2014)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def smallest(seed: int, rows: int, size: int) -> npt.NDArray[np.int64]:
    """Return the ascending row numbers (size,) of the rows in a `RowSample` of this size, if there are `rows` rows."""
    sample = RowSample(seed, size)
    for start in range(0, rows, _AT_ONCE):
        n = min(_AT_ONCE, rows - start)
        offsets = sample.choose(start, n)
        sample.add(start, n, offsets, np.empty((len(offsets), 0)))
    return sample.result()[0]


_AT_ONCE = 1 << 20
# A sample keeps surplus rows of at most about this many numbers before it is trimmed, because trimming takes time.
_SPARE_NUMBERS = 1 << 24


class RowSample:
    """A sample of `size` rows with the smallest hashes, or with the largest hashes if `largest`. None keeps all rows.

    If there are enough rows, a sample by the largest hashes shares no row with the fit sample of the same seed.
    """

    def __init__(self, seed: int, size: int | None, largest: bool = False) -> None:
        self._seed, self._size, self._largest = seed, size, largest
        self._threshold: np.uint64 | None = None
        self._kept = 0
        self._parts: list[tuple[Hashes, npt.NDArray[np.int64], Any, Mapping[str, Array]]] = []
        self.n_rows = 0

    @property
    def empty(self) -> bool:
        """True if the sample has no rows."""
        return not self._kept

    @property
    def parts(self) -> list[Array]:
        """The rows added so far, with one array (k, d) for each call of `add`, or one for several merged calls."""
        return [part[2] for part in self._parts]

    def __len__(self) -> int:
        return self._kept

    def copied(self) -> RowSample:
        """Return a copy to which rows can be added without changing this sample. The rows in both are not copied."""
        other = copy(self)
        other._parts = list(self._parts)
        return other

    def where(self, taken: npt.NDArray[np.bool_]) -> RowSample:
        """Return a sample of the rows, in row order, for which the mask `taken` is true."""
        self._compact()
        [(order, rows, X, about)], other = self._parts, copy(self)
        known = {name: values[taken] for name, values in about.items()}
        other._parts = [(order[taken], rows[taken], X[taken], known)]
        other._kept = int(taken.sum())
        return other

    def choose(self, start: int, rows: int) -> npt.NDArray[np.intp]:
        """Return which of the rows start … start + rows − 1 may belong to the sample, as offsets from `start`."""
        return np.flatnonzero(self._candidates(self._order(start, rows)))

    def _order(self, start: int, rows: int) -> Hashes:
        hashes = row_hashes(self._seed, start, rows)
        return ~hashes if self._largest else hashes

    @property
    def labelled(self) -> bool | None:
        """True if the rows have labels, or None if there are no rows."""
        return "label" in self._parts[0][3] if self._parts else None

    def _candidates(self, order: Hashes) -> npt.NDArray[np.bool_]:
        if self._threshold is None:
            return np.ones(len(order), dtype=bool)
        return order < self._threshold

    def add(
        self,
        start: int,
        rows: int,
        offsets: npt.NDArray[np.intp],
        X: Array | TextRows,
        **about: Array | None,
    ) -> None:
        """Add the rows X (k, d) at the `offsets` from `choose`, of a chunk of `rows` rows that begins at `start`.

        `about` has further arrays (k,) or (k, m) with an entry per row, such as `label`. An array that is None is
        skipped.
        """
        self.n_rows += rows
        if not len(offsets):
            return
        known = {name: values for name, values in about.items() if values is not None}
        self._parts.append((self._order(start, rows)[offsets], start + offsets, X, known))
        self._kept += len(offsets)
        spare = min(1024, _SPARE_NUMBERS // max(1, X.shape[1]))
        if self._size is not None and self._kept > self._size + max(self._size // 4, spare):
            self._compact()

    def _compact(self) -> None:
        """Merge the parts in row order, and drop rows that can no longer be in the sample."""
        order = np.concatenate([part[0] for part in self._parts])
        rows = np.concatenate([part[1] for part in self._parts])
        keep = np.arange(len(order))
        if self._size is not None and len(order) > self._size:
            keep = np.argpartition(order, self._size - 1)[: self._size]
            self._threshold = order[keep].max()
        keep = keep[np.argsort(rows[keep])]
        about = {name: joined([part[3][name] for part in self._parts])[keep] for name in self._parts[0][3]}
        self._parts = [(order[keep], rows[keep], self._moved(rows[keep]), about)]
        self._kept = len(keep)

    def _moved(self, kept: npt.NDArray[np.int64]) -> Array:
        """Return the rows with these numbers as one array. Each part is freed once it is copied."""
        _, _, first, _ = self._parts[0]
        texts = isinstance(first, TextRows)
        X: Any = first.blank(len(kept)) if texts else np.empty((len(kept), first.shape[1]), first.dtype)
        while self._parts:
            _, rows, part, _ = self._parts.pop()
            places = np.searchsorted(kept, rows)
            positions = np.flatnonzero(kept[np.minimum(places, len(kept) - 1)] == rows)
            X[places[positions]] = part[positions]
        return X

    def result(self) -> tuple[npt.NDArray[np.int64], Array, Mapping[str, Array]]:
        """Return row numbers (k,), rows (k, d) and `about` of the sample, in row order. It must have a row."""
        self._compact()
        _, rows, X, about = self._parts[0]
        return rows, X, about
