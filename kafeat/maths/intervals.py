"""Intervals of numbers and sets of classes, from the errors of held-out rows.

A model that has not seen row i predicts ŷᵢ of it, and another that has not seen it either predicts the size of the
error, s(xᵢ) > 0. The interval of a new row is ŷ ± q s(x), with q the ⌈(n+1)(1−α)⌉-th smallest of n scores
|yᵢ − ŷᵢ|/s(xᵢ). The score of a class is 1 − p. A set holds the classes with a score of at most q, and the likeliest.

Source: Lei, G'Sell, Rinaldo, Tibshirani & Wasserman 2018, section 5.2 (locally weighted); Barber, Candès, Ramdas &
Tibshirani 2021 (held-out errors of each row); Sadinle, Lei & Wasserman 2019 (sets of classes).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from kafeat.contract.predictor import HeldOut, Targets
from kafeat.contract.step import DOUBLE, Transform
from kafeat.errors import UsageError
from kafeat.maths.linear_output import LinearOutput, leaves_float32
from kafeat.maths.ridge import NormalEquations
from kafeat.types import Array, Floats, Mask, Scratch

MOST_SCORES = 10_000
"""Scores that a model keeps."""

# Penalties of the sizes of errors, as multiples of the mean diagonal; and their least, relative to their mean.
_MULTIPLES = 10.0 ** np.arange(-3.0, 3.0)
_FLOOR, _LEAST = 0.1, 1e-12


@dataclass(frozen=True)
class Intervals:
    """The scores of held-out rows, and for numbers the sizes of errors s(z) = max(Zw + b, floor).

    Attributes:
        scores: Scores (m, k) in ascending order, of k numbers or of classes, (m, 1).
        weights, intercept, floor: w (D, k), b (k,) and the floor (k,) of the sizes; None for classes.
    """

    scores: Floats
    weights: Floats | None = None
    intercept: Floats | None = None
    floor: Floats | None = None

    def quantiles(self, level: float) -> Floats:
        """Return the score (k,) that holds the truth of a new row with this probability."""
        m = len(self.scores)
        if not 0.0 < level < 1.0:
            raise UsageError(f"interval: expected a probability between 0 and 1, such as 0.9, got {level:g}")
        # 0.9 · 10 = 9.000000000000002 is meant to be 9
        rank = int(np.ceil((m + 1) * level - 1e-9))
        if rank > m:
            raise UsageError(
                f"interval: expected at most {np.floor(1e4 * m / (m + 1)) / 1e4:g}, as the model knows the errors of "
                f"{m:,} held-out rows, got {level:g}: fit it on more rows"
            )
        return self.scores[max(rank, 1) - 1]

    def bound(self, predictor: Transform, dtype: np.dtype[Any], levels: Sequence[float]) -> Transform:
        """Return the transform to predictions, and behind them to the ends of the interval of each level."""
        if self.weights is None or self.intercept is None or self.floor is None:
            return predictor
        wide = leaves_float32(self.weights)
        sizes = LinearOutput(self.weights, self.intercept, None, dtype, wide)
        return _IntervalOutput(predictor, sizes, self.floor, [self.quantiles(level) for level in levels])

    def sets(self, probabilities: Floats, level: float) -> Mask:
        """Return a mask (n, c) of the classes that are in the sets of rows with these probabilities (n, c)."""
        held: Mask = 1.0 - probabilities <= self.quantiles(level)
        held[np.arange(len(held)), probabilities.argmax(axis=1)] = True
        return held

    def to_plain(self) -> dict[str, Array]:
        """Return arrays for the model file."""
        return {name: np.asarray(value) for name, value in vars(self).items() if value is not None}

    @classmethod
    def from_plain(cls, plain: object, width: int, n: int, classes: bool) -> Self:
        """Read the arrays of an untrusted model file with `n` outputs; raise `ValueError` if they are invalid."""
        shapes: dict[str, tuple[int | None, ...]] = {"scores": (None, 1 if classes else n)}
        shapes |= {} if classes else {"weights": (width, n), "intercept": (n,), "floor": (n,)}
        if not isinstance(plain, dict) or set(plain) != set(shapes):
            raise ValueError(f"intervals: expected {', '.join(shapes)}")
        for name, shape in shapes.items():
            value = plain[name]
            fits = isinstance(value, np.ndarray) and value.dtype == DOUBLE and value.ndim == len(shape)
            if not fits or any(one not in (None, got) for one, got in zip(shape, value.shape, strict=True)):
                raise ValueError(f"intervals.{name}: expected float64 numbers of the shape {shape}")
            if not np.isfinite(value).all():
                raise ValueError(f"intervals.{name}: expected finite numbers")
        scores = plain["scores"]
        if (
            not 1 <= len(scores) <= MOST_SCORES
            or (scores < 0.0).any()
            or (np.diff(scores, axis=0) < 0.0).any()
        ):
            raise ValueError(
                f"intervals.scores: expected 1 to {MOST_SCORES:,} ascending numbers of at least 0"
            )
        if not classes and not (plain["floor"] > 0.0).all():
            raise ValueError("intervals.floor: expected numbers above 0")
        return cls(**plain)


class _Buffers(NamedTuple):
    predictions: Floats
    sizes: Floats
    of_predictions: Scratch
    of_sizes: Scratch


class _IntervalOutput(Transform):
    """Predictions ŷ (k), and behind them for each level and number ŷ − q s and ŷ + q s."""

    def __init__(
        self, predictor: Transform, sizes: Transform, floor: Floats, quantiles: Sequence[Floats]
    ) -> None:
        self._predictor, self._sizes, self._floor, self._quantiles = predictor, sizes, floor, quantiles
        self._k = predictor.n_features_out
        self.n_features_in = predictor.n_features_in
        self.n_features_out = self._k * (1 + 2 * len(quantiles))

    def scratch(self, rows: int) -> _Buffers:
        made = np.empty((2, rows, self._k))
        return _Buffers(made[0], made[1], self._predictor.scratch(rows), self._sizes.scratch(rows))

    def apply(self, X: Floats, out: Floats, scratch: _Buffers) -> None:
        k, (predictions, sizes, *_) = self._k, scratch
        self._predictor.apply(X, predictions, scratch.of_predictions)
        self._sizes.apply(X, sizes, scratch.of_sizes)
        np.maximum(sizes, self._floor, out=sizes)
        out[:, :k] = predictions
        for i, q in enumerate(self._quantiles):
            ends = out[:, k + 2 * k * i : k + 2 * k * (i + 1)]
            ends[:, 0::2] = predictions - q * sizes
            ends[:, 1::2] = predictions + q * sizes


HeldOutSizes = Callable[[Floats, float], Floats]
"""Return sizes of errors (n, k) of held-out rows by models that have not seen a row, with this penalty."""


def fit_intervals(
    held: HeldOut, targets: Targets, jobs: int, sizes_of: HeldOutSizes | None = None
) -> Intervals | None:
    """Return the intervals from predictions of held-out rows; None without any.

    Without `sizes_of`, the sizes of errors come from models with the same features.
    """
    known = np.asarray(np.isfinite(held.outputs).all(axis=1))
    if not known.any():
        return None
    rows = held.rows
    if targets.classes:
        right = rows.targets[known].argmax(axis=1)
        scores = 1.0 - held.outputs[known, right][:, None]
        return Intervals(thinned(scores, None if rows.counts is None else rows.counts[known]))
    rows = rows.select(known)
    errors = np.abs(rows.targets - held.outputs[known])
    equations = NormalEquations(rows.features.shape[1], targets.n, jobs, folds=targets.folds)
    equations.add_blocks(rows.features, errors, rows.parts, rows.weights)
    chosen = float(_MULTIPLES[int(np.argmax(equations.scores(_MULTIPLES)))])
    model = equations.model_of(chosen)
    floor = np.maximum(_FLOOR * np.average(errors, axis=0, weights=rows.weights), _LEAST)
    if sizes_of is None:
        sizes = equations.held_out(chosen, rows.features, errors, rows.parts, rows.weights)
    else:
        every = np.full(held.outputs.shape, np.nan)
        every[known] = errors
        sizes = sizes_of(every, chosen)[known]
    known = np.asarray(np.isfinite(sizes).all(axis=1))
    scores = (errors / np.maximum(sizes, floor))[known]
    counts = None if rows.counts is None else rows.counts[known]
    unit = targets.unit
    return Intervals(thinned(scores, counts), model.w * unit, model.intercept * unit, floor * unit)


def thinned(scores: Floats, weights: Floats | None = None, most: int = MOST_SCORES) -> Floats:
    """Return at most `most` of the scores (n, k) in ascending order, with quantiles that cover at least as much.

    The j-th of m is the ⌈j(n+1)/(m+1)⌉-th of all n, so that ⌈(m+1)(1−α)⌉ of the former is at least ⌈(n+1)(1−α)⌉ of the
    latter. Weights (n,) count as so many rows as would give a mean the same variance.
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
