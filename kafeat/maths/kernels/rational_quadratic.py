"""The rational quadratic kernel, a mixture of Gaussian kernels."""

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


class RationalQuadraticKernel(ShiftInvariantKernel, TiledKernel, DifferentiableKernel):
    """(1 + γ‖x − y‖²/α)^{−α}."""

    distance = "euclidean"
    centred = True

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        return unit_gram(_profile(p.gamma * inputs.squared_distances, p.alpha))

    def frequencies(self, p: KernelParameters) -> IsotropicDistribution:
        """N(0, 2γs I), s ~ Gamma(shape α, rate α), one s per frequency."""
        from scipy.special import gammaincinv

        return IsotropicDistribution(
            p.gamma,
            float(np.sqrt(2.0)),
            lambda t: _profile(t, p.alpha),
            lambda u: gammaincinv(p.alpha, u) / p.alpha,
        )

    def tile(
        self,
        landmarks: Floats,
        p: KernelParameters,
        dtype: np.dtype[Any],
        scale: float = 1.0,
        centre: Floats | None = None,
    ) -> KernelTile:
        def finish(scaled: Floats) -> None:
            np.log1p(scaled, out=scaled)
            scaled *= scaled.dtype.type(-p.alpha)
            np.exp(scaled, out=scaled)

        return DistanceTile(
            landmarks, dtype, p.gamma / p.alpha, finish, centre, "rational_quadratic", p.alpha
        )

    def with_slope(self, squared: Floats, p: KernelParameters) -> tuple[Floats, Floats]:
        base = 1.0 + p.gamma / p.alpha * squared
        K = base**-p.alpha
        return K, -p.gamma * K / base


def _profile(t: Floats, alpha: float) -> Floats:
    """(1 + t/α)^{−α}, t = γ‖x − y‖²."""
    values: Floats = np.exp(-alpha * np.log1p(t / alpha))
    return values
