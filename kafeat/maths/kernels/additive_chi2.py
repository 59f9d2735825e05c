"""The additive chi2 kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.maths.homogeneous.additive import SpectralKernel, sech
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernel_tiles import HarmonicTile, KernelTile
from kafeat.types import Floats


class AdditiveChi2Kernel(SpectralKernel):
    """Σ_i 2x_i y_i/(x_i + y_i), x, y ≥ 0."""

    def entry(self, x: Floats, y: Floats) -> Floats:
        return 2.0 * x / (x + y) * y

    def signature(self, ratio: Floats) -> Floats:
        """𝒦(ω) = sech(ω/2)."""
        return 2.0 / (np.exp(-0.5 * np.abs(ratio)) * (np.exp(np.abs(ratio)) + 1.0))

    def spectrum(self, frequency: Floats) -> Floats:
        """κ(λ) = sech(πλ)."""
        return sech(np.pi * frequency)

    def uniform_period(self, order: int) -> float:
        return float(5.86 * np.sqrt(order) + 3.65)

    def rectangular_period(self, order: int) -> float:
        return float(8.80 * np.sqrt(order + 4.44) - 12.6)

    def tile(
        self,
        landmarks: Floats,
        p: KernelParameters,
        dtype: np.dtype[Any],
        scale: float = 1.0,
        centre: Floats | None = None,
    ) -> KernelTile:
        return HarmonicTile(landmarks, dtype)
