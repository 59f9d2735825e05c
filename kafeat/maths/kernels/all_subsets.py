"""The all-subsets kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.maths.kernel import KernelParameters, TiledKernel, as_coordinates
from kafeat.maths.kernel_tiles import KernelTile
from kafeat.maths.subsets import all_sets, outer_terms
from kafeat.types import Floats


class AllSubsetsKernel(TiledKernel):
    """Π_i (1 + γ x_i y_i), the sum of the ANOVA kernels of every degree."""

    needs_coordinates = True
    scaled = True

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        c = as_coordinates(inputs)

        def product(x: Floats, y: Floats) -> Floats:
            shape = (len(x), len(y))
            return all_sets(outer_terms(p.gamma * x, y, np.empty(shape)), np.empty(shape))

        def norms(x: Floats) -> Floats:
            result: Floats = np.prod(1.0 + p.gamma * x**2, axis=1)
            return result

        return Gram(product(c.x, c.y), (norms(c.x), norms(c.y)))

    def tile(
        self,
        landmarks: Floats,
        p: KernelParameters,
        dtype: np.dtype[Any],
        scale: float = 1.0,
        centre: Floats | None = None,
    ) -> KernelTile:
        # every factor takes an equal part of the scale, so that no product of some leaves the range of the dtype
        share = scale ** (-1.0 / landmarks.shape[1])
        return _SubsetsTile(landmarks.astype(np.float64) * (p.gamma * share), dtype, share)


class _SubsetsTile(KernelTile):
    def __init__(self, landmarks: Floats, dtype: np.dtype[Any], share: float) -> None:
        super().__init__(landmarks, dtype)
        self._share = share

    def scratch(self, rows: int) -> Floats:
        return np.empty((rows, len(self._landmarks)), dtype=self._dtype)

    def evaluate(self, X: Floats, out: Floats, scratch: Floats) -> None:
        all_sets(outer_terms(X, self._landmarks, scratch), out, self._share)
