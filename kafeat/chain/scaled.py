"""The features of a chain times one factor."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.contract.step import Transform
from kafeat.contract.tile import SparseRows
from kafeat.types import Array, Floats, Scratch


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
