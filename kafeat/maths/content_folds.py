"""Folds by content: a row's numbers decide its fold, so a new row also has one, and equal rows share it.

Numbers count as float32, −0 as 0, and all NaNs as equal, so that the fold is the same for every format and dtype.

If rows repeat, such as answers to a few questions, other folds know too little of a row. What many rows have in common
is then learned from all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kafeat.compiled.library import ARRAY, SIZE, address, loop
from kafeat.contract.tile import SparseRows
from kafeat.maths.row_sample import GAMMA, Hashes, row_hashes, splitmix64
from kafeat.types import Array, Floats, Mask

NO_HASH = -(1 << 63)
"""A hash, as int64, for no row, in a list that may not be empty. A row has it once in 2⁶⁴ times."""
NO_GROUP = np.empty(0, np.int64)
"""The place of the column of groups if the content decides."""
OFTEN = 5
"""The average number of rows to learn from with their own labels: k means of n random labels have R² = k/n."""
FEW = 50
"""With so many different rows, the other folds know enough."""
_NAN = np.uint32(0x7FC00000)
# The number of contents whose labels are compared.
_LOOKED_AT = 1 << 12


def content_hashes(X: Floats, seed: int) -> Hashes:
    """Return a hash (n,) of each row of X (n, d): mix(a₀ + Σ_j a_j·b_j mod 2⁶⁴), where b_j are the 32 bits of x_j.

    The factors a are the numbers that splitmix64 gives for the seed. The high bits of the sum are a strongly universal
    hash (Lemire & Kaser 2014), and mix is the last part of splitmix64.
    """
    X = np.ascontiguousarray(X)
    n, d = X.shape
    keys = _keys(seed, d)
    hashes = np.empty(n, np.uint64)
    run = loop("content_sums", X.dtype, ARRAY, SIZE, SIZE, ARRAY, ARRAY)
    if run is not None:
        run(address(X), n, d, address(keys), address(hashes))
        return splitmix64(hashes)
    hashes[:] = keys[0]
    for j in range(d):
        hashes += _bits(X[:, j]).astype(np.uint64) * keys[j + 1]
    return splitmix64(hashes)


def sparse_hashes(parts: Sequence[SparseRows], seed: int) -> Hashes:
    """Return the hash (n,) of each row that consists of several parts. Zeros add nothing to the sum."""
    keys = _keys(seed, sum(part.width for part in parts))
    hashes, first = np.full(len(parts[0]), keys[0]), 1
    for part in parts:
        products = _bits(part.values).astype(np.uint64) * keys[first:][part.columns]
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(products)])
        hashes += sums[part.starts[1:]] - sums[part.starts[:-1]]
        first += part.width
    return splitmix64(hashes)


def _keys(seed: int, d: int) -> Hashes:
    """Return the factors of a sum of d numbers, the constant first."""
    return splitmix64(np.uint64(seed) + np.arange(1, d + 2, dtype=np.uint64) * np.uint64(GAMMA))


def group_hashes(groups: Array, seed: int) -> Hashes:
    """Return a hash (n,) of each row's group, a whole number of 64 bits, in place of that of the content."""
    with np.errstate(over="ignore"):
        return splitmix64(
            splitmix64(groups.astype(np.int64).view(np.uint64) + np.uint64(GAMMA)) ^ np.uint64(seed)
        )


def folds_of(hashes: Hashes, n_folds: int) -> npt.NDArray[np.intp]:
    """Return the fold (n,) of each hash, from 0: its high 32 bits, scaled to the number of folds."""
    return ((hashes >> np.uint64(32)) * np.uint64(n_folds) >> np.uint64(32)).astype(np.intp)


def hashes_of(X: Floats, seed: int, group: Array) -> Hashes:
    """Return the hash (n,) of each row of X (n, d), by its content or by the group in the column `group` (1,)."""
    return group_hashes(np.rint(X[:, group[0]]), seed) if len(group) else content_hashes(X, seed)


class EqualRows:
    """Sums of the labels of some contents, in one pass: are there few different rows, and how do labels vary?

    Each of many slots keeps the content with the smallest hash, so the result does not depend on the order of blocks.
    """

    def __init__(self, outputs: int) -> None:
        self._hashes = np.full(_LOOKED_AT, np.iinfo(np.uint64).max, np.uint64)
        self._sums = np.zeros((_LOOKED_AT, 2 + outputs))

    def add(self, hashes: Hashes, Y: Floats) -> None:
        """Add rows with these hashes (n,) and targets Y (n, k)."""
        slots, before = (hashes % np.uint64(_LOOKED_AT)).astype(np.intp), self._hashes.copy()
        np.minimum.at(self._hashes, slots, hashes)
        self._sums[self._hashes != before] = 0.0
        kept = np.flatnonzero(self._hashes[slots] == hashes)
        Y = Y[kept]
        np.add.at(self._sums, slots[kept], np.column_stack([np.ones(len(Y)), (Y**2).sum(axis=1), Y]))

    @property
    def few(self) -> bool:
        """True if different rows are few. Equal rows are then no copies."""
        return int(np.count_nonzero(self._sums[:, 0])) < FEW

    @property
    def variance(self) -> float | None:
        """The variance of the labels of equal rows, or None if no rows are equal."""
        n, squares, *y = self._sums[self._sums[:, 0] > 0.0].T
        degrees = float((n - 1.0).sum())
        return float((squares - sum(of_one**2 for of_one in y) / n).sum()) / degrees if degrees else None


def frequent(counts: Array, repeated: Mask) -> Mask:
    """Return those of the `repeated` (v,) with the most rows (v,), so that each has `OFTEN` on average."""
    ordered = np.sort(counts[repeated].astype(np.float64))[::-1]
    enough = ordered[np.cumsum(ordered) >= OFTEN * np.arange(1, len(ordered) + 1)]
    found: Mask = repeated & (counts >= enough.min(initial=np.inf))
    return found


def folds_to_learn(hashes: Hashes, n_folds: int, most: int) -> tuple[npt.NDArray[np.intp], Mask]:
    """Return the folds (n,) of rows with these hashes, and a mask of the rows (n,) whose fold is by their number.

    Those are rows that repeat often, if there are fewer than `most` different rows: all folds know them then.
    """
    folds = folds_of(hashes, n_folds)
    _, places, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    often = (frequent(counts, counts > 1) & (len(counts) < most))[places]
    folds[often] = folds_of(row_hashes(0, 0, len(hashes)), n_folds)[often]
    return folds, often


def _bits(x: Floats) -> npt.NDArray[np.uint32]:
    """Return the bits of numbers as float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = x.astype(np.float32) + np.float32(0.0)
    return np.where(np.isnan(narrow), _NAN, narrow.view(np.uint32))
