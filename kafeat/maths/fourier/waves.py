"""The compiled loop of paired Fourier features: the product with the frequencies and its cosines and sines in one."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.compiled.library import ARRAY, FLAG, SIZE, Loop, address, aligned, loop, vector_bytes
from kafeat.contract.tile import is_feature_major, runs
from kafeat.types import Floats

# Bytes of a vector, and vectors of a panel, as in the C file; and the most inputs: of more, BLAS keeps parts in its
# caches. With shorter vectors it was no faster than BLAS and a second loop.
_VECTOR, _WIDE, _MOST_INPUTS = 64, 2, 1024


class WaveLoop:
    """a_j [cos ω_j·x, sin ω_j·x] for frequencies (m, d). Sums run over the inputs in order, for each output alone."""

    def __init__(
        self, frequencies: Floats, amplitudes: Floats, dtype: np.dtype[Any], run: Loop, panels: Loop
    ) -> None:
        self._frequencies = np.ascontiguousarray(frequencies, dtype=dtype)
        self._amplitudes = np.ascontiguousarray(amplitudes, dtype=dtype)
        self._run, self._panels, self._dtype = run, panels, dtype
        self._by_panel = self.scratch(len(frequencies))
        self._fill(self._frequencies, self._by_panel)

    def scratch(self, rows: int) -> Floats:
        """Return the buffer of one worker for tiles of `rows` rows, in panels."""
        columns = _WIDE * _VECTOR // self._dtype.itemsize
        return aligned(-(-rows // columns) * columns * self._frequencies.shape[1], self._dtype)

    def write(self, X: Floats, out: Floats, scratch: Floats) -> bool:
        """Write the features of X (rows, d) into `out` (rows, 2m); return False if an angle is no number."""
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
    """Return the loop, or None where BLAS and NumPy have to compute."""
    if vector_bytes() != _VECTOR or frequencies.shape[1] > _MOST_INPUTS:
        return None
    matrix = (ARRAY, SIZE, SIZE)
    others = ARRAY, SIZE, ARRAY, FLAG, ARRAY, ARRAY, SIZE
    run = loop(f"waves_{_VECTOR}", dtype, *matrix, *others, result=FLAG)
    panels = loop(f"panels_{_VECTOR}", dtype, *matrix, ARRAY)
    if run is None or panels is None:
        return None
    return WaveLoop(frequencies, amplitudes, dtype, run, panels)
