"""Ranges of the columns that a map was fitted on, so that drift of later files can be detected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from kafeat.contract.tile import Rows, SparseRows
from kafeat.types import Array, Floats


@dataclass(frozen=True, eq=False)
class ColumnRanges:
    """The least and the largest value of every feature, (d,) float64; NaN if all values were missing."""

    low: Floats
    high: Floats

    @classmethod
    def empty(cls, width: int) -> Self:
        """Return the ranges of no rows."""
        return cls(np.full(width, np.nan), np.full(width, np.nan))

    def adding(self, X: Rows) -> ColumnRanges:
        """Return the ranges extended by the rows X (n, d), in which NaN is a missing number."""
        if not len(X):
            return self
        if isinstance(X, SparseRows):
            return self._adding_sparse(X)
        low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
        return ColumnRanges(np.fmin(self.low, low), np.fmax(self.high, high))

    def _adding_sparse(self, X: SparseRows) -> ColumnRanges:
        low, high = self.low.copy(), self.high.copy()
        np.fmin.at(low, X.columns, X.values.astype(np.float64))
        np.fmax.at(high, X.columns, X.values.astype(np.float64))
        zeros = np.bincount(X.columns, minlength=X.width) < len(X)
        low[zeros], high[zeros] = np.fmin(low[zeros], 0.0), np.fmax(high[zeros], 0.0)
        return ColumnRanges(low, high)

    def outside(self, X: Rows) -> Array:
        """Count the values of each feature of X (n, d) that lie outside, (d,). Missing numbers do not count."""
        with np.errstate(over="ignore"):
            low, high = self.low.astype(X.dtype), self.high.astype(X.dtype)
        if isinstance(X, SparseRows):
            inside = (X.values >= low[X.columns]) & (X.values <= high[X.columns])
            beyond = np.bincount(X.columns[~(inside | np.isnan(X.values))], minlength=X.width)
            zeros = len(X) - np.bincount(X.columns, minlength=X.width)
            return np.asarray(beyond + np.where((low <= 0.0) & (high >= 0.0), 0, zeros))
        # No comparison with NaN holds, so all numbers of a column whose values were all missing count as outside.
        inside = np.greater_equal(X, low) & np.less_equal(X, high)
        return np.asarray(np.count_nonzero(~(inside | np.isnan(X)), axis=0))

    def to_plain(self) -> dict[str, Any]:
        """Return the ranges as a dict of arrays, for the model file."""
        return {"low": self.low, "high": self.high}

    @classmethod
    def from_plain(cls, plain: object, width: int) -> Self:
        """Read the dict of an untrusted model file; raise `ValueError` if it is invalid."""
        if not isinstance(plain, dict) or set(plain) != {"low", "high"}:
            raise ValueError("seen: expected low and high")
        for name, values in plain.items():
            if not isinstance(values, np.ndarray) or values.dtype != np.float64 or values.shape != (width,):
                raise ValueError(f"seen.{name}: expected {width} numbers of float64")
        if (np.isnan(plain["low"]) != np.isnan(plain["high"])).any() or (plain["low"] > plain["high"]).any():
            raise ValueError("seen: expected no low above its high")
        return cls(plain["low"], plain["high"])
