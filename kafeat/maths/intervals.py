"""Intervals of numbers and sets of classes, from the errors of held-out rows.

Two models are fitted without row i: one predicts ŷᵢ, and the other predicts the size s(xᵢ) > 0 of its error. The
interval of a new row is ŷ ± q s(x), with q the ⌈(n+1)(1−α)⌉-th smallest of n scores |yᵢ − ŷᵢ|/s(xᵢ). The score of a
class is 1 − p. A prediction set contains the classes with a score of at most q, and always the likeliest.

Source: Lei, G'Sell, Rinaldo, Tibshirani & Wasserman 2018, section 5.2 (locally weighted); Barber, Candès, Ramdas &
Tibshirani 2021 (held-out errors of each row); Sadinle, Lei & Wasserman 2019 (sets of classes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc
from typing import Any, Self

import numpy as np

from kafeat.contract.checks import arrays_of, check_arrays, count_rows
from kafeat.contract.predictor import HeldOut, Targets
from kafeat.contract.step import Transform
from kafeat.errors import UsageError
from kafeat.maths.calibration import BINS, Reliability, binned
from kafeat.maths.linear_output import LinearOutput, leaves_float32
from kafeat.maths.ridge import NormalEquations
from kafeat.types import Array, ArrayOf, Floats, Mask, Scratch

MOST_SCORES = 10_000
"""The most scores that a model keeps."""

ENOUGH_SCORES = 60
"""With at least this many scores, coverage is accurate to a percentage point (benchmarks/results/intervals.md)."""

# For the model of error sizes: the penalties to try, as multiples of the mean diagonal, and the least size that it may
# predict, as a share of the mean error and as an absolute number.
_MULTIPLES = 10.0 ** np.arange(-3.0, 3.0)
_FLOOR, _LEAST = 0.1, 1e-12


@dataclass(frozen=True, eq=False)
class Intervals:
    """The scores of held-out rows and, for a label of numbers, a model of the size of errors: max(Zw + b, floor).

    Attributes:
        scores: In ascending order, (m, k) for k numbers and (m, 1) for classes.
        error: The mean of `errors_of` over the rows, and the square of its standard error, (2,).
        calibration: The sums per bin that `binned` returns, (15, 3); in files of older releases only the calibration
            error, (). None for numbers.
        unit: The standard deviation (k,) of each number in training; None for classes.
        weights, intercept, floor: w (D, k), b (k,) and the floor (k,) of the sizes; None for classes.
    """

    scores: Floats
    error: Floats
    calibration: Floats | None = None
    unit: Floats | None = None
    weights: Floats | None = None
    intercept: Floats | None = None
    floor: Floats | None = None

    def quantiles(self, level: float) -> Floats:
        """Return the quantile of the scores (k,) below which a new row's score lies with probability `level`."""
        m = len(self.scores)
        if not 0.0 < level < 1.0:
            raise UsageError(f"interval: expected a probability between 0 and 1, such as 0.9, got {level:g}")
        # rounding errors must not raise the rank: 100 · 0.55 = 55.00000000000001 counts as 55
        rank = int(np.ceil((m + 1) * level - 1e-9))
        if rank > m:
            raise UsageError(
                f"interval: expected at most {np.floor(1e4 * m / (m + 1)) / 1e4:g}, as the model knows the errors of "
                f"{m:,} held-out rows, got {level:g}: fit it on more rows"
            )
        return self.scores[max(rank, 1) - 1]

    def cautions(self, by_time: bool) -> list[str]:
        """Return warnings that coverage may be too low. `by_time` is true if the latest rows were held out."""
        found, rows = [], len(self.scores)
        if rows < ENOUGH_SCORES:
            found.append(
                f"interval: expected the errors of at least {ENOUGH_SCORES} held-out rows, got those of {rows}: "
                "intervals of 90 % then cover fewer new rows, for example 84 % with 9 errors: fit on more rows"
            )
        if by_time:
            found.append(
                "interval: rows were held out by time, so coverage is as stated only for rows that are as near in "
                "time as those were. If the label drifts, 90 % intervals may cover only half of the rows, for example: "
                "measure the coverage on the latest rows (evaluate --all-rows)"
            )
        return found

    def bound(self, predictor: Transform, dtype: np.dtype[Any], levels: Sequence[float]) -> Transform:
        """Return a transform that gives predictions, followed by the ends of the interval of each level."""
        if self.weights is None or self.intercept is None or self.floor is None:
            return predictor
        wide = leaves_float32(self.weights)
        sizes = LinearOutput(self.weights, self.intercept, None, dtype, wide)
        return _IntervalOutput(predictor, sizes, self.floor, [self.quantiles(level) for level in levels])

    def sets(self, probabilities: Floats, level: float) -> Mask:
        """Return a mask (n, c) of the classes in the prediction sets of rows with these probabilities (n, c)."""
        held: Mask = 1.0 - probabilities <= self.quantiles(level)
        held[np.arange(len(held)), probabilities.argmax(axis=1)] = True
        return held

    def errors_of(self, outputs: Floats, targets: Floats) -> Floats:
        """Return an error (n,) for each row: 1 for a wrong class, or the mean of ((y − ŷ)/unit)² over k numbers.

        `targets` (n, k) are numbers, or one-hot classes. A row of zeros has a class that the model does not know.
        """
        return _errors(outputs, targets, self.unit)

    def scores_of(self, errors: Floats, level: float, ends: Floats) -> Floats:
        """Return the scores |error|/s (n, k) for errors (n, k) of rows whose intervals have these ends (n, k, 2)."""
        half: Floats = np.diff(ends, axis=2)[..., 0] / 2.0
        sizes = np.divide(half, self.quantiles(level), out=np.zeros(half.shape), where=half > 0.0)
        beyond = np.where(errors == 0.0, 0.0, np.inf)  # for a row whose interval has no width
        return np.divide(np.abs(errors), sizes, out=beyond, where=sizes > 0.0)

    @property
    def calibration_error(self) -> float | None:
        """The calibration error on the held-out rows, or None if the model predicts numbers."""
        if self.calibration_rows is not None:
            return Reliability.of(self.calibration_rows).error
        return None if self.calibration is None else float(self.calibration)

    @property
    def calibration_rows(self) -> Floats | None:
        """The `binned` sums of the held-out rows, or None for numbers and in files of older releases."""
        return None if self.calibration is None or not self.calibration.ndim else self.calibration

    def to_plain(self) -> dict[str, Array]:
        """Return arrays for the model file."""
        return {name: np.asarray(value) for name, value in vars(self).items() if value is not None}

    @classmethod
    def from_plain(cls, plain: object, width: int, n: int, classes: bool) -> Self:
        """Build intervals for `n` outputs from arrays of an untrusted file, or raise ValueError if they are invalid."""
        arrays = arrays_of(plain, "intervals")
        shapes = {
            "scores": ArrayOf((count_rows(arrays, "scores"), 1 if classes else n), "float64"),
            "error": ArrayOf((2,), "float64", sign="of at least 0"),
        }
        if classes:
            bins = (BINS, 3) if np.ndim(arrays.get("calibration", 0.0)) else ()
            shapes["calibration"] = ArrayOf(bins, "float64", sign="of at least 0")
        else:
            shapes |= dict.fromkeys(("unit", "floor"), ArrayOf((n,), "float64", sign="above 0"))
            shapes |= {"weights": ArrayOf((width, n), "float64"), "intercept": ArrayOf((n,), "float64")}
        check_arrays(arrays, shapes, "intervals")
        made = cls(**arrays)
        made._check_values()
        return made

    def _check_values(self) -> None:
        """Raise ValueError for values that fitting never produces."""
        scores = self.scores
        if (
            not 1 <= len(scores) <= MOST_SCORES
            or (scores < 0.0).any()
            or (np.diff(scores, axis=0) < 0.0).any()
        ):
            raise ValueError(
                f"intervals.scores: expected 1 to {MOST_SCORES:,} ascending numbers of at least 0"
            )
        if self.calibration is not None and not (self.calibration <= 2.0**53).all():
            raise ValueError("intervals.calibration: expected sums over rows, of at most 2^53")


