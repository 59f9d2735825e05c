"""Cosine features of random frequencies, tile by tile: angles, cosine and scaling, directly into the output."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from kafeat.compiled.library import ARRAY, FLAG, SIZE, Loop, address, aligned, loop, vector_bytes
from kafeat.contract.checks import refuse_where
from kafeat.contract.sparse_product import DenseMatrix
from kafeat.contract.step import Transform
from kafeat.contract.tile import Rows, SparseRows, is_feature_major, runs, shaped
from kafeat.types import Floats, Scratch

_TILE = (ARRAY, SIZE, SIZE, SIZE)


def cos_sin(angles: Floats) -> Floats:
    """Return [cos x, sin x] (n, 2m) for angles x (n, m), which may be overwritten."""
    n, m = angles.shape
    out = np.empty((n, 2 * m), dtype=angles.dtype)
    _plain(m, angles.dtype).write(angles, out)
    return out


@lru_cache(maxsize=8)
def _plain(m: int, dtype: np.dtype[Any]) -> CosineFeatures:
    return CosineFeatures(dtype, np.ones(m), None)


class CosineFeatures:
    """a_j [cos x_j, sin x_j] for angles x (rows, m) in `dtype`, or with phases b, a_j cos(x_j + b_j)."""

    def __init__(self, dtype: np.dtype[Any], amplitudes: Floats, phases: Floats | None) -> None:
        self._amplitudes = np.ascontiguousarray(amplitudes, dtype=dtype)
        self._phases = None if phases is None else np.ascontiguousarray(phases, dtype=dtype)
        self._m = len(amplitudes)
        if phases is None:
            self._loop = loop("cos_sin", dtype, *_TILE, ARRAY, FLAG, ARRAY, ARRAY, SIZE, result=FLAG)
        else:
            self._loop = loop("cosine", dtype, *_TILE, ARRAY, ARRAY, FLAG, ARRAY, SIZE, result=FLAG)

    def write(self, angles: Floats, out: Floats) -> None:
        """Write the features into `out`, which has the memory order of the angles. The angles may be overwritten."""
        if self._by_loop(angles, out):
            return
        m = self._m
        if self._phases is None:
            np.sin(angles, out=out[:, m:])
            out[:, m:] *= self._amplitudes
        else:
            angles += self._phases
        np.cos(angles, out=out[:, :m])
        out[:, :m] *= self._amplitudes

    def _by_loop(self, angles: Floats, out: Floats) -> bool:
        """Write the features. Return False if there is no loop, or if an angle is not finite: NumPy then computes."""
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


# The bytes of a SIMD vector, the vectors of a panel (both as in `compiled/waves.h`), and the most inputs for the loop.
# With more inputs, BLAS is faster, because it keeps parts of matrices in caches. With shorter vectors, BLAS is as fast
# as the loop.
_VECTOR, _WIDE, _MOST_INPUTS = 64, 2, 1024


class WaveLoop:
    """The compiled loop for a_j [cos ω_j·x, sin ω_j·x]. It sums each ω_j·x in the order of the inputs."""

    def __init__(
        self, frequencies: Floats, amplitudes: Floats, dtype: np.dtype[Any], run: Loop, panels: Loop
    ) -> None:
        self._frequencies = np.ascontiguousarray(frequencies, dtype=dtype)
        self._amplitudes = np.ascontiguousarray(amplitudes, dtype=dtype)
        self._run, self._panels, self._dtype = run, panels, dtype
        self._by_panel = self.scratch(len(frequencies))
        self._fill(self._frequencies, self._by_panel)

    def scratch(self, rows: int) -> Floats:
        """Return a worker's buffer for tiles of `rows` rows, which are copied into panels."""
        columns = _WIDE * _VECTOR // self._dtype.itemsize
        return aligned(-(-rows // columns) * columns * self._frequencies.shape[1], self._dtype)

    def write(self, X: Floats, out: Floats, scratch: Floats) -> bool:
        """Write the features of X (rows, d) into `out` (rows, 2m). Return False if an angle is not finite."""
        X, m = np.ascontiguousarray(X), len(self._frequencies)
        feature_major = is_feature_major(out)
        left, right, columns = X, self._by_panel, m
        if feature_major:
            self._fill(X, scratch)
            left, right, columns = self._frequencies, scratch, len(X)
        lost = self._run(
            address(left), *left.shape, address(right), columns, address(self._amplitudes), not feature_major,
            address(out), address(out[:, m:]), runs(out, feature_major)[2],
        )  # fmt: skip
        return not lost

    def _fill(self, matrix: Floats, panels: Floats) -> None:
        self._panels(address(matrix), *matrix.shape, address(panels))


def wave_loop(frequencies: Floats, amplitudes: Floats, dtype: np.dtype[Any]) -> WaveLoop | None:
    """Return the compiled loop, or None if BLAS and NumPy have to compute."""
    if vector_bytes() != _VECTOR or frequencies.shape[1] > _MOST_INPUTS:
        return None
    matrix = (ARRAY, SIZE, SIZE)
    others = ARRAY, SIZE, ARRAY, FLAG, ARRAY, ARRAY, SIZE
    run = loop(f"waves_{_VECTOR}", dtype, *matrix, *others, result=FLAG)
    panels = loop(f"panels_{_VECTOR}", dtype, *matrix, ARRAY)
    if run is None or panels is None:
        return None
    return WaveLoop(frequencies, amplitudes, dtype, run, panels)


Features = Literal["paired", "offset"]
Warp = Callable[[Floats, Floats], Floats]


class Angles(ABC):
    """A way to compute the angles ω_j·x of a tile of rows."""

    m: int
    takes: tuple[type, ...] = ()
    """The types of rows that `apply` accepts besides arrays."""

    def scratch(self, rows: int) -> Scratch:
        """Return buffers for tiles of `rows` rows."""
        return ()

    @abstractmethod
    def apply(self, X: Any, angles: Floats, scratch: Scratch) -> None:
        """Write the angles of the tile X (rows, d) into `angles` (rows, m), in C or Fortran order."""

    def waves(self, amplitudes: Floats) -> WaveLoop | None:
        """Return a compiled loop that computes cosines and sines directly from rows, or None if there is none."""
        return None


class DenseAngles(Angles):
    """The angles by one matrix product with the frequencies (m, d)."""

    takes = (SparseRows,)

    def __init__(self, frequencies: Floats, dtype: np.dtype[Any]) -> None:
        self._product, self.m = DenseMatrix(frequencies, dtype), len(frequencies)

    def apply(self, X: Rows, angles: Floats, scratch: Scratch) -> None:
        self._product.of_rows(X, angles)

    def waves(self, amplitudes: Floats) -> WaveLoop | None:
        return wave_loop(self._product.matrix, amplitudes, self._product.matrix.dtype)


class CosineTransform(Transform):
    """Paired features √a_j [cos ω_j·x, sin ω_j·x], or offset features √(2a_j) cos(ω_j·x + b_j).

    By default, all weights a_j are 1/m. If there is a function `warp`, it is applied to x first.
    """

    def __init__(
        self,
        angles: Angles,
        n_features: int,
        dtype: np.dtype[Any],
        *,
        phases: Floats | None = None,
        weights: Floats | None = None,
        warp: Warp | None = None,
    ) -> None:
        self._angles, self._warp, self._dtype = angles, warp, dtype
        self.takes = () if warp is not None else angles.takes
        self.n_features_in = n_features
        self.n_features_out = 2 * angles.m if phases is None else angles.m
        squared = np.full(angles.m, 1.0 / angles.m) if weights is None else np.asarray(weights)
        amplitudes = np.sqrt(squared if phases is None else 2.0 * squared)
        self._cosines = CosineFeatures(dtype, amplitudes, phases)
        self._waves = angles.waves(amplitudes) if phases is None else None

    def scratch(self, rows: int) -> Scratch:
        warped = np.empty((rows, self.n_features_in if self._warp else 0), dtype=self._dtype)
        flat = np.empty(rows * self._angles.m, dtype=self._dtype)
        panels = None if self._waves is None else self._waves.scratch(rows)
        return flat, warped, self._angles.scratch(rows), panels

    def apply(self, X: Rows, out: Floats, scratch: Scratch) -> None:
        flat, warped, inner, panels = scratch
        if not isinstance(X, SparseRows):
            if self._warp is not None:
                X = self._warp(X, warped)
            if self._waves and self._waves.write(X, out, panels):
                return
        # The angles have the memory order of the output, so that nothing is transposed.
        angles = shaped(flat, (len(X), self._angles.m), is_feature_major(out))
        self._angles.apply(X, angles, inner)
        self._cosines.write(angles, out)


def log_warp(skewedness: float) -> Warp:
    """Return the function x ↦ log(x + c). It raises an error for an entry at or below −c."""

    def warp(X: Floats, out: Floats) -> Floats:
        np.add(X, X.dtype.type(skewedness), out=out)
        if out.min() <= 0.0:
            refuse_where(out <= 0.0, X, f"a value above -skewedness = {-skewedness:g}")
        return np.log(out, out=out)

    return warp
