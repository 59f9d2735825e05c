"""Rows of randomised Hadamard matrices, fast: block b is H diag(f_b), and rows are drawn without replacement."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.hadamard import HadamardTransform, padded_width
from kafeat.types import Array, Floats


def count_blocks(m: int, d: int) -> int:
    """Blocks that hold m rows of width d, padded to a power of two."""
    return -(-m // padded_width(d))


def draw_rows(m: int, d: int, rng: np.random.Generator) -> Array:
    """Which row of its block each of m outputs is: all of every block but the last, in random order."""
    width = padded_width(d)
    return np.concatenate([rng.permutation(width) for _ in range(count_blocks(m, d))])[:m].astype(np.int64)


def written_out(factors: Array, rows: Array) -> Array:
    """The matrix (m, d) that `SampledHadamard` multiplies by: row r of H diag(f_b) for every row r of a block b."""
    blocks = np.arange(len(rows)) // padded_width(factors.shape[1])
    # An entry of H is −1 where the numbers of its row and its column share an odd number of ones.
    odd = np.bitwise_count(rows[:, None] & np.arange(factors.shape[1])) & 1
    matrix: Array = factors[blocks] * np.where(odd, -1.0, 1.0)
    return matrix


class SampledHadamard:
    """u ↦ (H diag(f_b) u)_r on feature-major tiles, for the m rows r of blocks b; H has entries ±1.

    `factors` (blocks, d) may be complex; `dtype` is the real type to compute in.
    """

    def __init__(self, factors: Array, rows: Array, dtype: np.dtype[Any]) -> None:
        blocks, d = factors.shape
        width = padded_width(d)
        self._real = dtype
        self.dtype = np.result_type(dtype, np.complex64) if factors.dtype.kind == "c" else dtype
        self._factors = np.ascontiguousarray(factors.T[:, :, None].astype(self.dtype))
        self._shape = (width, blocks)
        # outputs in blocks of `width`; in memory the blocks of one row of H are neighbours
        self._rows = rows * blocks + np.arange(len(rows)) // width
        self._hadamard = HadamardTransform(width, dtype, orthonormal=False)

    def scratch(self, rows: int) -> tuple[Array, Array]:
        """Two buffers for tiles of `rows` rows; maps of the same shape and type may share them."""
        blocks = np.empty((*self._shape, rows), dtype=self.dtype)
        return blocks, np.empty_like(blocks)

    def __call__(self, inputs: Floats, out: Array, scratch: tuple[Array, Array]) -> None:
        """Write the image of `inputs` (d, rows), real, into `out` (m, rows), C order."""
        blocks, between = scratch
        d = len(inputs)
        np.multiply(inputs[:, None, :], self._factors, out=blocks[:d])
        blocks[d:] = 0
        # H is real: a complex column is two real ones.
        x = blocks.reshape(self._shape[0], -1).view(self._real)
        self._hadamard(x.T, x.T, between.reshape(self._shape[0], -1).view(self._real).T)
        np.take(blocks.reshape(-1, inputs.shape[1]), self._rows, axis=0, out=out, mode="clip")
