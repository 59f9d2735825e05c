"""The exponential kernel of dot products."""

from __future__ import annotations

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.maths.kernel import Kernel, KernelParameters
from kafeat.types import Floats


class ExponentialKernel(Kernel):
    """exp(γ x·y)."""

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        x, y = inputs.squared_norms

        def power(dots: Floats) -> Floats:
            result: Floats = np.exp(p.gamma * dots)
            return result

        return Gram(power(inputs.dots), (power(x), power(y)))
