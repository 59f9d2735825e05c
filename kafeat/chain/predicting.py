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


PREDICTION_DTYPE = DOUBLE
"""The dtype that predictions are computed in."""
