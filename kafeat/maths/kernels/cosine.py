"""The cosine of the angle between rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.maths.kernel import KernelParameters, TiledKernel
from kafeat.maths.kernel_tiles import KernelTile
from kafeat.types import Floats


class CosineKernel(TiledKernel):
    """x·y/(‖x‖‖y‖), and 0 where one of them is 0."""

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        x, y = (np.sqrt(norms) for norms in inputs.squared_norms)
        scale = np.where(x > 0, x, np.inf)[:, None] * np.where(y > 0, y, np.inf)[None, :]
        return Gram(inputs.dots / scale, ((x > 0).astype(float), (y > 0).astype(float)))

    def tile(
        self,
        landmarks: Floats,
        p: KernelParameters,
        dtype: np.dtype[Any],
        scale: float = 1.0,
        centre: Floats | None = None,
    ) -> KernelTile:
        return _CosineTile(landmarks, dtype)


class _CosineTile(KernelTile):
    """Landmarks of length 1, and rows divided by their lengths."""

    def __init__(self, landmarks: Floats, dtype: np.dtype[Any]) -> None:
        norms = np.linalg.norm(landmarks.astype(np.float64), axis=1, keepdims=True)
        super().__init__(landmarks / np.where(norms > 0.0, norms, 1.0), dtype)

    def evaluate(self, X: Floats, out: Floats, scratch: Floats) -> None:
        # By powers of two near the largest entries, which changes no digit: squares stay within the dtype.
        exponents = np.frexp(np.abs(X).max(axis=1, initial=0.0))[1]
        most = np.finfo(X.dtype).maxexp - 2
        units = np.ldexp(X.dtype.type(1.0), -exponents.clip(-most, most))
        scaled = np.multiply(X, units[:, None], out=scratch)
        norms = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        np.matmul(scaled, self._landmarks.T, out=out)
        out /= np.where(norms > 0.0, norms, X.dtype.type(1.0))[:, None]
