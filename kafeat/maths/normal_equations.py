"""Normal equations that are summed over blocks of rows, for each fold apart.

Each fold has normal equations of its own, and the error on a fold follows from its sums, so rows are read once and not
held: memory is O(D²) for any number of rows.
"""

from __future__ import annotations

import numpy as np

from kafeat.errors import DataError
from kafeat.maths.linear_system import FOLDS, each
from kafeat.maths.ridge import LinearModel, LinearRidge
from kafeat.maths.row_sums import RowSums, total_of
from kafeat.maths.units import power_of_two
from kafeat.types import Array, Floats


class NormalEquations:
    """Sums over rows (n, D) and targets (n, k) for each fold, in memory O(D²) for any number of rows.

    `jobs` threads share the products and penalties. The model does not depend on their number.
    """

    def __init__(self, width: int, targets: int, jobs: int = 1) -> None:
        self._sums = [RowSums.empty(width, targets) for _ in range(FOLDS)]
        self._pivot: tuple[Floats, Floats] | None = None
        self._units: Floats = np.ones(width)
        self._jobs = jobs

    def add(self, Z: Floats, Y: Floats, folds: Array, weights: Floats | None = None) -> None:
        """Add every row to its fold, as often as its weight (n,) says, or once."""
        if not len(Z):
            return
        if self._pivot is None:
            # Sum about a point near the mean, because sums about 0 lose their digits if the mean is large.
            self._pivot = Z.mean(axis=0, dtype=np.float64), Y.mean(axis=0)
            sizes = np.abs(Z - self._pivot[0]).max(axis=0)
            self._units = power_of_two(np.where(sizes > 0.0, sizes, sizes.max(initial=0.0)))
        middle, level = self._pivot

        def add(fold: int) -> None:
            rows = np.flatnonzero(folds == fold)
            z = Z[rows].astype(np.float64, copy=False)
            z -= middle
            z /= self._units
            self._sums[fold].add(z, Y[rows] - level, None if weights is None else weights[rows])

        each(add, range(FOLDS), self._jobs)
        if not all(np.isfinite(sums.zz.diagonal()).all() for sums in self._sums):
            raise DataError(
                "ridge: expected columns whose squares float64 can hold, got larger ones: scale the input"
            )

    def solve(self, standardize: bool = False) -> LinearModel:
        """Return the model with the best penalty; `standardize` first divides columns by their standard deviation."""
        training = self.training(standardize)
        return training.model(training.search())

    @np.errstate(over="ignore")  # columns that are tiny compared with others overflow
    def training(self, standardize: bool = False) -> LinearRidge:
        """Return the summed equations; `standardize` divides columns by their standard deviation."""
        if self._pivot is None:
            raise ValueError("no rows were added")
        total, pivot = total_of(self._sums), self._pivot
        if standardize:
            unit = 1.0
            spread = np.sqrt(np.maximum(total.zz.diagonal() - total.z**2 / total.n, 0.0) / total.n)
            # a column that is constant except for rounding is not used
            scale = np.where(spread * self._units > 1e-12 * np.abs(pivot[0]), spread, np.inf)
        else:
            unit = float(self._units.max())
            scale = unit / self._units  # back to one unit for all columns
        return LinearRidge(self._sums, total, scale, unit, pivot, self._units, self._jobs)
