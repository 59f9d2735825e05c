"""Ridge regression in closed form, from normal equations that are summed over blocks of rows.

The model is min_W ‖Y − 1t − ZW‖² + λ‖W‖², with no penalty on the intercept t. With centred columns,
W = (ZᵀZ + λ)⁻¹ZᵀY. The penalty is chosen by cross-validation. Each fold has normal equations of its own, and the error
on a fold follows from its sums, so the data are read once and not held.

Source: Hastie, Tibshirani & Friedman 2009, section 3.4.1 and 7.10.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafeat.errors import DataError
from kafeat.evaluation.kernel_ridge import PENALTIES, each, penalty_of, rounding_of, sharing, solved
from kafeat.evaluation.preparation import FOLDS
from kafeat.maths.units import power_of_two
from kafeat.types import Array, Floats


@dataclass(frozen=True)
class LinearModel:
    """ŷ = Zw + intercept, with w (D, k)."""

    w: Floats
    intercept: Floats
    penalty: float
    converged: bool = True

    def __call__(self, Z: Floats) -> Floats:
        predicted: Floats = Z @ self.w + self.intercept
        return predicted

    @property
    def nonzero(self) -> int:
        """Return the number of inputs with a nonzero coefficient."""
        return int((self.w != 0.0).any(axis=1).sum())


@dataclass
class _Sums:
    """Sums over rows: their number, Σz, Σy, ZᵀZ, ZᵀY and Σ‖y‖²."""

    n: float
    z: Floats
    y: Floats
    zz: Floats
    zy: Floats
    yy: float

    def add(self, z: Floats, y: Floats) -> None:
        """Add rows z (n, D) with targets y (n, k)."""
        self.n += len(z)
        self.z += z.sum(axis=0)
        self.y += y.sum(axis=0)
        self.zz += z.T @ z
        self.zy += z.T @ y
        self.yy += float((y**2).sum())

    def centred(self, z: Floats, y: Floats) -> tuple[Floats, Floats, float]:
        """Return ZᵀZ, ZᵀY and Σ‖y‖² about the means z (D,) and y (k,)."""
        outer = np.outer(self.z, z)
        zz = self.zz - outer - outer.T + self.n * np.outer(z, z)
        zy = self.zy - np.outer(self.z, y) - np.outer(z, self.y) + self.n * np.outer(z, y)
        return zz, zy, self.yy - 2.0 * float(self.y @ y) + self.n * float(y @ y)


class NormalEquations:
    """Sums over rows (n, D) and targets (n, k) for each fold, in memory O(D²) for any number of rows.

    `jobs` threads share the products and penalties. The model does not depend on their number.
    """

    def __init__(self, width: int, targets: int, jobs: int = 1) -> None:
        self._sums = [
            _Sums(
                0,
                np.zeros(width),
                np.zeros(targets),
                np.zeros((width, width)),
                np.zeros((width, targets)),
                0.0,
            )
            for _ in range(FOLDS)
        ]
        self._pivot: tuple[Floats, Floats] | None = None
        self._units: Floats = np.ones(width)
        self._jobs = jobs

    def add(self, Z: Floats, Y: Floats, folds: Array) -> None:
        """Add every row to its fold."""
        if not len(Z):
            return
        Z = Z.astype(np.float64)
        if self._pivot is None:
            # Sum about a point near the mean, because sums about 0 lose their digits if the mean is large.
            self._pivot = Z.mean(axis=0), Y.mean(axis=0)
            sizes = np.abs(Z - self._pivot[0]).max(axis=0)
            self._units = power_of_two(np.where(sizes > 0.0, sizes, sizes.max(initial=0.0)))
        Z -= self._pivot[0]
        Z /= self._units
        Y = Y - self._pivot[1]

        def add(fold: int) -> None:
            self._sums[fold].add(Z[folds == fold], Y[folds == fold])

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
        total, pivot = _total(self._sums), self._pivot
        if standardize:
            unit = 1.0
            spread = np.sqrt(np.maximum(total.zz.diagonal() - total.z**2 / total.n, 0.0) / total.n)
            # a column that is constant except for rounding is not used
            scale = np.where(spread * self._units > 1e-12 * np.abs(pivot[0]), spread, np.inf)
        else:
            unit = float(self._units.max())
            scale = unit / self._units  # back to one unit for all columns
        return LinearRidge(self._sums, total, scale, unit, pivot, self._units, self._jobs)


@dataclass
class LinearRidge:
    """Normal equations of all rows, ready to be solved."""

    folds: list[_Sums]
    total: _Sums
    scale: Floats
    """Divisors of the columns, before the penalty."""
    unit: float
    """Unit of the columns that the penalty is about."""
    pivot: tuple[Floats, Floats]
    units: Floats
    jobs: int
    searched: tuple[float, float] | None = None
    """The penalty of the search, and the same in `unit`: the square of an extreme unit is 0 or infinite."""

    @np.errstate(over="ignore")
    def search(self) -> float:
        """Return the penalty with the least squared error over the folds."""
        relative = float(PENALTIES[int(np.argmin(self._errors()))])
        inner = _System(self.total, self.scale).penalty(relative)
        self.searched = inner * self.unit * self.unit, inner
        return self.searched[0]

    @np.errstate(over="ignore")
    def model(self, penalty: float) -> LinearModel:
        """Return the model with this penalty, or the smallest one above rounding errors."""
        system = _System(self.total, self.scale)
        if self.searched is not None and self.searched[0] == penalty:
            inner = self.searched[1]
        else:
            inner = max(penalty / self.unit / self.unit, system.rounding)
        slopes = system.solved(inner) / self.units[:, None]
        middle = self.pivot[0] + system.z * self.units
        intercept = self.pivot[1] + system.y - middle @ slopes
        return LinearModel(slopes, intercept, inner * self.unit * self.unit)

    def _errors(self) -> Floats:
        """Return the cross-validated sum of squared errors for every penalty."""
        errors = np.zeros(len(PENALTIES))
        for i, held in enumerate(self.folds):
            rest = _total([sums for j, sums in enumerate(self.folds) if j != i])
            if not (rest.n and held.n):
                continue
            errors += _missed(rest, held, self.scale, self.jobs)
        return errors


class _System:
    """Centred normal equations, with columns divided by `scale`."""

    def __init__(self, sums: _Sums, scale: Floats) -> None:
        self.z, self.y = sums.z / sums.n, sums.y / sums.n
        zz, zy, _ = sums.centred(self.z, self.y)
        self._zz, self._zy, self._scale = zz / np.outer(scale, scale), zy / scale[:, None], scale
        self._largest = float((sums.zz.diagonal() / scale**2).max(initial=0.0))
        self._mean_eigenvalue = float(np.trace(self._zz)) / sums.n

    def penalty(self, relative: float) -> float:
        return penalty_of(relative, self._mean_eigenvalue, self._largest, len(self._zz))

    @property
    def rounding(self) -> float:
        return rounding_of(self._largest, len(self._zz))

    def solved(self, penalty: float) -> Floats:
        """Return W for unscaled columns."""
        return solved(self._zz, penalty, self._zy) / self._scale[:, None]


def _missed(rest: _Sums, held: _Sums, scale: Floats, jobs: int) -> Floats:
    """Return the sum of squared errors on the held-out rows for every penalty."""
    system = _System(rest, scale)
    zz, zy, yy = held.centred(system.z, system.y)

    def missed(relative: float) -> float:
        w = system.solved(system.penalty(relative))
        return yy - 2.0 * float((w * zy).sum()) + float((w * (zz @ w)).sum())

    return np.array(each(missed, PENALTIES, sharing(jobs, len(zz))))


def _total(parts: list[_Sums]) -> _Sums:
    first = parts[0]
    total = _Sums(first.n, first.z.copy(), first.y.copy(), first.zz.copy(), first.zy.copy(), first.yy)
    for part in parts[1:]:
        total.n += part.n
        total.z += part.z
        total.y += part.y
        total.zz += part.zz
        total.zy += part.zy
        total.yy += part.yy
    return total
