"""Cosine features of random frequencies, tile by tile: angles, cosine, scaling, straight into the output."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from kafeat.contract.sparse_product import times_dense
from kafeat.contract.step import Transform
from kafeat.contract.tile import SparseRows, is_feature_major, shaped
from kafeat.errors import InvalidValueError
from kafeat.maths.fourier.cosines import CosineFeatures
from kafeat.maths.fourier.sincos import CosineBuffers
from kafeat.maths.fourier.waves import WaveLoop, wave_loop
from kafeat.types import Floats, Scratch

Features = Literal["paired", "offset"]
Warp = Callable[[Floats, Floats], None]


def count_frequencies(n_components: int, features: Features) -> int:
    """m of D outputs: half of them for paired features."""
    return n_components // 2 if features == "paired" else n_components


class Angles(Protocol):
    """ω_j·x for all frequencies of a tile."""

    m: int

    @property
    def takes_sparse(self) -> bool:
        """True if the angles have a form for `sparse` rows."""

    def scratch(self, rows: int) -> Scratch:
        """Buffers for tiles of `rows` rows."""

    def apply(self, X: Floats, angles: Floats, scratch: Scratch) -> None:
        """Write the angles of the tile X (rows, d) into `angles` (rows, m), in C or Fortran order."""

    def sparse(self, X: SparseRows, angles: Floats) -> None:
        """The same for sparse rows."""

    def waves(self, amplitudes: Floats) -> WaveLoop | None:
        """Return a loop for their cosines and sines that does without the angles, if there is one."""


class DenseAngles:
    """One matrix product with the frequencies (m, d)."""

    def __init__(self, frequencies: Floats, dtype: np.dtype[Any]) -> None:
        self._frequencies = np.ascontiguousarray(frequencies, dtype=dtype)
        self.m, self._dtype = len(frequencies), dtype

    def scratch(self, rows: int) -> Scratch:
        return ()

    def apply(self, X: Floats, angles: Floats, scratch: Scratch) -> None:
        np.matmul(X, self._frequencies.T, out=angles)

    @property
    def takes_sparse(self) -> bool:
        return True

    @cached_property
    def _by_inputs(self) -> Floats:
        return np.ascontiguousarray(self._frequencies.T)

    def sparse(self, X: SparseRows, angles: Floats) -> None:
        times_dense(X, self._by_inputs, angles)

    def waves(self, amplitudes: Floats) -> WaveLoop | None:
        return wave_loop(self._frequencies, amplitudes, self._dtype)


class _Buffers(NamedTuple):
    angles: Floats
    warped: Floats
    inner: Scratch
    panels: Floats | None
    cosines: CosineBuffers | None


class CosineTransform(Transform):
    """paired: √a_j [cos ω_j·x, sin ω_j·x]; offset: √(2a_j) cos(ω_j·x + b_j); x warped first if asked.

    The weights a_j are 1/m unless they are given.
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
        self.n_features_in = n_features
        self.n_features_out = 2 * angles.m if phases is None else angles.m
        squared = np.full(angles.m, 1.0 / angles.m) if weights is None else np.asarray(weights)
        amplitudes = np.sqrt(squared if phases is None else 2.0 * squared)
        self._cosines = CosineFeatures(dtype, amplitudes, phases)
        self._waves = angles.waves(amplitudes) if phases is None else None

    def scratch(self, rows: int) -> _Buffers:
        warped = np.empty((rows, self.n_features_in if self._warp else 0), dtype=self._dtype)
        flat = np.empty(rows * self._angles.m, dtype=self._dtype)
        panels = None if self._waves is None else self._waves.scratch(rows)
        return _Buffers(flat, warped, self._angles.scratch(rows), panels, self._cosines.scratch())

    def apply(self, X: Floats, out: Floats, scratch: _Buffers) -> None:
        if self._warp is not None:
            self._warp(X, scratch.warped)
            X = scratch.warped
        if self._waves and scratch.panels is not None and self._waves.write(X, out, scratch.panels):
            return
        # The angles take the memory order of the output, so that no pass over memory transposes.
        angles = shaped(scratch.angles, (len(X), self._angles.m), is_feature_major(out))
        self._angles.apply(X, angles, scratch.inner)
        self._cosines.write(angles, out, scratch.cosines)

    @property
    def takes_sparse(self) -> bool:
        return self._warp is None and self._angles.takes_sparse

    def apply_sparse(self, X: SparseRows, out: Floats, scratch: _Buffers) -> None:
        angles = shaped(scratch.angles, (len(X), self._angles.m), is_feature_major(out))
        self._angles.sparse(X, angles)
        self._cosines.write(angles, out, scratch.cosines)


def log_warp(skewedness: float) -> Warp:
    """log(x + c); an entry at or below −c is refused."""

    def warp(X: Floats, out: Floats) -> None:
        np.add(X, X.dtype.type(skewedness), out=out)
        if out.min() <= 0.0:
            row, column = (int(i) for i in np.argwhere(out <= 0.0)[0])
            raise InvalidValueError(
                row, column, f"expected a value above -skewedness = {-skewedness:g}, got {X[row, column]:g}"
            )
        np.log(out, out=out)

    return warp
