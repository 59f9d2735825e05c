"""The compiled loop of TensorSketch: count sketches, Fourier transforms and their product, a few rows at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.compiled.library import ARRAY, FLAG, SIZE, Loop, address, loop
from kafeat.contract.sparse_product import csr_addresses
from kafeat.contract.tile import Rows, SparseRows
from kafeat.types import Array, Floats

# Bytes of a vector of rows, as in the C file, and the least width of a sketch.
_VECTOR, _LEAST = 32, 8


class SketchLoop:
    """Products of the spectra of count sketches of [x, 1]: input i goes to buckets[:, i] with factors[:, i]."""

    def __init__(
        self, factors: Floats, buckets: Array, amplitudes: Floats, dtype: np.dtype[Any], run: Loop
    ) -> None:
        self.degree, self.n_features_in = len(factors), factors.shape[1] - 1
        self.width, self.dtype, self._run = len(amplitudes), dtype, run
        n = self.width // 2
        self._numbers = (
            buckets.astype(np.int32, order="C"),
            # halves, as the loop says
            np.ascontiguousarray(0.5 * factors, dtype=dtype),
            _turns(n, 2.0 * np.pi / n, dtype),
            _turns(n + 1, np.pi / n, dtype),
            places(n).astype(np.int32),
            amplitudes.astype(dtype),
        )

    def scratch(self) -> Floats:
        """Return the buffer of one worker."""
        lanes = _VECTOR // self.dtype.itemsize
        return np.empty(lanes * (self.n_features_in + 2 * self.width), dtype=self.dtype)

    def write(self, X: Rows, out: Floats, scratch: Floats) -> bool:
        """Write the outputs of rows X (n, d) into `out`; return False if one is not finite."""
        if isinstance(X, SparseRows):
            addresses, kept = csr_addresses(X)
            rows: tuple[int | None, ...] = addresses
        else:
            kept = np.ascontiguousarray(X)
            rows = address(kept), None, None
        buckets, factors, *tables = (address(array) for array in self._numbers)
        by_row, by_output = (step // out.itemsize for step in out.strides)
        lost = self._run(
            *rows, *X.shape, buckets, factors, self.degree, self.width, *tables, address(scratch), address(out),
            by_row, by_output,
        )  # fmt: skip
        del kept
        return not lost


def sketch_loop(
    factors: Floats, buckets: Array, amplitudes: Floats, dtype: np.dtype[Any]
) -> SketchLoop | None:
    """Return the loop, or None where NumPy has to compute: it has transforms of powers of two only."""
    arguments = [ARRAY, ARRAY, ARRAY, SIZE, SIZE, ARRAY, ARRAY, SIZE, SIZE, *[ARRAY] * 6, SIZE, SIZE]
    run, width = loop("tensor_sketch", dtype, *arguments, result=FLAG), len(amplitudes)
    if run is None or width < _LEAST or width & (width - 1):
        return None
    return SketchLoop(factors, buckets, amplitudes, dtype, run)


def places(n: int) -> Array:
    """Return where the frequencies of a transform of n numbers stand, which is done in quarters, then halves."""
    if n == 1:
        return np.zeros(1, dtype=np.int64)
    parts = 4 if n >= 4 else 2
    inner, place = places(n // parts), np.empty(n, dtype=np.int64)
    for part in range(parts):
        place[part::parts] = part * (n // parts) + inner
    return place


def _turns(count: int, angle: float, dtype: np.dtype[Any]) -> Floats:
    """Return the real and the imaginary part of e^(−i·angle·t) for t < count."""
    t = angle * np.arange(count)
    return np.stack([np.cos(t), -np.sin(t)], axis=1).astype(dtype)
