"""The Hellinger kernel, whose one feature per input is exact."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.contract.checks import refuse_negative
from kafeat.maths.homogeneous.additive import AdditiveKernel
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernel_tiles import KernelTile
from kafeat.types import Floats


class HellingerKernel(AdditiveKernel):
    """Σ_i √(x_i y_i), x, y ≥ 0."""

    def entry(self, x: Floats, y: Floats) -> Floats:
        return np.sqrt(x) * np.sqrt(y)

    def signature(self, ratio: Floats) -> Floats:
        """𝒦(ω) = 1, whose spectrum is a point mass: one feature is exact."""
        return np.ones_like(ratio)

    def tile(
        self,
        landmarks: Floats,
        p: KernelParameters,
        dtype: np.dtype[Any],
        scale: float = 1.0,
        centre: Floats | None = None,
    ) -> KernelTile:
        return _HellingerTile(landmarks, dtype)


class _HellingerTile(KernelTile):
    """Dot products of square roots."""

    def __init__(self, landmarks: Floats, dtype: np.dtype[Any]) -> None:
        super().__init__(np.sqrt(landmarks.astype(np.float64)), dtype)

    def evaluate(self, X: Floats, out: Floats, scratch: Floats) -> None:
        refuse_negative(X)
        roots = np.sqrt(X, out=scratch)
        np.matmul(roots, self._landmarks.T, out=out)
