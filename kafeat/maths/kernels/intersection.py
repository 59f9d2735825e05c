"""The intersection kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.contract.checks import refuse_negative
from kafeat.maths.homogeneous.additive import SpectralKernel
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernel_tiles import KernelTile
from kafeat.types import Array, Floats


class Intersection(SpectralKernel):
    """Σ_i min(x_i, y_i), x, y ≥ 0."""

    def entry(self, x: Floats, y: Floats) -> Floats:
        return np.minimum(x, y)

    def signature(self, ratio: Floats) -> Floats:
        """𝒦(ω) = e^{−|ω|/2}."""
        return np.exp(-0.5 * np.abs(ratio))

    def spectrum(self, frequency: Floats) -> Floats:
        """κ(λ) = (2/π)/(1 + 4λ²)."""
        result: Floats = (2.0 / np.pi) / (1.0 + 4.0 * frequency**2)
        return result

    def uniform_period(self, order: int) -> float:
        return float(2.38 * np.log(order + 0.8) + 5.6)

    def rectangular_period(self, order: int) -> float:
        return float(2.00 * np.log(order + 0.99) + 3.52)

    def tile(
        self,
        landmarks: Floats,
        p: KernelParameters,
        dtype: np.dtype[Any],
        scale: float = 1.0,
        centre: Floats | None = None,
    ) -> KernelTile:
        return _Tile(landmarks, dtype)


class _Tile(KernelTile):
    """One pass over the tile for each landmark."""

    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        refuse_negative(X)
        (least,) = scratch
        for j, landmark in enumerate(self._landmarks):
            np.minimum(X, landmark, out=least)
            least.sum(axis=1, out=out[:, j])
