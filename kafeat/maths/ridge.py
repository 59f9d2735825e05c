"""Ridge regression in closed form, from sums over rows.

The model is min_W ‖Y − 1t − ZW‖² + λ‖W‖², with no penalty on the intercept t. With centred columns,
W = (ZᵀZ + λ)⁻¹ZᵀY. The penalty is chosen by cross-validation over folds whose sums are kept apart.

Source: Hastie, Tibshirani & Friedman 2009, section 3.4.1 and 7.10.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kafeat.maths.linear_system import LEAST, PENALTIES, each, penalty_of, rounding_of, sharing, solved
from kafeat.maths.row_sums import RowSums, total_of
from kafeat.types import Floats


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
class LinearRidge:
    """Normal equations of all rows, ready to be solved."""

    folds: list[RowSums]
    total: RowSums
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
        relative = float(PENALTIES[int(np.argmin(self._errors(lambda _: PENALTIES)[0]))])
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
        return self._model(system, inner)

    def _model(self, system: _System, inner: float) -> LinearModel:
        slopes = system.solved(inner) / self.units[:, None]
        middle = self.pivot[0] + system.z * self.units
        intercept = self.pivot[1] + system.y - middle @ slopes
        return LinearModel(slopes, intercept, inner * self.unit * self.unit)

    def scores(self, multiples: Floats) -> Floats:
        """Return the cross-validated R² of penalties that are these multiples of the mean diagonal of centred ZᵀZ."""
        errors, spread = self._errors(lambda rest: multiples * rest.n / len(rest.z))
        return 1.0 - errors / spread if spread > 0.0 else np.zeros(len(multiples))

    @np.errstate(over="ignore")
    def model_of(self, multiple: float, without: int | None = None) -> LinearModel:
        """Return the model with this multiple of the mean diagonal as penalty, of all rows or of all but a fold's."""
        sums = self.total if without is None else self._without(without)
        system = _System(sums, self.scale)
        # a matrix of zeros has a factor with any penalty above 0
        return self._model(system, system.penalty(max(multiple, LEAST) * sums.n / len(sums.z)))

    def squares(self) -> Floats:
        """Return the mean square of each column about its mean, (D,)."""
        centred = self.total.zz.diagonal() - self.total.z**2 / self.total.n
        found: Floats = np.maximum(centred, 0.0) / self.total.n * self.units**2
        return found

    def _errors(self, relatives: Callable[[RowSums], Floats]) -> tuple[Floats, float]:
        """Return the cross-validated sum of squared errors for every penalty, and that of the means.

        `relatives` gives the penalties for the sums that a model is fitted on, relative to the mean eigenvalue.
        """
        errors, spread = np.zeros(len(relatives(self.total))), 0.0
        for i, held in enumerate(self.folds):
            rest = self._without(i)
            if rest.n and held.n:
                errors += _missed(rest, held, self.scale, self.jobs, relatives(rest))
                spread += held.centred(rest.z / rest.n, rest.y / rest.n)[2]
        return errors, spread

    def _without(self, fold: int) -> RowSums:
        return total_of(sums for j, sums in enumerate(self.folds) if j != fold)


class _System:
    """Centred normal equations, with columns divided by `scale`."""

    def __init__(self, sums: RowSums, scale: Floats) -> None:
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


def _missed(rest: RowSums, held: RowSums, scale: Floats, jobs: int, relatives: Floats) -> Floats:
    """Return the sum of squared errors on the held-out rows for every penalty."""
    system = _System(rest, scale)
    zz, zy, yy = held.centred(system.z, system.y)

    def missed(relative: float) -> float:
        w = system.solved(system.penalty(relative))
        return yy - 2.0 * float((w * zy).sum()) + float((w * (zz @ w)).sum())

    return np.array(each(missed, relatives, sharing(jobs, len(zz))))
