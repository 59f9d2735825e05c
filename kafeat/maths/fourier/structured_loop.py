"""The compiled loop of structured frequencies: all transforms of a row are done while it is in the cache."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kafeat.compiled.library import ARRAY, SIZE, Loop, address, aligned, loop, vector_bytes
from kafeat.types import Array, Floats


class StructuredLoop:
    """Angles ω_j·x, j < m, of blocks of p directions s H diag(f_l) Π … H diag(f_1), each times its radius.

    Parameters
    ----------
    first : array (blocks, d)
        f_1, for the inputs that are there. The others are zero.
    layers : sequence of arrays (blocks, p)
        f_2 and so on.
    permutation : array (blocks, p) or None
        Π: the place that each number is taken from, before every layer.
    radii : array (m,)
        The factors of the results.
    """

    def __init__(
        self, first: Floats, layers: Sequence[Floats], permutation: Array | None, radii: Floats, run: Loop
    ) -> None:
        p, dtype = layers[0].shape[1], radii.dtype
        self._shape = first.shape[1], p, len(layers), len(radii)
        # H has entries ±1 in the loop.
        scale = 1.0 / np.sqrt(p)
        factors = np.stack(layers, axis=1) * scale
        self._numbers = [np.ascontiguousarray(array, dtype=dtype) for array in (first * scale, factors)]
        self._permutation = None if permutation is None else permutation.astype(np.int64, order="C")
        self._radii, self._dtype, self._run = np.ascontiguousarray(radii), dtype, run

    def scratch(self) -> Floats:
        """Return the buffer of one worker."""
        d, p, *_ = self._shape
        return aligned((2 * p + d) * vector_bytes() // self._dtype.itemsize, self._dtype)

    def write(self, X: Floats, angles: Floats, scratch: Floats) -> None:
        """Write the angles of X (rows, d) into `angles` (rows, m)."""
        X = np.ascontiguousarray(X)
        permutation = None if self._permutation is None else address(self._permutation)
        self._run(
            address(X), len(X), *self._shape, *map(address, self._numbers), permutation, address(self._radii),
            address(angles), *(step // angles.itemsize for step in angles.strides), address(scratch),
        )  # fmt: skip


def structured_loop(
    first: Floats, layers: Sequence[Floats], permutation: Array | None, radii: Floats
) -> StructuredLoop | None:
    """Return the loop in the dtype of the radii, or None where NumPy has to compute."""
    arguments = (ARRAY, *5 * [SIZE], *5 * [ARRAY], SIZE, SIZE, ARRAY)
    run = loop(f"structured_{vector_bytes()}", radii.dtype, *arguments)
    return None if run is None else StructuredLoop(first, layers, permutation, radii, run)
