"""What a fit has seen of its columns, so that a later file that has drifted away is noticed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from kafeat.types import Array, Floats


@dataclass(frozen=True, eq=False)
class Seen:
    """The least and the largest value of every feature, (d,) float64; NaN where all of them were missing."""

    low: Floats
    high: Floats

    @classmethod
    def nothing(cls, width: int) -> Self:
        """Before the first row."""
        return cls(np.full(width, np.nan), np.full(width, np.nan))

    def adding(self, X: Floats) -> Seen:
        """The range with the rows X (n, d), in which NaN stands for a missing number."""
        if not len(X):
            return self
        low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
        return Seen(np.fmin(self.low, low), np.fmax(self.high, high))

    def outside(self, X: Floats) -> Array:
        """How many values of each feature of X (n, d) lie outside, (d,). A missing number does not."""
        low, high = self.low.astype(X.dtype), self.high.astype(X.dtype)
        # Of a column of which nothing was seen every number is new: no comparison with NaN holds.
        inside = np.greater_equal(X, low) & np.less_equal(X, high)
        return np.asarray(np.count_nonzero(~(inside | np.isnan(X)), axis=0))

    def to_plain(self) -> dict[str, Any]:
        """As arrays."""
        return {"low": self.low, "high": self.high}

    @classmethod
    def from_plain(cls, plain: object, width: int) -> Self:
        """From `to_plain`, which may come from a stranger; ValueError says what is wrong."""
        if not isinstance(plain, dict) or set(plain) != {"low", "high"}:
            raise ValueError("seen: expected low and high")
        for name, values in plain.items():
            if not isinstance(values, np.ndarray) or values.dtype != np.float64 or values.shape != (width,):
                raise ValueError(f"seen.{name}: expected {width} numbers of float64")
        if (np.isnan(plain["low"]) != np.isnan(plain["high"])).any() or (plain["low"] > plain["high"]).any():
            raise ValueError("seen: expected no low above its high")
        return cls(plain["low"], plain["high"])
