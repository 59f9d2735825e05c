"""A transform that computes in float64 and gives float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.memory_order import is_feature_major, shaped
from kafeat.step import Transform
from kafeat.types import Array, Floats, Scratch


class InFloat64(Transform):
    """Tiles in `dtype` in and out, and a transform of float64 between them: for features that float32 would drown."""

    def __init__(self, inner: Transform, dtype: np.dtype[Any]) -> None:
        self._inner, self._dtype = inner, dtype
        self.n_features_in, self.n_features_out = inner.n_features_in, inner.n_features_out

    @property
    def widest(self) -> int:
        return self._inner.widest

    def scratch(self, rows: int) -> Scratch:
        return (
            np.empty((rows, self.n_features_in)),
            np.empty(rows * self.n_features_out),
            self._inner.scratch(rows),
        )

    def apply(self, X: Floats, out: Floats, scratch: Scratch) -> None:
        wide, flat, own = scratch
        wide = wide[: len(X)]
        wide[...] = X
        result = shaped(flat, (len(X), self.n_features_out), is_feature_major(out))
        self._inner.apply(wide, result, own)
        out[...] = result

    def clipped(self, scratch: Scratch) -> Array | None:
        return self._inner.clipped(scratch[2])
