"""The skewed kernels, which are shift-invariant on log(x + c)."""

from __future__ import annotations

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs, distances
from kafeat.maths.fourier.spectra import ProductDistribution, inverse_cauchy, inverse_sech
from kafeat.maths.kernel import Kernel, KernelParameters, as_coordinates, unit_gram
from kafeat.types import Floats


class SkewedChi2Kernel(Kernel):
    """Π_i 2√(x_i + c)√(y_i + c)/(x_i + y_i + 2c), which is Π sech(δ_i/2) of δ = log(x + c) − log(y + c)."""

    needs_coordinates = True

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        c = as_coordinates(inputs)
        logs = np.zeros((len(c.x), len(c.y)))
        for x, y in zip(c.x.T + p.skewedness, c.y.T + p.skewedness, strict=True):
            logs += np.log(2.0 * np.sqrt(x[:, None] * y[None, :]) / (x[:, None] + y[None, :]))
        return unit_gram(np.exp(logs))

    def log_frequencies(self) -> ProductDistribution:
        """On log(x + c): density sech(πω) in each coordinate."""
        return ProductDistribution(1.0, inverse_sech, _log_sech_of_half)


def _log_sech_of_half(t: Floats) -> Floats:
    half = 0.5 * np.abs(t)
    return np.log(2.0) - half - np.log1p(np.exp(-2.0 * half))


class SkewedIntersectionKernel(Kernel):
    """Π_i min(√((x_i + c)/(y_i + c)), √((y_i + c)/(x_i + c))), which is exp(−½‖log(x + c) − log(y + c)‖₁)."""

    needs_coordinates = True

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        c = as_coordinates(inputs)
        return unit_gram(
            np.exp(-0.5 * distances(np.log(c.x + p.skewedness), np.log(c.y + p.skewedness), "cityblock"))
        )

    def log_frequencies(self) -> ProductDistribution:
        """On log(x + c): Cauchy(0, ½) in each coordinate."""
        return ProductDistribution(0.5, inverse_cauchy, lambda t: -np.abs(t))
