"""The Jensen-Shannon kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kafeat.contract.checks import refuse_negative
from kafeat.maths.homogeneous.additive import SpectralKernel, sech
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernel_tiles import KernelTile
from kafeat.types import Floats


class JensenShannonKernel(SpectralKernel):
    """½ Σ_i x_i log₂((x_i + y_i)/x_i) + y_i log₂((x_i + y_i)/y_i), x, y ≥ 0, and a term of 0 counts as 0."""

    def entry(self, x: Floats, y: Floats) -> Floats:
        return 0.5 * (x * np.log2(1.0 + y / x) + y * np.log2(1.0 + x / y))

    def signature(self, ratio: Floats) -> Floats:
        """𝒦(ω) = ½e^{ω/2} log₂(1 + e^{−ω}) + ½e^{−ω/2} log₂(1 + e^{ω})."""
        w = np.abs(ratio)
        near = np.log1p(np.exp(-w))  # log(1 + e^{-w}); log(1 + e^{w}) is w more
        result: Floats = (0.5 * np.exp(0.5 * w) * near + 0.5 * np.exp(-0.5 * w) * (w + near)) / np.log(2.0)
        return result

    def spectrum(self, frequency: Floats) -> Floats:
        """κ(λ) = (2/log 4) sech(πλ)/(1 + 4λ²)."""
        result: Floats = (2.0 / np.log(4.0)) * sech(np.pi * frequency) / (1.0 + 4.0 * frequency**2)
        return result

    def uniform_period(self, order: int) -> float:
        return float(6.64 * np.sqrt(order) + 7.24)

    def rectangular_period(self, order: int) -> float:
        return float(9.63 * np.sqrt(order + 1.0) - 2.93)

    def tile(
        self,
        landmarks: Floats,
        p: KernelParameters,
        dtype: np.dtype[Any],
        scale: float = 1.0,
        centre: Floats | None = None,
    ) -> KernelTile:
        return _JensenShannonTile(landmarks, dtype)


class _Buffers(NamedTuple):
    total: Floats
    share: Floats


class _JensenShannonTile(KernelTile):
    """One pass over the tile for each landmark."""

    def scratch(self, rows: int) -> _Buffers:
        shape = (rows, self._landmarks.shape[1])
        return _Buffers(np.empty(shape, dtype=self._dtype), np.empty(shape, dtype=self._dtype))

    def evaluate(self, X: Floats, out: Floats, scratch: _Buffers) -> None:
        refuse_negative(X)
        total, share = scratch
        tiny = np.finfo(self._dtype).tiny
        for j, landmark in enumerate(self._landmarks):
            np.add(X, landmark, out=total)
            np.maximum(total, tiny, out=total)
            for part, target in ((X, share), (landmark, total)):
                np.divide(part, total, out=target)
                np.maximum(target, tiny, out=target)
                np.log2(target, out=target)
                target *= part
            total += share
            total.sum(axis=1, out=out[:, j])
        out *= self._dtype.type(-0.5)
