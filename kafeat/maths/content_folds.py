"""Folds for cross-fitting by content: a hash of a row's numbers gives its fold, for new rows as well as training rows.

Equal rows share a fold. Numbers count as float32, −0 as 0, and all NaNs as equal, so the format does not matter.

Suppose that there are only few different rows, such as answers to a few questions. A model that has seen no copy of a
row then knows too little about it. So the row number gives the fold of a row that repeats often: its copies are spread
over the folds, and every model learns from some of them.
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
"""A placeholder for lists of hashes (int64) that must not be empty. A row gets this hash only with probability 2⁻⁶⁴."""
NO_GROUP = np.empty(0, np.int64)
"""The value of `group` if there is no group column. The content of a row then decides its fold."""
OFTEN = 5
"""With this many copies on average, rows may see their own labels: by chance, k means of n labels explain R² = k/n."""
FEW = 50
"""With at least this many different rows, a model can predict a row without having seen a copy of it."""
_NAN = np.uint32(0x7FC00000)
# The number of different rows whose labels `EqualRows` compares.
_LOOKED_AT = 1 << 12


def content_hashes(X: Floats, seed: int) -> Hashes:
    """Return a hash (n,) of each row of X (n, d): mix(a₀ + Σ_j a_j·b_j mod 2⁶⁴), where b_j are the float32 bits of x_j.

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
    """Return the hashes (n,) of `content_hashes` for rows whose columns are divided among the sparse `parts`."""
    keys = _keys(seed, sum(part.width for part in parts))
    hashes, first = np.full(len(parts[0]), keys[0]), 1
    for part in parts:
        products = _bits(part.values).astype(np.uint64) * keys[first:][part.columns]
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(products)])
        hashes += sums[part.starts[1:]] - sums[part.starts[:-1]]
        first += part.width
    return splitmix64(hashes)


def _keys(seed: int, d: int) -> Hashes:
    """Return the factors a₀, a₁, …, a_d of the hash of d numbers."""
    return splitmix64(np.uint64(seed) + np.arange(1, d + 2, dtype=np.uint64) * np.uint64(GAMMA))


def group_hashes(groups: Array, seed: int) -> Hashes:
    """Return a hash (n,) of each row's group number (int64), which is used in place of the hash of its content."""
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
    """The sums of the labels of equal rows, for a random sample of the different rows, from one pass over the data.

    A row's hash gives its slot in a table. A slot keeps the smallest of its hashes, so the order of blocks does not
    matter.
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
        """True if there are few different rows. Rows are then equal by coincidence, not because one row was copied."""
        return int(np.count_nonzero(self._sums[:, 0])) < FEW

    @property
    def variance(self) -> float | None:
        """The pooled variance of the labels within each set of equal rows, or None if no rows are equal."""
        n, squares, *y = self._sums[self._sums[:, 0] > 0.0].T
        degrees = float((n - 1.0).sum())
        return float((squares - sum(of_one**2 for of_one in y) / n).sum()) / degrees if degrees else None


def frequent(counts: Array, repeated: Mask) -> Mask:
    """Return a mask (v,) of as many of the most frequent `repeated` values as have a mean count of at least `OFTEN`."""
    ordered = np.sort(counts[repeated].astype(np.float64))[::-1]
    enough = ordered[np.cumsum(ordered) >= OFTEN * np.arange(1, len(ordered) + 1)]
    found: Mask = repeated & (counts >= enough.min(initial=np.inf))
    return found


def folds_to_learn(hashes: Hashes, n_folds: int, most: int) -> tuple[npt.NDArray[np.intp], Mask]:
    """Return the folds (n,) of rows with these hashes, and a mask (n,) of rows whose row number decides the fold.

    The row number decides for rows that repeat often, but only if there are fewer than `most` different rows.
    """
    folds = folds_of(hashes, n_folds)
    _, places, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    often = (frequent(counts, counts > 1) & (len(counts) < most))[places]
    folds[often] = folds_of(row_hashes(0, 0, len(hashes)), n_folds)[often]
    return folds, often


def _bits(x: Floats) -> npt.NDArray[np.uint32]:
    """Return the bits of the numbers in float32, with −0 as 0 and the same bits for every NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = x.astype(np.float32) + np.float32(0.0)
    return np.where(np.isnan(narrow), _NAN, narrow.view(np.uint32))
