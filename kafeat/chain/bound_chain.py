"""Bound steps as one transform, alone, with a predictor behind them, or times a factor.

It has the place where float64 values are rounded to the dtype of the map.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kafeat.contract.checks import beyond, round_to
from kafeat.contract.step import DOUBLE, Step, Transform, total_clipped
from kafeat.contract.tile import Rows, SparseRows, is_feature_major, shaped
from kafeat.errors import InvalidValueError
from kafeat.types import Array, Floats, Scratch


class _Buffers(NamedTuple):
    between: list[Floats]
    """The outputs of all steps but the last."""
    steps: list[Scratch]
    wide: Floats
    """The float64 output of the step that is rounded."""
    every: Floats
    """The outputs that the kept ones are taken from."""


class BoundChain(Transform):
    """A tile goes through every step; only the last one writes to the output, or to what outputs are taken from.

    The first `cast_after` transforms are of float64, the others of `dtype`. Between them values are rounded, unless the
    next transform wants float64 itself.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        transforms: Sequence[Transform],
        dtype: np.dtype[Any],
        cast_after: int = 0,
        outputs: Array | None = None,
    ) -> None:
        self._steps, self._transforms = tuple(steps), tuple(transforms)
        self._dtype = dtype
        self.n_features_in = transforms[0].n_features_in
        self._outputs, self._all = outputs, transforms[-1].n_features_out
        self.n_features_out = self._all if outputs is None else len(outputs)
        wide = 0 if dtype == DOUBLE else cast_after
        self.wide_input = wide > 0 or transforms[0].wide_input
        kept_wide = 0 < wide < len(transforms) and transforms[wide].wide_input
        self._rounded = None if not wide or kept_wide else wide - 1
        """The step whose float64 output is rounded."""
        self._handed_on = [
            DOUBLE if i < wide and i != self._rounded else dtype for i in range(len(transforms) - 1)
        ]

    @property
    def widest(self) -> int:
        return max(transform.widest for transform in self._transforms)

    def scratch(self, rows: int) -> _Buffers:
        between = [
            np.empty((rows, transform.n_features_out), dtype=dtype)
            for transform, dtype in zip(self._transforms, self._handed_on, strict=False)
        ]
        width = 0 if self._rounded is None else self._transforms[self._rounded].n_features_out
        every = np.empty(0 if self._outputs is None else rows * self._all, dtype=self._dtype)
        return _Buffers(between, [t.scratch(rows) for t in self._transforms], np.empty(rows * width), every)

    @property
    def takes_sparse(self) -> bool:
        return self._transforms[0].takes_sparse

    def apply(self, X: Floats, out: Floats, scratch: _Buffers) -> None:
        self._apply(X, out, scratch)

    def apply_sparse(self, X: SparseRows, out: Floats, scratch: _Buffers) -> None:
        self._apply(X, out, scratch)

    def _apply(self, X: Rows, out: Floats, scratch: _Buffers) -> None:
        last = (
            out
            if self._outputs is None
            else shaped(scratch.every, (len(X), self._all), is_feature_major(out))
        )
        for i, (target, own) in enumerate(zip((*scratch.between, last), scratch.steps, strict=True)):
            made = target
            if i == self._rounded:
                made = shaped(scratch.wide, target.shape, is_feature_major(target))
            self._step(i, X, made, own)
            if made is not target:
                self._round(i, made, target)
            X = target
        if self._outputs is None:
            return
        if is_feature_major(out):
            np.take(last.T, self._outputs, axis=0, out=out.T, mode="clip")
        else:
            np.take(last, self._outputs, axis=1, out=out, mode="clip")

    def _step(self, i: int, X: Rows, out: Floats, scratch: Scratch) -> None:
        try:
            if isinstance(X, SparseRows):
                self._transforms[i].apply_sparse(X, out, scratch)
            else:
                self._transforms[i].apply(X, out, scratch)
        except InvalidValueError as refused:
            raise after(refused, self._steps[:i]) from None

    def _round(self, i: int, made: Floats, out: Floats) -> None:
        place = round_to(made, out)
        if place is None:
            return
        (row, column), value = place, float(made[place])
        if i + 1 == len(self._steps):
            raise InvalidValueError(row, None, beyond(value, out.dtype))
        raise after(InvalidValueError(row, column, beyond(value, out.dtype, "a value")), self._steps[: i + 1])

    def clipped(self, scratch: _Buffers) -> Array | None:
        return total_clipped(t.clipped(own) for t, own in zip(self._transforms, scratch.steps, strict=True))


