"""The Cauchy kernel."""

from __future__ import annotations

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.maths.fourier.spectra import ProductDistribution, inverse_laplace
from kafeat.maths.kernel import KernelParameters, ShiftInvariantKernel, as_coordinates, unit_gram


class CauchyKernel(ShiftInvariantKernel):
    """Π_i 1/(1 + γ(x_i − y_i)²)."""

    needs_coordinates = True
    distance = "euclidean"

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        c = as_coordinates(inputs)
        logs = np.zeros((len(c.x), len(c.y)))
        for x, y in zip(c.x.T, c.y.T, strict=True):
            logs += np.log1p(p.gamma * (x[:, None] - y[None, :]) ** 2)
        return unit_gram(np.exp(-logs))

    def frequencies(self, p: KernelParameters) -> ProductDistribution:
        """Laplace(0, √γ) in each coordinate."""
        return ProductDistribution(float(np.sqrt(p.gamma)), inverse_laplace, lambda t: -np.log1p(t * t))
