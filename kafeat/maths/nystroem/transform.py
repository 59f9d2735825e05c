"""The transform z(x) = Tᵀ k(L, x), with landmarks L and a matrix T, in float64 where float32 is not precise enough."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.contract.step import Transform
from kafeat.contract.tile import is_feature_major, shaped
from kafeat.maths.kernel_tiles import KernelTile
from kafeat.types import Floats, Scratch

_POWER_STEPS = 20

# The number of columns per matrix product: few enough to skip most zeros of a triangle, enough for speed.
_COLUMNS = 128


class LandmarkFeatures(Transform):
    """The kernel with the landmarks, then a matrix product that skips the zeros of a lower triangle.

    Both are computed in the dtype of the tile, which may be float64 where rows and features are float32.
    """

    def __init__(
        self,
        tile: KernelTile,
        projection: Floats,
        n_features_in: int,
        dtype: np.dtype[Any],
        triangle: bool,
    ) -> None:
        self.n_features_in = n_features_in
        self._m, self.n_features_out = projection.shape
        self._tile = tile
        width = _COLUMNS if triangle else self.n_features_out
        self._blocks = [
            (start, np.ascontiguousarray(projection[start:, start : start + width], dtype=tile.dtype))
            for start in range(0, self.n_features_out, width)
        ]
        self._dtype, self._casts = tile.dtype, tile.dtype != dtype

    @property
    def widest(self) -> int:
        return max(super().widest, int(self._m))

    def scratch(self, rows: int) -> Scratch:
        cast = rows if self._casts else 0
        inputs, outputs = np.empty((cast, self.n_features_in)), np.empty(cast * self.n_features_out)
        kernel = np.empty((rows, self._m), dtype=self._dtype)
        return kernel, self._tile.scratch(rows), inputs, outputs

    def apply(self, X: Floats, out: Floats, scratch: Scratch) -> None:
        (K, of_tile, inputs, outputs), target = scratch, out
        if self._casts:
            inputs[...], X = X, inputs
            target = shaped(outputs, out.shape, is_feature_major(out))
        self._tile.evaluate(X, K, of_tile)
        for start, block in self._blocks:
            np.matmul(K[:, start:], block, out=target[:, start : start + block.shape[1]])
        if self._casts:
            out[...] = target


def gain_of(projection: Floats) -> float:
    """Return about ‖T‖², the largest eigenvalue of TᵀT, which is 1/λ for the smallest eigenvalue λ that is kept."""
    v = np.ones(projection.shape[1])
    gain = 0.0
    for _ in range(_POWER_STEPS):
        v = projection.T @ (projection @ (v / np.linalg.norm(v)))
        gain = float(np.linalg.norm(v))
        if not gain:  # no direction is kept
            break
    return gain


def drowned(gain: float, m: int, dtype: np.dtype[Any]) -> bool:
    """Return True if rounding in `dtype` exceeds the smallest feature, for the gain 1/λ.

    A feature of the eigenvalue λ has the typical size √(λ/m), and kernel values with rounding errors ε give it an error
    of ε/√λ. In smooth kernels, features may be smaller than their error. They matter little to the kernel, but may help
    a predictor.
    """
    return float(np.finfo(dtype).eps / 2.0 * np.sqrt(m)) * gain > 1.0
