"""The Laplacian kernel."""

from __future__ import annotations

from typing import Any

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
from kafeat.maths.kernel_tiles import KernelTile
from kafeat.types import Array, Floats


class Laplacian(ShiftInvariantKernel, TiledKernel):
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
        return _Tile(landmarks, dtype, p.gamma)


class _Tile(KernelTile):
    """The distances are in float64: SciPy's loop is as fast as passes of float32 over a tile."""

    def __init__(self, landmarks: Floats, dtype: np.dtype[Any], gamma: float) -> None:
        super().__init__(landmarks, dtype)
        from scipy.spatial.distance import cdist  # slow to import, and only needed here

        self._cdist = cdist
        self._doubles = self._landmarks.astype(np.float64)
        self._gamma = gamma

    def scratch(self, rows: int) -> tuple[Array, ...]:
        return np.empty((rows, self._landmarks.shape[1])), np.empty((rows, len(self._landmarks)))

    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        x, sums = scratch
        x[...] = X
        self._cdist(x, self._doubles, "cityblock", out=sums)
        np.multiply(sums, -self._gamma, out=out, casting="same_kind")
        np.exp(out, out=out)
