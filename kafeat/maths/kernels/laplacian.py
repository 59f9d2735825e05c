"""The Laplacian kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs, distances
from kafeat.maths.fourier.spectra import ProductDistribution, inverse_cauchy
from kafeat.maths.kernel import (
    KernelParameters,
    ShiftInvariantKernel,
    TiledKernel,
    as_coordinates,
    unit_gram,
)
from kafeat.maths.kernel_loops import profile_loop, sums_loop
from kafeat.maths.kernel_tiles import KernelTile
from kafeat.types import Floats


class LaplacianKernel(ShiftInvariantKernel, TiledKernel):
    """exp(−γ‖x − y‖₁)."""

    needs_coordinates = True
    distance = "cityblock"

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        c = as_coordinates(inputs)
        return unit_gram(np.exp(-p.gamma * distances(c.x, c.y, "cityblock")))

    def frequencies(self, p: KernelParameters) -> ProductDistribution:
        """Cauchy(0, γ) in each coordinate."""
        return ProductDistribution(p.gamma, inverse_cauchy, lambda t: -np.abs(t))

    def tile(
        self,
        landmarks: Floats,
        p: KernelParameters,
        dtype: np.dtype[Any],
        scale: float = 1.0,
        centre: Floats | None = None,
    ) -> KernelTile:
        return _LaplacianTile(landmarks, dtype, p.gamma)


class _Buffers(NamedTuple):
    rows: Floats
    sums: np.ndarray[tuple[int, int], np.dtype[np.float64]]


class _LaplacianTile(KernelTile):
    """Without a compiled loop the distances are in float64: SciPy's is as fast as passes of float32 over a tile."""

    def __init__(self, landmarks: Floats, dtype: np.dtype[Any], gamma: float) -> None:
        super().__init__(landmarks, dtype)
        self._gamma, self._loop = gamma, sums_loop("cityblock", self._landmarks, dtype)
        self._exp = profile_loop("gaussian", dtype)
        if self._loop:
            return
        from scipy.spatial.distance import cdist  # slow to import, and only needed here

        self._cdist = cdist
        self._doubles = self._landmarks.astype(np.float64)

    def scratch(self, rows: int) -> _Buffers | None:
        if self._loop:
            return None
        return _Buffers(np.empty((rows, self._landmarks.shape[1])), np.empty((rows, len(self._landmarks))))

    def evaluate(self, X: Floats, out: Floats, scratch: _Buffers | None) -> None:
        if self._loop:
            self._loop(X, out)
            out *= out.dtype.type(-self._gamma)
        elif scratch:
            scratch.rows[...] = X
            self._cdist(scratch.rows, self._doubles, "cityblock", out=scratch.sums)
            np.multiply(scratch.sums, -self._gamma, out=out, casting="same_kind")
        if self._exp:
            self._exp(out)
        else:
            np.exp(out, out=out)
