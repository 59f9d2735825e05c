"""Cosine features of angles: one compiled loop where it could be built, else passes of NumPy."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from kafeat.compiled.library import ARRAY, FLAG, SIZE, address, loop
from kafeat.contract.tile import is_feature_major, runs
from kafeat.maths.fourier.sincos import CosineBuffers, CosinePasses
from kafeat.types import Floats

_TILE = (ARRAY, SIZE, SIZE, SIZE)


def cos_sin(angles: Floats) -> Floats:
    """Return [cos x, sin x] (n, 2m) of angles x (n, m), which may change."""
    n, m = angles.shape
    out = np.empty((n, 2 * m), dtype=angles.dtype)
    features = _plain(m, angles.dtype)
    features.write(angles, out, features.scratch())
    return out


@lru_cache(maxsize=8)
def _plain(m: int, dtype: np.dtype[Any]) -> CosineFeatures:
    return CosineFeatures(dtype, np.ones(m), None)


class CosineFeatures:
    """a_j [cos x_j, sin x_j] of angles x (rows, m) in `dtype`, or with phases b, a_j cos(x_j + b_j)."""

    def __init__(self, dtype: np.dtype[Any], amplitudes: Floats, phases: Floats | None) -> None:
        self._amplitudes = np.ascontiguousarray(amplitudes, dtype=dtype)
        self._phases = None if phases is None else np.ascontiguousarray(phases, dtype=dtype)
        self._m = len(amplitudes)
        if phases is None:
            self._loop = loop("cos_sin", dtype, *_TILE, ARRAY, FLAG, ARRAY, ARRAY, SIZE, result=FLAG)
        else:
            self._loop = loop("cosine", dtype, *_TILE, ARRAY, ARRAY, FLAG, ARRAY, SIZE, result=FLAG)
        self._passes = CosinePasses(dtype)

    def scratch(self) -> CosineBuffers | None:
        """Return the buffers of one worker."""
        return self._passes.scratch() if self._loop is None else None

    def write(self, angles: Floats, out: Floats, scratch: CosineBuffers | None) -> None:
        """Write the features into `out`, which has the memory order of the angles. The angles may change."""
        if not self._by_loop(angles, out):
            self._by_passes(angles, out, scratch)

    def _by_loop(self, angles: Floats, out: Floats) -> bool:
        """Return False if NumPy has to compute: there is no loop, or an angle that is no number, to be refused."""
        if self._loop is None:
            return False
        feature_major = is_feature_major(out)
        tile, step = (address(angles), *runs(angles, feature_major)), runs(out, feature_major)[2]
        if self._phases is None:
            sines = address(out[:, self._m :])
            return not self._loop(
                *tile, address(self._amplitudes), not feature_major, address(out), sines, step
            )
        numbers = address(self._phases), address(self._amplitudes)
        return not self._loop(*tile, *numbers, not feature_major, address(out), step)

    def _by_passes(self, angles: Floats, out: Floats, scratch: CosineBuffers | None) -> None:
        m = self._m
        if self._phases is None:
            self._passes.pair(angles, out[:, :m], out[:, m:], scratch)
            out[:, m:] *= self._amplitudes
        else:
            angles += self._phases
            self._passes.cosine(angles, out, scratch)
        out[:, :m] *= self._amplitudes