def after(refused: InvalidValueError, steps: Sequence[Step]) -> InvalidValueError:
    """The error with the steps that the entry has gone through; its column is the input's only if they keep it."""
    if not steps:
        return refused
    column = refused.column if all(step.columnwise for step in steps) else None
    names = ", ".join(step.kind for step in steps)
    return InvalidValueError(refused.row, column, f"after {names}: {refused.problem}")


class _PredictingBuffers(NamedTuple):
    features: Floats
    chain: Scratch
    predictor: Scratch


class PredictingTransform(Transform):
    """Predictions in float64, of features in the dtype of the map, which leave no tile."""

    def __init__(self, chain: Transform, predictor: Transform, dtype: np.dtype[Any]) -> None:
        self._chain, self._predictor, self._dtype = chain, predictor, dtype
        self.n_features_in, self.n_features_out = chain.n_features_in, predictor.n_features_out
        self.width = chain.n_features_out

    def reads(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        del dtype  # predictions are in float64, and features in that of the map
        return self._chain.reads(self._dtype)

    @property
    def widest(self) -> int:
        return max(self._chain.widest, self._predictor.widest)

    def scratch(self, rows: int) -> _PredictingBuffers:
        features = np.empty((rows, self._chain.n_features_out), self._dtype)
        return _PredictingBuffers(features, self._chain.scratch(rows), self._predictor.scratch(rows))

    @property
    def takes_sparse(self) -> bool:
        return self._chain.takes_sparse

    def apply(self, X: Floats, out: Floats, scratch: _PredictingBuffers) -> None:
        self._chain.apply(X, scratch.features, scratch.chain)
        self._predictor.apply(scratch.features, out, scratch.predictor)

    def apply_sparse(self, X: SparseRows, out: Floats, scratch: _PredictingBuffers) -> None:
        self._chain.apply_sparse(X, scratch.features, scratch.chain)
        self._predictor.apply(scratch.features, out, scratch.predictor)

    def clipped(self, scratch: _PredictingBuffers) -> Array | None:
        return self._chain.clipped(scratch.chain)


class _WithFeatures(NamedTuple):
    predictions: Floats
    buffers: _PredictingBuffers


class PredictingWithFeatures(Transform):
    """Predictions and behind them the features that they were made of, all in float64, for sums of both."""

    def __init__(self, predicting: PredictingTransform) -> None:
        self._predicting = predicting
        self.n_features_in = predicting.n_features_in
        self.n_features_out = predicting.n_features_out + predicting.width

    def reads(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        return self._predicting.reads(dtype)

    @property
    def widest(self) -> int:
        return self._predicting.widest  # tiles of the same height, so the same bytes

    def scratch(self, rows: int) -> _WithFeatures:
        predictions = np.empty((rows, self._predicting.n_features_out), PREDICTION_DTYPE)
        return _WithFeatures(predictions, self._predicting.scratch(rows))

    @property
    def takes_sparse(self) -> bool:
        return self._predicting.takes_sparse

    def apply(self, X: Floats, out: Floats, scratch: _WithFeatures) -> None:
        self._predicting.apply(X, scratch.predictions, scratch.buffers)
        np.concatenate([scratch.predictions, scratch.buffers.features], axis=1, out=out)

    def apply_sparse(self, X: SparseRows, out: Floats, scratch: _WithFeatures) -> None:
        self._predicting.apply_sparse(X, scratch.predictions, scratch.buffers)
        np.concatenate([scratch.predictions, scratch.buffers.features], axis=1, out=out)

    def clipped(self, scratch: _WithFeatures) -> Array | None:
        return self._predicting.clipped(scratch.buffers)


PREDICTION_DTYPE = DOUBLE
"""The dtype that predictions are computed in."""


class ScaledTransform(Transform):
    """A chain whose features are multiplied in their tile, before they are rounded to the dtype of the output."""

    def __init__(self, chain: Transform, factor: float) -> None:
        self._chain, self._factor = chain, factor
        self.n_features_in, self.n_features_out = chain.n_features_in, chain.n_features_out

    def reads(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        return self._chain.reads(dtype)

    @property
    def widest(self) -> int:
        return self._chain.widest

    def scratch(self, rows: int) -> Scratch:
        return self._chain.scratch(rows)

    @property
    def takes_sparse(self) -> bool:
        return self._chain.takes_sparse

    def apply(self, X: Floats, out: Floats, scratch: Scratch) -> None:
        self._chain.apply(X, out, scratch)
        out *= self._factor

    def apply_sparse(self, X: SparseRows, out: Floats, scratch: Scratch) -> None:
        self._chain.apply_sparse(X, out, scratch)
        out *= self._factor

    def clipped(self, scratch: Scratch) -> Array | None:
        return self._chain.clipped(scratch)
