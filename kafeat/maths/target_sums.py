"""Mean targets of categories, shrunk by empirical Bayes, from sums of which those of a row's own fold are left out."""

from __future__ import annotations

import numpy as np

from kafeat.types import Array, Floats


class TargetSums:
    """The sums of one column of categories, by value and fold, of rows that are added block by block.

    Attributes:
        counts: The number of rows (v, K) of each of v values, in each of K folds.
    """

    def __init__(self, values: int, n_folds: int, outputs: int) -> None:
        self.counts = np.zeros((values, n_folds), np.int64)
        self._sums = np.zeros((outputs, values, n_folds))
        self._squares = np.zeros((outputs, n_folds))

    def add(self, codes: Floats, folds: Array, Y: Floats) -> None:
        """Add rows with targets Y (n, k), one after the other: sums do not depend on the blocks.

        A code (n,) that is no value is passed over.
        """
        values, n_folds = self.counts.shape
        known = np.flatnonzero((codes >= 0.0) & (codes < values))
        folds = folds[known]
        places = np.rint(codes[known]).astype(np.intp) * n_folds + folds
        np.add.at(self.counts.reshape(-1), places, 1)
        for sums, squares, y in zip(self._sums, self._squares, Y[known].T, strict=True):
            y = np.ascontiguousarray(y)
            np.add.at(sums.reshape(-1), places, y)
            np.add.at(squares, folds, y * y)

    @property
    def means(self) -> Floats:
        """The mean targets (k,) of all rows."""
        means: Floats = self._sums.sum(axis=(1, 2)) / self.counts.sum()
        return means

    def encoded(self, means: Floats, smooth: float | None) -> Floats:
        """Return (S − n·means)/(n + m) (v, K, k) of the n rows with the value in the other folds, whose sum is S.

        m is `smooth`, or follows from the variances.
        """
        counts = self.counts.sum(axis=1, keepdims=True) - self.counts
        encoded = np.empty((*counts.shape, len(means)))
        for c, (own, squares, mean) in enumerate(zip(self._sums, self._squares, means, strict=True)):
            sums = own.sum(axis=1, keepdims=True) - own
            m = _prior_rows(counts, sums, squares.sum() - squares) if smooth is None else smooth
            with np.errstate(invalid="ignore"):
                encoded[:, :, c] = np.where(counts > 0, (sums - counts * mean) / (counts + m), 0.0)
        return encoded


def _prior_rows(counts: Array, sums: Floats, squares: Floats) -> Floats:
    """Return σ²_within/σ²_between (K,), estimated by an analysis of variance; inf where values do not differ.

    `counts` and `sums` (v, K) are those of the values, and `squares` (K,) the sums of the squared targets.
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
