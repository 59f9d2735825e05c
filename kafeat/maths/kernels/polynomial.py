"""The polynomial kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.maths.kernel import KernelParameters, TiledKernel
from kafeat.maths.kernel_tiles import KernelTile, ProductTile
from kafeat.types import Floats


class PolynomialKernel(TiledKernel):
    """(γ x·y + c₀)^degree."""

    scaled = True

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        x, y = inputs.squared_norms

        def power(dots: Floats) -> Floats:
            return (p.gamma * dots + p.coef0) ** p.degree

        return Gram(power(inputs.dots), (power(x), power(y)))

    def tile(
        self,
        landmarks: Floats,
        p: KernelParameters,
        dtype: np.dtype[Any],
        scale: float = 1.0,
        centre: Floats | None = None,
    ) -> KernelTile:
        root = scale ** (1.0 / p.degree)

        def finish(dots: Floats) -> None:
            dots += dots.dtype.type(p.coef0 / root)
            np.power(dots, p.degree, out=dots)

        return ProductTile(landmarks.astype(np.float64) * (p.gamma / root), dtype, finish)
