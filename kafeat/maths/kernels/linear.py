"""The linear kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.maths.kernel import KernelParameters, TiledKernel
from kafeat.maths.kernel_tiles import KernelTile, ProductTile
from kafeat.types import Floats


class LinearKernel(TiledKernel):
    """x·y."""

    scaled = True

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        return Gram(inputs.dots, inputs.squared_norms)

    def tile(
        self,
        landmarks: Floats,
        p: KernelParameters,
        dtype: np.dtype[Any],
        scale: float = 1.0,
        centre: Floats | None = None,
    ) -> KernelTile:
        # both factors of a product of the size of `scale` are representable; the product need not be
        return ProductTile(landmarks.astype(np.float64) / scale, dtype)
