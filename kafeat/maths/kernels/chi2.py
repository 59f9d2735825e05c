"""The exponential chi2 kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.maths.kernel import KernelParameters, TiledKernel, as_coordinates, unit_gram
from kafeat.maths.kernel_loops import profile_loop
from kafeat.maths.kernel_tiles import HarmonicTile, KernelTile
from kafeat.types import Floats

# Rows at a time, so that the numbers between two passes stay in the cache.
_BLOCK = 64


class Chi2Kernel(TiledKernel):
    """exp(−γ Σ_i (x_i − y_i)²/(x_i + y_i)), x, y ≥ 0."""

    needs_coordinates = True
    distance = "chi2"
    non_negative = True

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        c = as_coordinates(inputs)
        # Σ(x − y)²/(x + y) = Σx + Σy − 2 Σ2xy/(x + y), but without cancellation for near rows
        distance = np.zeros((len(c.x), len(c.y)))
        for start in range(0, len(c.x), _BLOCK):
            block = distance[start : start + _BLOCK]
            for x, y in zip(c.x[start : start + _BLOCK].T, c.y.T, strict=True):
                total = x[:, None] + y[None, :]
                total[total == 0.0] = 1.0  # where both are 0, the difference is
                difference = x[:, None] - y[None, :]
                block += difference / total * difference  # a square might not be a number
        return unit_gram(np.exp(-p.gamma * distance))

    def tile(
        self,
        landmarks: Floats,
        p: KernelParameters,
        dtype: np.dtype[Any],
        scale: float = 1.0,
        centre: Floats | None = None,
    ) -> KernelTile:
        return _Chi2Tile(landmarks, dtype, p.gamma)


class _Chi2Tile(HarmonicTile):
    """(x − l)²/(x + l) = x + l − 4xl/(x + l)."""

    def __init__(self, landmarks: Floats, dtype: np.dtype[Any], gamma: float) -> None:
        super().__init__(landmarks, dtype)
        self._sums = self._landmarks.sum(axis=1)
        self._gamma, self._exp = gamma, profile_loop("gaussian", dtype)

    def finish(self, X: Floats, sums: Floats, out: Floats) -> None:
        np.multiply(sums, self._dtype.type(4.0), out=out)
        out -= X.sum(axis=1)[:, None]
        out -= self._sums
        out *= self._dtype.type(self._gamma)
        if self._exp:
            self._exp(out)
        else:
            np.minimum(out, 0.0, out=out)
            np.exp(out, out=out)
