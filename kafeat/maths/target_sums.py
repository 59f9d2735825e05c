"""Target encoding: a row gets the mean target of its category in the other folds, shrunk by empirical Bayes.

If a category has many rows but few different rows, the mean is over the rows of all folds.
"""

from __future__ import annotations

import numpy as np

from kafeat.maths.content_folds import FEW, EqualRows, folds_of, frequent
from kafeat.maths.row_sample import Hashes
from kafeat.types import Array, Floats, Mask

# A hash of its content puts each row of a category into one of these parts. Their sizes show how many rows differ.
_PARTS = 32
# If the labels of equal rows correlate at least this much, equal rows count as copies of one row.
_OF_COPIES = 0.99


class TargetSums:
    """Target sums of one column of categories, for each value and fold. Rows are added block by block.

    Attributes:
        counts: The number of rows (v, K) of each of v values, in each of K folds.
    """

    def __init__(self, values: int, n_folds: int, outputs: int) -> None:
        self.counts = np.zeros((values, n_folds), np.int64)
        self._sums = np.zeros((outputs, values, n_folds))
        self._squares = np.zeros((outputs, n_folds))
        self._parts = np.zeros((values, _PARTS), np.int32)
        self._least, self._most = (
            np.full(values, np.iinfo(np.uint64).max, np.uint64),
            np.zeros(values, np.uint64),
        )

    def add(self, codes: Floats, hashes: Hashes, Y: Floats) -> None:
        """Add rows with these hashes and targets Y (n, k) one by one, so that sums do not depend on the blocks.

        Rows whose code (n,) is not from 0 to v − 1 are skipped.
        """
        values, n_folds = self.counts.shape
        known = np.flatnonzero((codes >= 0.0) & (codes < values))
        hashes, of_rows = hashes[known], np.rint(codes[known]).astype(np.intp)
        folds = folds_of(hashes, n_folds)
        places = of_rows * n_folds + folds
        np.add.at(self.counts.reshape(-1), places, 1)
        parts = (hashes % np.uint64(_PARTS)).astype(np.intp)
        np.add.at(self._parts.reshape(-1), of_rows * _PARTS + parts, np.int32(1))
        np.minimum.at(self._least, of_rows, hashes)
        np.maximum.at(self._most, of_rows, hashes)
        for sums, squares, y in zip(self._sums, self._squares, Y[known].T, strict=True):
            y = np.ascontiguousarray(y)
            np.add.at(sums.reshape(-1), places, y)
            np.add.at(squares, folds, y * y)

    @property
    def means(self) -> Floats:
        """The mean targets (k,) of all rows."""
        means: Floats = self._sums.sum(axis=(1, 2)) / self.counts.sum()
        return means

    def repeated(self, equal: EqualRows) -> Mask:
        """Return a mask (v,) of the values that get the mean of all folds: their rows are many, but few of them differ.

        For n rows of J different contents in P parts of n_p rows, E Σ_p n_p² = n²/J + n²(1 − 1/J)/P. If the labels of
        equal rows have the correlation ρ, n rows are worth n/(1 + (n/J − 1)ρ) (Kish 1965). Copies have ρ = 1.
        """
        correlation = self._correlation(equal)
        if correlation is None or correlation > _OF_COPIES:
            return np.zeros(len(self.counts), dtype=bool)
        n = self.counts.sum(axis=1).astype(np.float64)
        squares = (self._parts.astype(np.float64) ** 2).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            contents = n * n * (_PARTS - 1) / np.maximum(_PARTS * squares - n * n, 0.0)
        found = (contents < FEW) & (n >= 2.0 * contents)
        return frequent(n / (1.0 + np.maximum(n / contents - 1.0, 0.0) * correlation), found)

    def _correlation(self, equal: EqualRows) -> float | None:
        """Return the correlation of equal rows' labels in a category: None without equal rows, 0 if few differ."""
        counts, variance = self.counts.sum(axis=1), equal.variance
        if variance is None or equal.few:
            return None if variance is None else 0.0
        known = counts > 0
        of_values = (self._sums.sum(axis=2)[:, known] ** 2 / counts[known]).sum()
        rest = float(self._squares.sum() - of_values) / max(int(counts.sum() - known.sum()), 1)
        return float(np.clip(1.0 - variance / rest, 0.0, 1.0)) if rest > 0.0 else 0.0

    @property
    def of_equal_rows(self) -> Mask:
        """A mask of the values (v,) with several rows that are all equal, and therefore all in one fold."""
        return (self.counts.sum(axis=1) > 1) & (self._least == self._most)

    def encoded(self, means: Floats, smooth: float | None) -> Floats:
        """Return (S − n·means)/(n + m), (v, K, k), with the target sum S of a value's n rows in the other folds.

        m is `smooth`. If `smooth` is None, m follows from the variances.
        """
        return self._shrunk(means, smooth, self.counts, self._sums, self._squares)

    def of_all_folds(self, means: Floats, smooth: float | None) -> Floats:
        """Return the encoding as `encoded` does, but from the rows of all folds: (v, 1, k)."""
        nothing = (0 * self.counts[:, :1], 0.0 * self._sums[:, :, :1], 0.0 * self._squares[:, :1])
        return self._shrunk(means, smooth, *nothing)

    def _shrunk(
        self, means: Floats, smooth: float | None, own: Array, own_sums: Floats, own_squares: Floats
    ) -> Floats:
        """Return the encoding (v, K, k) from all rows outside each fold. `own` and its sums are the fold's."""
        counts = self.counts.sum(axis=1, keepdims=True) - own
        sums = self._sums.sum(axis=2, keepdims=True) - own_sums
        squares = self._squares.sum(axis=1, keepdims=True) - own_squares
        encoded = np.empty((*counts.shape, len(means)))
        for c, mean in enumerate(means):
            m = _prior_rows(counts, sums[c], squares[c]) if smooth is None else smooth
            with np.errstate(invalid="ignore"):
                encoded[:, :, c] = np.where(counts > 0, (sums[c] - counts * mean) / (counts + m), 0.0)
        return encoded


def _prior_rows(counts: Array, sums: Floats, squares: Floats) -> Floats:
    """Return m = σ²_within/σ²_between for each fold (K,), by an analysis of variance, or inf if values do not differ.

    `counts` (v, K) are numbers of rows, `sums` (v, K) target sums, and `squares` (K,) sums of squared targets.
    """
    rows, values = counts.sum(axis=0), np.count_nonzero(counts, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_values = np.where(counts > 0, sums**2 / counts, 0.0).sum(axis=0)
        within = np.maximum(squares - of_values, 0.0) / (rows - values)
        between = np.maximum(of_values - sums.sum(axis=0) ** 2 / rows, 0.0) / (values - 1)
        size = (rows - (counts.astype(np.float64) ** 2).sum(axis=0) / rows) / (values - 1)
        spread = (between - within) / size
        prior = within / spread
    return np.where((rows > values) & (values > 1) & (spread > 0.0), prior, np.inf)