class _IntervalOutput(Transform):
    """Predictions ŷ (k), followed by ŷ − q s and ŷ + q s for each level and number."""

    def __init__(
        self, predictor: Transform, sizes: Transform, floor: Floats, quantiles: Sequence[Floats]
    ) -> None:
        self._predictor, self._sizes, self._floor, self._quantiles = predictor, sizes, floor, quantiles
        self._k = predictor.n_features_out
        self.n_features_in = predictor.n_features_in
        self.n_features_out = self._k * (1 + 2 * len(quantiles))

    def scratch(self, rows: int) -> Scratch:
        made = np.empty((2, rows, self._k))
        return made, self._predictor.scratch(rows), self._sizes.scratch(rows)

    def apply(self, X: Floats, out: Floats, scratch: Scratch) -> None:
        k, ((predictions, sizes), of_predictions, of_sizes) = self._k, scratch
        self._predictor.apply(X, predictions, of_predictions)
        self._sizes.apply(X, sizes, of_sizes)
        np.maximum(sizes, self._floor, out=sizes)
        out[:, :k] = predictions
        for i, q in enumerate(self._quantiles):
            ends = out[:, k + 2 * k * i : k + 2 * k * (i + 1)]
            ends[:, 0::2] = predictions - q * sizes
            ends[:, 1::2] = predictions + q * sizes


