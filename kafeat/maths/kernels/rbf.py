"""The Gaussian kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.maths.fourier.spectra import IsotropicDistribution
from kafeat.maths.kernel import (
    DifferentiableKernel,
    KernelParameters,
    ShiftInvariantKernel,
    TiledKernel,
    unit_gram,
)
from kafeat.maths.kernel_tiles import DistanceTile, KernelTile
from kafeat.types import Floats


class RbfKernel(ShiftInvariantKernel, TiledKernel, DifferentiableKernel):
    """exp(−γ‖x − y‖²)."""

    distance = "euclidean"
    centred = True

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        return unit_gram(_profile(p.gamma * inputs.squared_distances))

    def frequencies(self, p: KernelParameters) -> IsotropicDistribution:
        """N(0, 2γ I)."""
        return IsotropicDistribution(p.gamma, float(np.sqrt(2.0)), _profile)

    def tile(
        self,
        landmarks: Floats,
        p: KernelParameters,
        dtype: np.dtype[Any],
        scale: float = 1.0,
        centre: Floats | None = None,
    ) -> KernelTile:
        def finish(scaled: Floats) -> None:
            np.exp(scaled, out=scaled)

        return DistanceTile(landmarks, dtype, -p.gamma, finish, centre, "gaussian")

    def with_slope(self, squared: Floats, p: KernelParameters) -> tuple[Floats, Floats]:
        K = np.exp(-p.gamma * squared)
        return K, -p.gamma * K


def _profile(t: Floats) -> Floats:
    """exp(−t), t = γ‖x − y‖²."""
    return np.exp(-t)
