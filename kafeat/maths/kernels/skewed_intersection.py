"""The skewed intersection kernel."""

from __future__ import annotations

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs, distances
from kafeat.maths.fourier.spectra import ProductDistribution, inverse_cauchy
from kafeat.maths.kernel import Kernel, KernelParameters, as_coordinates, unit_gram


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
