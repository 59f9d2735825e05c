"""A scaler as a compiled loop over whole rows of float64."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from kafeat.contract.step import DOUBLE, Scaler, ScalerTransform
from kafeat.types import Floats, State


class ScalerLoop(ScalerTransform):
    """Rows in float64 through `run`; what it cannot hold goes through NumPy, which raises."""

    def __init__(self, scaler: Scaler, state: State, n_features: int) -> None:
        super().__init__(scaler, state, n_features, DOUBLE)

    @abstractmethod
    def run(self, X: Floats, out: Floats) -> bool:
        """Write the image of X into `out`, both (n, d) in C order; return False if NumPy has to compute."""

    def scratch(self, rows: int) -> Floats:
        return np.empty((rows, self.n_features_out))

    def apply(self, X: Floats, out: Floats, scratch: Floats) -> None:
        target = out if out.flags.c_contiguous and out.dtype == DOUBLE else scratch[: len(X)]
        if not self.run(np.ascontiguousarray(X, dtype=DOUBLE), target):
            super().apply(X, out, scratch)
        elif target is not out:
            out[...] = target
