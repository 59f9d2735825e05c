"""Means of the input columns in the training rows, so that a test of drift can name the columns that differ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from kafeat.contract.tile import InputRows, SparseRows, TextRows, dense
from kafeat.types import Array, Floats


class Difference(NamedTuple):
    """The mean of a column, or its share of missing values, in new rows and in the training rows.

    `units` is the difference in standard deviations of the column, or of the indicator of a missing value.
    """

    column: int
    missing: bool
    here: float
    of_fit: float
    units: float


def column_sums(X: InputRows) -> Floats:
    """Return the counts and the sums (2, d) of the values of each column that are not NaN. Both are 0 for text."""
    if isinstance(X, TextRows):
        sums = np.zeros((2, X.width))
        sums[:, X.plain] = column_sums(X.numbers)
        return sums
    if isinstance(X, SparseRows):
        missing = np.bincount(X.columns[np.isnan(X.values)], minlength=X.width)
        values = np.nan_to_num(X.values.astype(np.float64))
        return np.stack([len(X) - missing, np.bincount(X.columns, values, X.width)])
    known = ~np.isnan(X)
    return np.stack([known.sum(axis=0), X.sum(axis=0, dtype=np.float64, where=known)])


@dataclass(frozen=True, eq=False)
class ColumnMeans:
    """For k columns of `rows` rows: the count, the mean and the standard deviation (k,) of values that are not NaN."""

    known: Floats
    mean: Floats
    deviation: Floats
    rows: int

    @classmethod
    def of(cls, X: InputRows, columns: Array) -> Self | None:
        """Return the means of the columns at the positions `columns` (k,) of X (n, d), or None if squares overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            known, total = column_sums(X)
            count = np.maximum(known, 1.0)
            mean = total / count
            if isinstance(X, TextRows):
                apart: InputRows = replace(X, numbers=_squares(X.numbers, mean[X.plain]))
            else:
                apart = _squares(dense(X), mean)
            deviation = np.sqrt(column_sums(apart)[1] / count)[columns]
        if not np.isfinite(deviation).all():
            return None
        return cls(known[columns], mean[columns], deviation, len(X))

    def differences(self, sums: Floats, rows: int) -> list[Difference]:
        """Return the columns that differ in new rows by more than three standard errors, largest difference first."""
        known, here = sums[0], sums[1] / np.maximum(sums[0], 1.0)
        lost, lost_of_fit = 1.0 - known / rows, 1.0 - self.known / self.rows
        share = (rows * lost + self.rows * lost_of_fit) / (rows + self.rows)
        both = (known > 0.0) & (self.known > 0.0)
        of_mean = 1.0 / np.maximum(known, 1.0) + 1.0 / np.maximum(self.known, 1.0)
        of_share = np.full(len(here), 1.0 / rows + 1.0 / self.rows)
        found = []
        for missing, one, of_fit, unit, noise in (
            (False, here, self.mean, self.deviation, of_mean),
            (True, lost, lost_of_fit, np.sqrt(share * (1.0 - share)), of_share),
        ):
            apart = np.where(both | missing, np.abs(one - of_fit), 0.0)
            units = np.divide(apart, unit, out=np.where(apart > 0.0, np.inf, 0.0), where=unit > 0.0)
            found += [
                Difference(int(j), missing, float(one[j]), float(of_fit[j]), float(units[j]))
                for j in np.flatnonzero(units > 3.0 * np.sqrt(noise))
            ]
        return sorted(found, key=lambda difference: -difference.units)

    def to_plain(self) -> Floats:
        """Return the numbers (3, k) for the model file."""
        return np.stack([self.known, self.mean, self.deviation])

    @classmethod
    def from_plain(cls, plain: Floats, rows: int) -> Self:
        """Read the finite numbers (3, k) of an untrusted model file; raise `ValueError` if they are invalid."""
        known, mean, deviation = plain
        if (known < 0.0).any() or (known > rows).any() or (deviation < 0.0).any():
            raise ValueError(
                "feature_mean.columns: expected counts from 0 to the number of rows, and deviations of at least 0"
            )
        return cls(known, mean, deviation, rows)


def _squares(X: Floats, mean: Floats) -> Floats:
    """Return the squared deviations of X (n, d) from the means (d,), with 0 for missing values."""
    return np.nan_to_num(np.square(X - mean), nan=0.0, posinf=np.inf)
