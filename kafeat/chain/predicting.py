"""A chain and the predictor behind it as one transform: rows in, predictions out, tile by tile."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kafeat.contract.step import DOUBLE, Transform
from kafeat.contract.tile import SparseRows
from kafeat.types import Array, Floats, Scratch


class _Buffers(NamedTuple):
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

    def scratch(self, rows: int) -> _Buffers:
        features = np.empty((rows, self._chain.n_features_out), self._dtype)
        return _Buffers(features, self._chain.scratch(rows), self._predictor.scratch(rows))

    @property
    def takes_sparse(self) -> bool:
        return self._chain.takes_sparse

    def apply(self, X: Floats, out: Floats, scratch: _Buffers) -> None:
        self._chain.apply(X, scratch.features, scratch.chain)
        self._predictor.apply(scratch.features, out, scratch.predictor)

    def apply_sparse(self, X: SparseRows, out: Floats, scratch: _Buffers) -> None:
        self._chain.apply_sparse(X, scratch.features, scratch.chain)
        self._predictor.apply(scratch.features, out, scratch.predictor)

    def clipped(self, scratch: _Buffers) -> Array | None:
        return self._chain.clipped(scratch.chain)


class _WithFeatures(NamedTuple):
    predictions: Floats
    buffers: _Buffers


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
