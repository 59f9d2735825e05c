"""The intersection kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.contract.checks import refuse_negative
from kafeat.maths.homogeneous.additive import SpectralKernel
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernel_loops import sums_loop
from kafeat.maths.kernel_tiles import KernelTile
from kafeat.types import Floats


class IntersectionKernel(SpectralKernel):
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
        return _IntersectionTile(landmarks, dtype)


class _IntersectionTile(KernelTile):
    """Without a compiled loop, one pass over the tile for each landmark."""

    def __init__(self, landmarks: Floats, dtype: np.dtype[Any]) -> None:
        super().__init__(landmarks, dtype)
        self._loop = sums_loop("intersection", self._landmarks, dtype)

    def evaluate(self, X: Floats, out: Floats, scratch: Floats) -> None:
        refuse_negative(X)
        if self._loop:
            self._loop(X, out)
            return
        for j, landmark in enumerate(self._landmarks):
            np.minimum(X, landmark, out=scratch).sum(axis=1, out=out[:, j])