def fit_intervals(held: HeldOut, targets: Targets, jobs: int) -> Intervals | None:
    """Return the intervals from predictions of held-out rows, or None if no row has a prediction."""
    known = np.asarray(np.isfinite(held.outputs).all(axis=1))
    if not known.any():
        return None
    rows = held.rows
    if targets.classes:
        rows, outputs = rows.select(known), held.outputs[known]
        right = rows.classes
        scores = thinned(1.0 - outputs[np.arange(len(right)), right][:, None], rows.counts)
        error = _mean_and_noise(_errors(outputs, rows.targets), rows.counts)
        return Intervals(scores, error, binned(outputs, right, rows.counts))
    rows = rows.select(known)
    error = _mean_and_noise(_errors(held.outputs[known], rows.targets, np.ones(targets.n)), rows.counts)
    errors = np.abs(rows.targets - held.outputs[known])
    equations = NormalEquations(rows.features.shape[1], targets.n, jobs, folds=targets.folds)
    equations.add_blocks(rows.features, errors, rows.parts, rows.weights)
    chosen = float(_MULTIPLES[int(np.argmax(equations.scores(_MULTIPLES)))])
    model = equations.model_of(chosen)
    floor = np.maximum(_FLOOR * np.average(errors, axis=0, weights=rows.weights), _LEAST)
    sizes = equations.held_out(chosen, rows.features, errors, rows.parts, rows.weights)
    known = np.asarray(np.isfinite(sizes).all(axis=1))
    scores = (errors / np.maximum(sizes, floor))[known]
    kept = thinned(scores, None if rows.counts is None else rows.counts[known])
    unit = targets.unit
    return Intervals(kept, error, None, unit, model.w * unit, model.intercept * unit, floor * unit)


def _errors(outputs: Floats, targets: Floats, unit: Floats | None = None) -> Floats:
    if unit is not None:
        return (((targets - outputs) / unit) ** 2).mean(axis=1)
    return 1.0 - targets[np.arange(len(targets)), outputs.argmax(axis=1)]


def _mean_and_noise(errors: Floats, weights: Floats | None = None) -> Floats:
    """Return the mean of errors (n,), and the square of its standard error."""
    shares = np.full(len(errors), 1.0 / len(errors)) if weights is None else weights / weights.sum()
    mean = shares @ errors
    return np.array([mean, shares**2 @ (errors - mean) ** 2])


def compared_errors(here: Floats, of_fit: Floats) -> float:
    """Return the p-value of a z-test whether wrong predictions `here` (n,) are more frequent than in training.

    `of_fit` (2,) is the mean in training, and the square of its standard error.
    """
    mean, noise = _mean_and_noise(here)
    return _above(mean - of_fit[0], np.sqrt(noise + of_fit[1]))


def compared_scores(here: Floats, of_fit: Floats) -> float:
    """Return the p-value of a rank test (Mann-Whitney) whether scores (n, k) are larger than in training (m, k).

    A test of means would depend on a few large errors. For k labels, the result is k times the smallest of k p-values.
    """
    (n, k), m = here.shape, len(of_fit)
    spread = np.sqrt((n + m + 1) / (12.0 * n * m))
    p_values = []
    for one, every in zip(here.T, of_fit.T, strict=True):
        below, up_to = (np.searchsorted(every, one, side=side).mean() / m for side in ("left", "right"))
        p_values.append(_above((below + up_to - 1.0) / 2.0, spread))
    return min(1.0, k * min(p_values))


def _above(apart: float, spread: float) -> float:
    """Return the probability that a normal variable with mean 0 and standard deviation `spread` is above `apart`."""
    if not spread > 0.0:
        return float(apart <= 0.0)
    return float(0.5 * erfc(apart / spread / np.sqrt(2.0)))


def coverage_p_value(covered: int, n: int, level: float, scores: int) -> float:
    """Return the probability that at most `covered` of n new rows are covered, if they are like the training rows.

    The share that a quantile of the scores covers has a beta distribution, so the number of covered rows has a
    beta-binomial one. Source: Vovk 2012, proposition 2.
    """
    from scipy.stats import betabinom

    rank = int(np.ceil((scores + 1) * level - 1e-9))
    return float(betabinom.cdf(covered, n, rank, scores + 1 - rank))


def thinned(scores: Floats, weights: Floats | None = None, most: int = MOST_SCORES) -> Floats:
    """Return at most `most` of the scores (n, k) in ascending order, with quantiles that cover at least as much.

    The j-th of m is the ⌈j(n+1)/(m+1)⌉-th of all n, so that the ⌈(m+1)(1−α)⌉-th of m is at least the ⌈(n+1)(1−α)⌉-th of
    n. Weights (n,) are scaled to the effective number of rows, (Σw)²/Σw².
    """
    weights = np.ones(len(scores)) if weights is None else weights
    weights = weights * (weights.sum() / (weights**2).sum())
    n = weights.sum()
    m = min(most, max(1, int(n + 1e-9)))
    wanted = np.arange(1, m + 1) * ((n + 1.0) / (m + 1.0)) - 1e-9 * n
    columns = []
    for column in scores.T:
        order = np.argsort(column, kind="stable")
        places = np.searchsorted(np.cumsum(weights[order]), wanted)
        columns.append(column[order][np.minimum(places, len(order) - 1)])
    return np.ascontiguousarray(np.column_stack(columns))
