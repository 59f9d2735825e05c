"""Ranges of the columns and the mean of the features of the training rows, so that drift of later files is detected.

The two-sample test of kernels, on explicit features, tests whether two samples have the same mean feature. With n and m
rows, T = nm/(n + m)·‖μ̂ − ν̂‖² for the two means of features. If both samples have one distribution, T is in the limit
Σ λ_i χ²₁, with the eigenvalues λ_i of the features' covariance Σ. The first three cumulants of this sum are tr Σ, 2 tr
Σ² and 8 tr Σ³. The variable aχ²_ν + b with these cumulants is close to the sum, closest in the upper tail.

Source: Gretton, Borgwardt, Rasch, Schölkopf & Smola, JMLR 13, 2012, theorem 12; Imhof 1961, section 4 (cumulants).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Any, Self

import numpy as np

from kafeat.chain.tiles import run_tiles
from kafeat.contract.checks import arrays_of, check_arrays
from kafeat.contract.step import Transform
from kafeat.contract.tile import InputRows, SparseRows, TextRows, numbers_of
from kafeat.errors import first_of, quoted
from kafeat.io.columns.columns import Columns
from kafeat.runtime.column_means import ColumnMeans
from kafeat.types import Array, ArrayOf, Floats

MOST_ROWS = 10_000
"""Largest number of rows for the mean of the training features: more rows cost time but add little power."""
_PAIRS = 512
LEAST_TOLD = 10
"""With at least this many rows, warn of a column in which no row has a category that the model knows."""


def traces(features: Floats, rng: np.random.Generator) -> Floats:
    """Return unbiased estimates of tr Σ, tr Σ² and tr Σ³ of the covariance Σ of features (n, D), from pairs of rows.

    The differences u of disjoint pairs, divided by √2, have mean 0 and covariance Σ. So (u·v)² of two of them has mean
    tr Σ², and (u·v)(v·w)(w·u) has mean tr Σ³.
    """
    order = rng.permutation(len(features))[: 2 * _PAIRS]
    half = len(order) // 2
    U = (features[order[:half]].astype(np.float64) - features[order[half : 2 * half]]) / np.sqrt(2.0)
    products = U @ U.T
    first = products.diagonal().mean() if half else np.float64(0.0)
    np.fill_diagonal(products, 0.0)
    second = (products**2).sum() / max(1, half * (half - 1))
    third = ((products @ products) * products).sum() / max(1, half * (half - 1) * (half - 2))
    return _consistent(first, second, third)


def _consistent(first: np.float64, second: np.float64, third: np.float64) -> Floats:
    """Clip estimated traces to the bounds that hold for the traces of every covariance.

    The traces are NumPy's floats, which overflow to infinity where Python's floats would raise an error.
    """
    second = min(second, first**2)
    if not second > 0.0:
        second = first**2  # only one pair of rows, or constant features
    third = min(max(third, second**2 / first if first else np.float64(0.0)), second**1.5)
    if not third > 0.0:  # underflow: treat the features as constant
        second = third
    return np.array([first, second, third])


def statistic(difference: Array, n: int, m: int) -> float:
    """Return T for the difference of two means (D,), over n and m rows."""
    return n * m / (n + m) * float(difference @ difference)


def p_value(value: float, of_covariance: Floats) -> float:
    """Return the probability that T is at least `value` if both samples have one distribution."""
    from scipy.special import gammaincc

    first, second, third = (float(trace) for trace in of_covariance)
    if not third > 0.0:  # constant features: any difference beyond rounding is real
        return float(value <= 0.0)
    scale, degrees = third / second, second**3 / third**2
    least = first - scale * degrees
    return float(gammaincc(degrees / 2.0, max(0.0, value - least) / (2.0 * scale)))


@dataclass(frozen=True, eq=False)
class ColumnRanges:
    """The smallest and the largest value of every feature, (d,) float64, or NaN if all values were missing."""

    low: Floats
    high: Floats

    @classmethod
    def empty(cls, width: int) -> Self:
        """Return ranges before any value is added, all NaN."""
        return cls(np.full(width, np.nan), np.full(width, np.nan))

    def adding(self, X: InputRows) -> ColumnRanges:
        """Return the ranges extended by the rows X (n, d), in which NaN is a missing number."""
        if not len(X):
            return self
        if isinstance(X, SparseRows):
            return self._adding_sparse(X)
        low, high, some = self.low.copy(), self.high.copy(), _numbers(X)
        low[some] = np.fmin(low[some], np.fmin.reduce(numbers_of(X), axis=0))
        high[some] = np.fmax(high[some], np.fmax.reduce(numbers_of(X), axis=0))
        return ColumnRanges(low, high)

    def _adding_sparse(self, X: SparseRows) -> ColumnRanges:
        low, high = self.low.copy(), self.high.copy()
        np.fmin.at(low, X.columns, X.values.astype(np.float64))
        np.fmax.at(high, X.columns, X.values.astype(np.float64))
        zeros = np.bincount(X.columns, minlength=X.width) < len(X)
        low[zeros], high[zeros] = np.fmin(low[zeros], 0.0), np.fmax(high[zeros], 0.0)
        return ColumnRanges(low, high)

    def joined(self, other: ColumnRanges) -> ColumnRanges:
        """Return ranges that contain these ranges and those of `other`."""
        return ColumnRanges(np.fmin(self.low, other.low), np.fmax(self.high, other.high))

    def named(self, inputs: Iterable[tuple[str, int]]) -> dict[str, list[float | None]]:
        """Return [low, high] by name, for inputs (name, position). Both are None if all values were missing."""
        ends = {name: (float(self.low[j]), float(self.high[j])) for name, j in inputs}
        return {name: [None if value != value else value for value in both] for name, both in ends.items()}

    def outside(self, X: InputRows) -> Array:
        """Count the values of each feature of X (n, d) outside its range, (d,). Missing numbers do not count."""
        with np.errstate(over="ignore"):
            low, high = self.low.astype(X.dtype), self.high.astype(X.dtype)
        if isinstance(X, SparseRows):
            inside = (X.values >= low[X.columns]) & (X.values <= high[X.columns])
            beyond = np.bincount(X.columns[~(inside | np.isnan(X.values))], minlength=X.width)
            zeros = len(X) - np.bincount(X.columns, minlength=X.width)
            return np.asarray(beyond + np.where((low <= 0.0) & (high >= 0.0), 0, zeros))
        # Comparisons with NaN are false, so all numbers of a column whose values were all missing count as outside.
        some, numbers, outside = _numbers(X), numbers_of(X), np.zeros(X.shape[1], np.int64)
        inside = np.greater_equal(numbers, low[some]) & np.less_equal(numbers, high[some])
        outside[some] = np.count_nonzero(~(inside | np.isnan(numbers)), axis=0)
        return outside

    def to_plain(self) -> dict[str, Any]:
        """Return the ranges as a dict of arrays, for the model file."""
        return {"low": self.low, "high": self.high}

    @classmethod
    def from_plain(cls, plain: object, width: int) -> Self:
        """Read the dict of an untrusted model file; raise `ValueError` if it is invalid."""
        arrays = arrays_of(plain, "seen")
        check_arrays(
            arrays, dict.fromkeys(("high", "low"), ArrayOf((width,), "float64", missing=True)), "seen"
        )
        low, high = arrays["low"], arrays["high"]
        if (np.isnan(low) != np.isnan(high)).any() or (low > high).any():
            raise ValueError("seen: expected every low at or below its high")
        return cls(low, high)


class SeenCategories:
    """Records, for each column of categories, whether any row has a category that the model knows."""

    def __init__(self, columns: Columns) -> None:
        n_categories = columns.n_categories
        coded = {j: name for name, j in columns.inputs if n_categories[j]}
        self._names, self._places, self._known = [*coded.values()], [*coded], np.zeros(len(coded), bool)

    def add(self, X: InputRows) -> None:
        """Record the categories in rows X (n, d). Several threads may call this."""
        if not self._known.all():
            places = np.searchsorted(X.plain, self._places) if isinstance(X, TextRows) else self._places
            self._known |= (numbers_of(X)[:, places] >= 0.0).any(axis=0)

    def unknown(self, rows: int) -> str | None:
        """Return a sentence about columns without any known category. None if there are none, or only few `rows`."""
        names = [quoted(name) for name, known in zip(self._names, self._known, strict=True) if not known]
        if not names or rows < LEAST_TOLD:
            return None
        return f"column {first_of(names)}: expected some categories that the model knows, got none of them"


def _numbers(X: InputRows) -> Array | slice:
    """Return an index of the features that have ranges: all except counts of n-grams of texts."""
    return X.plain if isinstance(X, TextRows) else slice(None)


@dataclass(frozen=True)
class DriftTest:
    """The result of a test whether the features have the same mean as those of the training rows.

    Attributes:
        p_value: Probability of a difference of at least that size, if the rows are drawn like the training rows.
        distance: Distance of the two means.
        usual: Root mean square of that distance for rows drawn like the training rows.
    """

    p_value: float
    distance: float
    usual: float


@dataclass(frozen=True, eq=False)
class FeatureMean:
    """The mean (D,) of the features of `rows` rows, and tr Σ, tr Σ², tr Σ³ of their covariance Σ as `traces`.

    `columns` are the means of the input columns, or None if their squares overflow or an older kafeat wrote the file.
    """

    mean: Floats
    traces: Floats
    rows: int
    columns: ColumnMeans | None = None

    @classmethod
    def of_sample(
        cls, transform: Transform, X: Floats, dtype: np.dtype[Any], rng: np.random.Generator, inputs: Array
    ) -> Self | None:
        """Return the mean of the features of rows X (n, d), or of `MOST_ROWS` of them; None if squares overflow.

        `inputs` are the positions of the input columns that a test of drift may name.
        """
        if len(X) > MOST_ROWS:
            X = X[np.sort(rng.choice(len(X), size=MOST_ROWS, replace=False))]
        features = run_tiles(transform, X, dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            mean, powers = features.mean(axis=0, dtype=np.float64), traces(features, rng)
        if not (np.isfinite(mean).all() and np.isfinite(powers).all()):
            return None
        return cls(mean, powers, len(X), ColumnMeans.of(X, inputs))

    def unit_scale(self, dtype: str) -> float | None:
        """Return √(D / tr Σ), with the covariance Σ of the features of training rows.

        Multiplied by this factor, the D features have a mean variance of about 1. Return None if the features do not
        vary, or if `dtype` cannot hold the factor.
        """
        trace, limits = float(self.traces[0]), np.finfo(dtype)
        scale = sqrt(len(self.mean)) / sqrt(trace) if trace else 0.0
        return scale if limits.tiny < scale < limits.max else None

    def test(self, total: Array, rows: int) -> DriftTest | None:
        """Test whether `rows` new rows, whose features have the sum `total` (D,), have this mean. None for 0 rows."""
        if not rows:
            return None
        difference = total / rows - self.mean
        usual = float(np.sqrt(self.traces[0] * (1.0 / rows + 1.0 / self.rows)))
        value = statistic(difference, self.rows, rows)
        return DriftTest(p_value(value, self.traces), float(np.linalg.norm(difference)), usual)

    def to_plain(self) -> dict[str, Any]:
        """Return builtins and arrays, for the model file."""
        columns = {} if self.columns is None else {"columns": self.columns.to_plain()}
        return {"mean": self.mean, "traces": self.traces, "rows": self.rows, **columns}

    @classmethod
    def from_plain(cls, plain: object, width: int, inputs: int = 0) -> Self:
        """Read the dict of an untrusted model file with D = `width` features. Raise `ValueError` if it is invalid."""
        rows = plain.get("rows") if isinstance(plain, dict) else None
        if not isinstance(plain, dict) or type(rows) is not int or rows < 1:
            raise ValueError("feature_mean.rows: expected a whole number of at least 1")
        arrays = arrays_of({name: one for name, one in plain.items() if name != "rows"}, "feature_mean")
        shapes = {
            "mean": ArrayOf((width,), "float64"),
            "traces": ArrayOf((3,), "float64", sign="of at least 0"),
            "columns": ArrayOf((3, inputs), "float64", optional=True),
        }
        check_arrays(arrays, shapes, "feature_mean")
        if (arrays["traces"][1] == 0.0) != (arrays["traces"][2] == 0.0):
            raise ValueError("feature_mean.traces: expected the last two to be both 0 or both above 0")
        means = ColumnMeans.from_plain(arrays["columns"], rows) if "columns" in arrays else None
        return cls(arrays["mean"], arrays["traces"], rows, means)
