"""The sigmoid kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.maths.kernel import KernelParameters, TiledKernel
from kafeat.maths.kernel_tiles import KernelTile, ProductTile
from kafeat.types import Floats


class SigmoidKernel(TiledKernel):
    """tanh(γ x·y + c₀): not positive definite."""

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        x, y = inputs.squared_norms

        def squash(dots: Floats) -> Floats:
            result: Floats = np.tanh(p.gamma * dots + p.coef0)
            return result

        return Gram(squash(inputs.dots), (squash(x), squash(y)))

    def tile(
        self,
        landmarks: Floats,
        p: KernelParameters,
        dtype: np.dtype[Any],
        scale: float = 1.0,
        centre: Floats | None = None,
    ) -> KernelTile:
        def finish(dots: Floats) -> None:
            dots *= dots.dtype.type(p.gamma)
            dots += dots.dtype.type(p.coef0)
            np.tanh(dots, out=dots)

        return ProductTile(landmarks, dtype, finish)
