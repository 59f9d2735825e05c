"""Ridge regression in closed form, from sums over rows or from a kernel matrix.

The model is min_W ‖Y − 1t − ZW‖² + λ‖W‖², with no penalty on the intercept t. With centred columns, W = (ZᵀZ + λ)⁻¹ZᵀY.
The penalty is chosen by cross-validation over folds. Each fold has its own normal equations, and the error on a fold
follows from its sums, so rows are read once and not kept: memory is O(D²) for any number of rows. With a kernel matrix
K in place of ZᵀZ, the coefficients α of the training rows are (K + λ)⁻¹Y, both centred.

Source: Hastie, Tibshirani & Friedman 2009, section 3.4.1 and 7.10.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Self, TypeVar

import numpy as np

from kafeat.contract.folds import RANDOM, Folded, Folds
from kafeat.contract.kernel_inputs import around_mean
from kafeat.contract.memory import blocks, require_memory
from kafeat.contract.threads import share_work
from kafeat.errors import DataError
from kafeat.maths import lapack
from kafeat.maths.kernel_error import power_of_two
from kafeat.types import Array, Floats


@dataclass(frozen=True)
class LinearModel:
    """ŷ = Zw + intercept, with w (D, k). For kernel ridge, Z holds k(x, training rows)."""

    w: Floats
    intercept: Floats
    penalty: float
    converged = True

    def __call__(self, Z: Floats) -> Floats:
        return Z @ self.w + self.intercept

    @property
    def nonzero(self) -> int:
        """The number of inputs with a nonzero coefficient."""
        return int((self.w != 0.0).any(axis=1).sum())


T = TypeVar("T")
R = TypeVar("R")

PENALTIES = 10.0 ** np.arange(-7.0, 2.0)
"""Penalties relative to the mean eigenvalue of the Gram matrix, so that one grid serves all scales."""

# Smaller numbers are too near to underflow: they, or their squares, have lost digits.
LEAST = float(np.finfo(np.float64).tiny) * 1e30
# The most bytes of the matrices that threads factor at the same time.
_MOST_BYTES = 1 << 30
MOST_NUMBERS = 1 << 22
"""The most numbers in a block of rows, which is converted to float64 while it is added."""
# The largest leverage of a row. At leverage 1, the model would reproduce any target, and the error would mean nothing.
_MOST_LEVERAGE = 1.0 - 1e-6


def rounding_of(largest: float, size: int) -> float:
    """Return the size of rounding errors in a centred matrix (size, size) whose entries were at most `largest`."""
    return 4.0 * size * float(np.finfo(np.float64).eps) * largest


def solved(A: Floats, penalty: float, B: Floats) -> Floats:
    """Return (A + λ)⁻¹B by Cholesky. Nine calls, one per penalty, take a fifth of the time of an eigendecomposition."""
    A = A.copy()
    A.flat[:: len(A) + 1] += penalty
    return lapack.solved(A, B)


def sharing(jobs: int, size: int) -> int:
    """Return how many of `jobs` threads can factor a matrix (size, size) each without using too much memory."""
    return max(1, min(jobs, _MOST_BYTES // (8 * size * size)))


def each(work: Callable[[T], R], items: Iterable[T], jobs: int) -> list[R]:
    """Apply `work` to every item with `jobs` threads, and return the results in order."""

    def quiet(item: T) -> R:  # an overflow shows in the result
        with np.errstate(over="ignore", invalid="ignore"):
            return work(item)

    items = list(items)
    return share_work(lambda: quiet, items, min(jobs, len(items)))


@dataclass
class RowSums:
    """Sums over rows with features z and targets y: the weight n, Σz, Σy, ZᵀZ, ZᵀY and Σ‖y‖²."""

    n: float
    z: Floats
    y: Floats
    zz: Floats
    zy: Floats
    yy: float

    @classmethod
    def empty(cls, width: int, targets: int) -> Self:
        """Return sums of 0, for no rows."""
        z, y = np.zeros(width), np.zeros(targets)
        return cls(0.0, z, y, np.zeros((width, width)), np.zeros((width, targets)), 0.0)

    def add(self, z: Floats, y: Floats, weights: Floats | None = None) -> None:
        """Add rows z (n, D) with targets y (n, k), each multiplied by its weight (n,), 1 by default."""
        if weights is None:
            self.n += len(z)
            self.z += z.sum(axis=0)
            self.y += y.sum(axis=0)
        else:
            self.n += float(weights.sum())
            self.z += weights @ z
            self.y += weights @ y
            roots = np.sqrt(weights)[:, None]
            z, y = z * roots, y * roots
        self.zz += z.T @ z
        self.zy += z.T @ y
        self.yy += float((y**2).sum())

    def centred(self, z: Floats, y: Floats) -> tuple[Floats, Floats, float]:
        """Return ZᵀZ, ZᵀY and Σ‖y‖² after subtracting z (D,) and y (k,) from all rows."""
        outer = np.outer(self.z, z)
        zz = self.zz - outer - outer.T + self.n * np.outer(z, z)
        zy = self.zy - np.outer(self.z, y) - np.outer(z, self.y) + self.n * np.outer(z, y)
        return zz, zy, self.yy - 2.0 * float(self.y @ y) + self.n * float(y @ y)

    def __add__(self, other: RowSums) -> RowSums:
        n, z, y = self.n + other.n, self.z + other.z, self.y + other.y
        return RowSums(n, z, y, self.zz + other.zz, self.zy + other.zy, self.yy + other.yy)


@dataclass(frozen=True)
class _System:
    """Equations (A + λ)W = B for `rows` rows. `means` were subtracted from inputs, `level` from targets.

    `largest` is the largest entry of A before centring. The columns are divided by `scale`.
    """

    A: Floats
    B: Floats
    rows: float
    largest: float
    means: Floats
    level: Floats
    scale: Floats

    @classmethod
    def of_sums(cls, sums: RowSums, scale: Floats) -> Self:
        """Return the normal equations for sums over rows, with columns divided by `scale`."""
        z, y = sums.z / sums.n, sums.y / sums.n
        zz, zy, _ = sums.centred(z, y)
        largest = float((sums.zz.diagonal() / scale**2).max(initial=0.0))
        return cls(zz / np.outer(scale, scale), zy / scale[:, None], sums.n, largest, z, y, scale)

    @classmethod
    def of_kernel(cls, K: Floats, Y: Floats) -> Self:
        """Return the equations for a kernel matrix K (n, n) and targets Y (n, k)."""
        (A, means), level = around_mean(K), Y.mean(axis=0)
        largest = float(np.abs(K).max(initial=0.0))
        return cls(A, Y - level, len(K), largest, means, level, np.ones(1))

    @property
    def rounding(self) -> float:
        """The size of rounding errors in A."""
        return rounding_of(self.largest, len(self.A))

    def penalty(self, relative: float) -> float:
        """Return λ for a penalty relative to the mean of the n eigenvalues of ZZᵀ, but above rounding errors.

        A (D, D) has the same trace as ZZᵀ, so its mean diagonal is n/D times the mean eigenvalue of ZZᵀ. If all inputs
        are equal, A is 0 and any penalty will do.
        """
        mean = float(np.trace(self.A)) / self.rows
        return max(relative * (mean if mean > max(self.rounding, LEAST) else 1.0), self.rounding)

    def solved(self, penalty: float) -> Floats:
        """Return the coefficients W of the unscaled columns."""
        return solved(self.A, penalty, self.B) / self.scale[:, None]


# For more columns, NumPy's product of a matrix with itself overflows a 32-bit counter and crashes the process.
_MOST_COLUMNS = 46_340
# About how many matrices (D, D) are in memory: the sums of each fold, their total, and one system to solve.
_MATRICES = 12.0
FEWER_COLUMNS = "put a map before it that has fewer outputs, such as projection or fourier"
"""The remedy in errors about a linear model with too many columns."""


class NormalEquations:
    """Ridge regression on rows (n, D) with targets (n, k), from sums over the rows of each fold.

    Memory is O(D²) for any number of rows, which must all be added before the first model is requested. With
    `standardize`, columns are divided by their standard deviation. `jobs` threads share the products and penalties. The
    model does not depend on their number.
    """

    def __init__(
        self, width: int, targets: int, jobs: int = 1, standardize: bool = False, folds: Folds = RANDOM
    ) -> None:
        if width > _MOST_COLUMNS:
            raise DataError(
                f"ridge: expected at most {_MOST_COLUMNS:,} columns, got {width:,}: {FEWER_COLUMNS}"
            )
        require_memory(_MATRICES * width * width, f"ridge: {width:,} columns", FEWER_COLUMNS)
        self.folds, self.cuts = folds, folds.cuts
        self._parts = [RowSums.empty(width, targets) for _ in range(folds.count)]
        self._pivot: tuple[Floats, Floats] | None = None
        self._units: Floats = np.ones(width)
        self._jobs, self._standardize = jobs, standardize
        # The penalty that `search` found, for the original and for the divided columns. Computing one penalty from the
        # other might give 0 or infinity.
        self._searched: tuple[float, float] | None = None

    def add(self, Z: Floats, Y: Floats, parts: Array, weights: Floats | None = None) -> None:
        """Add every row to the sums of its fold in `parts` (n,), multiplied by its weight (n,) if there are weights."""
        if not len(Z):
            return
        if self._pivot is None:
            # Sum about a point near the mean, because sums about 0 lose their digits if the mean is large.
            self._pivot = Z.mean(axis=0, dtype=np.float64), Y.mean(axis=0)
            sizes = np.abs(Z - self._pivot[0]).max(axis=0)
            self._units = power_of_two(np.where(sizes > 0.0, sizes, sizes.max(initial=0.0)))
        middle, level = self._pivot

        def add(part: int) -> None:
            rows = np.flatnonzero(parts == part)
            z = Z[rows].astype(np.float64, copy=False)
            z -= middle
            z /= self._units
            self._parts[part].add(z, Y[rows] - level, None if weights is None else weights[rows])

        each(add, range(len(self._parts)), self._jobs)
        if not all(np.isfinite(sums.zz.diagonal()).all() for sums in self._parts):
            raise DataError(
                "ridge: expected columns whose squares float64 can hold, got larger ones: scale the input"
            )

    def add_blocks(self, Z: Floats, Y: Floats, parts: Array, weights: Floats | None = None) -> None:
        """Add rows that are in memory, block by block, because `add` converts them to float64."""
        for some in blocks(len(Z), Z.shape[1], MOST_NUMBERS):
            self.add(Z[some], Y[some], parts[some], None if weights is None else weights[some])

    @cached_property
    def _total(self) -> RowSums:
        return reduce(operator.add, self._parts)

    @cached_property
    @np.errstate(over="ignore")  # a column that is tiny compared with others has the divisor ∞
    def _scale(self) -> tuple[Floats, float]:
        """The divisors (D,) of the columns, and u: a penalty λ of original columns is λ/u² for the divided columns."""
        if not self._standardize:
            unit = float(self._units.max())
            return unit / self._units, unit  # the same divisor for all original columns
        total = self._total
        spread = np.sqrt(np.maximum(total.zz.diagonal() - total.z**2 / total.n, 0.0) / total.n)
        # a column that is constant except for rounding is not used
        varies = spread * self._units > 1e-12 * np.abs(self._about[0])
        return np.where(varies, spread, np.inf), 1.0

    @property
    def _about(self) -> tuple[Floats, Floats]:
        """The points (D,) and (k,) that are subtracted from columns and targets before they are summed."""
        if self._pivot is None:
            raise ValueError("no rows were added")
        return self._pivot

    def _system(self, sums: RowSums) -> _System:
        return _System.of_sums(sums, self._scale[0])

    @np.errstate(over="ignore")
    def search(self) -> float:
        """Return the penalty with the least squared error over the folds."""
        relative = float(PENALTIES[int(np.argmin(self._errors(lambda _: PENALTIES)[0]))])
        inner, unit = self._system(self._total).penalty(relative), self._scale[1]
        self._searched = inner * unit * unit, inner
        return self._searched[0]

    @np.errstate(over="ignore")
    def model(self, penalty: float) -> LinearModel:
        """Return the model with this penalty, or with a larger one if it is below rounding errors."""
        system, unit = self._system(self._total), self._scale[1]
        if self._searched is not None and self._searched[0] == penalty:
            return self._model(system, self._searched[1])
        return self._model(system, max(penalty / unit / unit, system.rounding))

    @np.errstate(over="ignore")
    def model_of(self, multiple: float, parts: Sequence[int] = ()) -> LinearModel:
        """Return the model for a penalty of `multiple` times the mean diagonal, from all folds or from `parts`."""
        system = self._system(self._of(parts) if parts else self._total)
        # a matrix of zeros needs a penalty above 0 to be factored
        return self._model(system, system.penalty(max(multiple, LEAST) * system.rows / len(system.A)))

    @np.errstate(over="ignore")
    def held_out(
        self, multiple: float, Z: Floats, Y: Floats, parts: Array, weights: Floats | None = None
    ) -> Floats:
        """Return predictions (n, k) of training rows by models that have not seen them, or NaN if there are none.

        The rows Z (n, D) with targets Y (n, k) have been added before. With random folds, the model for a row leaves
        out only this row: ŷ₋ᵢ = yᵢ − rᵢ/(1 − hᵢ), with hᵢ = zᵢᵀ(A + λ)⁻¹zᵢ + 1/n. With other folds, it leaves out the
        whole fold.
        """
        if self.folds.edges is None:
            return self._alone(multiple, Z, Y, np.ones(len(Z)) if weights is None else weights)
        return self.without_part(multiple, Z, parts)

    def without_part(self, multiple: float, Z: Floats, parts: Array) -> Floats:
        """Return predictions (n, k) of rows Z (n, D) by models of the other folds, or NaN if no other fold has rows."""
        out = np.full((len(Z), len(self._parts[0].y)), np.nan)
        for cut in self.cuts:
            rows = parts == cut.held
            if rows.any() and self._of(cut.train).n:
                out[rows] = self.model_of(multiple, cut.train)(Z[rows].astype(np.float64))
        return out

    @np.errstate(over="ignore")
    def _alone(self, multiple: float, Z: Floats, Y: Floats, weights: Floats) -> Floats:
        """Return leave-one-out predictions (n, k) for training rows."""
        from scipy.linalg import solve_triangular

        system, (middle, _) = self._system(self._total), self._about
        inner = system.penalty(max(multiple, LEAST) * system.rows / len(system.A))
        factor = lapack.cholesky(system.A + inner * np.eye(len(system.A)), lower=True)
        model = self._model(system, inner)

        def left_out(some: slice) -> Floats:
            z = Z[some].astype(np.float64)
            centred = ((z - middle) / self._units - system.means) / system.scale
            spread = (solve_triangular(factor, centred.T, lower=True, check_finite=False) ** 2).sum(axis=0)
            leverage = np.minimum(weights[some] * (1.0 / system.rows + spread), _MOST_LEVERAGE)
            return Y[some] - (Y[some] - model(z)) / (1.0 - leverage)[:, None]

        return np.concatenate(each(left_out, blocks(len(Z), 4 * Z.shape[1], MOST_NUMBERS), self._jobs))

    def _model(self, system: _System, inner: float) -> LinearModel:
        unit, (middle, level) = self._scale[1], self._about
        slopes = system.solved(inner) / self._units[:, None]
        intercept = level + system.level - (middle + system.means * self._units) @ slopes
        return LinearModel(slopes, intercept, inner * unit * unit)

    def scores(self, multiples: Floats) -> Floats:
        """Return the cross-validated R² of each penalty, given as multiples of the mean diagonal of the centred ZᵀZ."""
        errors, spread = self._errors(lambda system: multiples * system.rows / len(system.A))
        return 1.0 - errors / spread if spread > 0.0 else np.zeros(len(multiples))

    def squares(self) -> Floats:
        """Return the variance of each column, (D,)."""
        total = self._total
        centred = total.zz.diagonal() - total.z**2 / total.n
        return np.maximum(centred, 0.0) / total.n * self._units**2

    def _errors(self, relatives: Callable[[_System], Floats]) -> tuple[Floats, float]:
        """Return the cross-validated sum of squared errors of every penalty, and of predicting the mean.

        `relatives` gets the equations of the training folds, and returns penalties relative to their mean eigenvalue.
        """
        cuts = [(self._of(cut.train), self._parts[cut.held]) for cut in self.cuts]
        cuts = [(rest, held) for rest, held in cuts if rest.n and held.n]
        if not cuts:
            raise self.folds.one_part
        errors, spread = np.zeros(1), 0.0
        for rest, held in cuts:
            system = self._system(rest)
            missed, of_means = self._missed(system, held, relatives(system))
            errors, spread = errors + missed, spread + of_means
        return errors, spread

    def _missed(self, system: _System, held: RowSums, relatives: Floats) -> tuple[Floats, float]:
        """Return the sum of squared errors on held-out rows for every penalty, and for predicting the mean."""
        zz, zy, yy = held.centred(system.means, system.level)

        def missed(relative: float) -> float:
            w = system.solved(system.penalty(relative))
            return yy - 2.0 * float((w * zy).sum()) + float((w * (zz @ w)).sum())

        return np.array(each(missed, relatives, sharing(self._jobs, len(zz)))), yy

    def _of(self, parts: Sequence[int]) -> RowSums:
        return reduce(operator.add, (self._parts[part] for part in parts))


class KernelRidge:
    """Kernel ridge regression for a kernel matrix K (n, n) and targets Y (n, k)."""

    def __init__(self, K: Floats, Y: Floats, folds: Folded, jobs: int = 1) -> None:
        largest = float(np.abs(K).max(initial=0.0))
        # a power of two, so that squares of small and large entries fit
        self._unit = float(power_of_two(largest)) if largest > LEAST else 1.0
        self._K, self._Y, self._folds, self._jobs = K / self._unit, Y, folds, jobs

    def search(self) -> float:
        """Return the penalty with the least squared error over the folds."""
        errors = np.zeros(len(PENALTIES))
        for rest, held in self._folds.cuts:
            errors += self._errors(np.flatnonzero(held), np.flatnonzero(rest))
        relative = float(PENALTIES[int(np.argmin(errors))])
        return _System.of_kernel(self._K, self._Y).penalty(relative) * self._unit

    def _errors(self, held: Array, rest: Array) -> Floats:
        """Return the sum of squared errors on the `held` rows for every penalty, after learning from the `rest`."""
        system = _System.of_kernel(self._K[np.ix_(rest, rest)], self._Y[rest])
        K, Y = self._K[np.ix_(held, rest)], self._Y[held]

        def missed(relative: float) -> float:
            return float(((_kernel_model(system, system.penalty(relative))(K) - Y) ** 2).sum())

        return np.array(each(missed, PENALTIES, sharing(self._jobs, len(rest))))

    def model(self, penalty: float) -> LinearModel:
        """Return the model with this penalty, or with a larger one if it is below rounding errors."""
        best = _kernel_model(_System.of_kernel(self._K, self._Y), penalty / self._unit)
        return replace(best, w=best.w / self._unit, penalty=best.penalty * self._unit)


def _kernel_model(system: _System, penalty: float) -> LinearModel:
    penalty = max(penalty, system.rounding)
    # The vector of ones is an eigenvector of the centred matrix, so Σα = 0 and centring new rows adds a constant.
    alpha = system.solved(penalty)
    return LinearModel(alpha, system.level - system.means @ alpha, penalty)
