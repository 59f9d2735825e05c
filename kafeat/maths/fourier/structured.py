"""Frequencies as products of random signs and Hadamard transforms, never as a matrix, with O(D log p) steps per row.

Rows are zero-padded to p = 2^⌈log₂ d⌉, for `structured` to at least 32. With H orthonormal, a block of p directions is
- `structured` (SORF, Yu et al. 2016): H D₁ H D₂ H D₃, D_i random signs;
- `fastfood` (Le, Sarlós & Smola 2013): √p H G Π H B/‖G‖, B random signs, Π a permutation, G Gaussian.
Each direction is scaled by an independent draw of the distribution's radius in p dimensions. The state consists of the
signs (and G, Π) of every block and of the radii.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from kafeat.compiled.library import ARRAY, SIZE, Loop, address, aligned, loop, vector_bytes
from kafeat.maths.fourier.spectra import IsotropicDistribution
from kafeat.maths.fourier.transform import Angles
from kafeat.maths.hadamard import HadamardTransform, padded_width
from kafeat.types import Array, ArrayOf, Floats, Shapes, State


class StructuredLoop:
    """The compiled loop for angles ω_j·x. Frequencies are rows of blocks H diag(f_l) Π … H diag(f_1), times a radius.

    `first` (blocks, d) is f_1 without its entries for the padding, which are 0. `layers` are f_2 to f_l, (blocks, p)
    each. Π moves entry `permutation`[j] to position j. `permutation` (blocks, p) is None if there is no Π. `radii` are
    (m,).
    """

    def __init__(
        self, first: Floats, layers: Sequence[Floats], permutation: Array | None, radii: Floats, run: Loop
    ) -> None:
        p, dtype = layers[0].shape[1], radii.dtype
        self._shape = first.shape[1], p, len(layers), len(radii)
        # The loop uses H with entries ±1, so the factors include the scale 1/√p that makes H orthonormal.
        scale = 1.0 / np.sqrt(p)
        factors = np.stack(layers, axis=1) * scale
        self._numbers = [np.ascontiguousarray(array, dtype=dtype) for array in (first * scale, factors)]
        self._permutation = None if permutation is None else permutation.astype(np.int64, order="C")
        self._radii, self._dtype, self._run = np.ascontiguousarray(radii), dtype, run

    def scratch(self) -> Floats:
        """Return a buffer for one worker."""
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
    """Return the compiled loop for the dtype of the radii, or None if NumPy has to compute."""
    arguments = (ARRAY, *5 * [SIZE], *5 * [ARRAY], SIZE, SIZE, ARRAY)
    run = loop(f"structured_{vector_bytes()}", radii.dtype, *arguments)
    return None if run is None else StructuredLoop(first, layers, permutation, radii, run)


Structure = Literal["structured", "fastfood"]

# With a smaller width there are so few combinations of signs that the directions are not uniform. With width 2, the
# mean of cos ω·δ misses the kernel by up to 0.3, and with 32 by less than the noise of 2¹⁸ frequencies.
_LEAST_WIDTH = 32


def draw_structured(
    law: IsotropicDistribution, how: Structure, m: int, d: int, rng: np.random.Generator
) -> State:
    """Draw m frequencies in d dimensions, and return the arrays that define them."""
    p = max(padded_width(d), _LEAST_WIDTH) if how == "structured" else padded_width(d)
    blocks = -(-m // p)
    layers = 3 if how == "structured" else 1
    state: dict[str, Array] = {
        "signs": rng.choice(np.array([-1, 1], dtype=np.int8), size=(blocks, layers, p)),
        "radii": law.radii(m, p, rng),
    }
    if how == "fastfood":
        state["gaussian"] = rng.standard_normal((blocks, p))
        state["permutation"] = np.array([rng.permutation(p) for _ in range(blocks)])
    return state


def structured_shapes(state: State, how: Structure, m: int, d: int) -> Shapes:
    """Return the shapes of a state's arrays. In files of earlier releases, p may be below `_LEAST_WIDTH`."""
    p = padded_width(d)
    if how == "structured" and "signs" in state and state["signs"].shape[-1:] == (_LEAST_WIDTH,):
        p = max(p, _LEAST_WIDTH)
    blocks = -(-m // p)
    layers = 3 if how == "structured" else 1
    shapes = {"signs": ArrayOf((blocks, layers, p), "int8"), "radii": ArrayOf((m,))}
    if how == "structured":
        return shapes
    return {**shapes, "gaussian": (blocks, p), "permutation": ArrayOf((blocks, p), "int64", below=p)}


class StructuredAngles(Angles):
    """The angles ω_j·x of a tile of rows, computed by Hadamard transforms."""

    def __init__(self, state: State, d: int, dtype: np.dtype[Any], input_scale: Floats | None = None) -> None:
        self._d, self._p = d, state["signs"].shape[-1]
        self._dtype = dtype
        self.m = len(state["radii"])
        self._hadamard = HadamardTransform(self._p, dtype)
        signs = state["signs"].astype(np.float64)
        first = signs[:, -1, :d] if input_scale is None else signs[:, -1, :d] * input_scale
        layers = [signs[:, i] for i in reversed(range(signs.shape[1] - 1))]
        self._permutation = state.get("permutation")
        radii = state["radii"].copy()
        if self._permutation is not None:
            norms = np.linalg.norm(state["gaussian"], axis=1)
            radii *= np.sqrt(self._p) / np.repeat(norms, self._p)[: self.m]
            layers = [state["gaussian"]]
        self._radii = radii.astype(dtype)
        self._loop = structured_loop(first, layers, self._permutation, self._radii)
        self._first, self._layers = first.astype(dtype), [layer.astype(dtype) for layer in layers]

    def scratch(self, rows: int) -> Floats:
        """Return the buffer of the compiled loop. For NumPy, return two buffers of rows · p numbers."""
        return self._loop.scratch() if self._loop else np.empty((2, rows, self._p), self._dtype)

    def apply(self, X: Floats, angles: Floats, scratch: Floats) -> None:
        if self._loop:
            self._loop.write(X, angles, scratch)
            return
        x, between = scratch[:, : len(X)]
        for block, first in enumerate(self._first):
            some = slice(block * self._p, min((block + 1) * self._p, self.m))
            np.multiply(X, first, out=x[:, : self._d])
            x[:, self._d :] = 0.0
            self._hadamard(x, x, between)
            for layer in self._layers:
                if self._permutation is not None:
                    np.take(x, self._permutation[block], axis=1, out=between, mode="clip")
                    x, between = between, x
                x *= layer[block]
                self._hadamard(x, x, between)
            np.multiply(x[:, : some.stop - some.start], self._radii[some], out=angles[:, some])

    @classmethod
    def matrix(cls, state: State, d: int) -> Floats:
        """Return the frequencies as a matrix (m, d)."""
        angles = cls(state, d, np.dtype(np.float64))
        if angles.m < d:
            return angles._block_by_rows()
        out = np.empty((d, angles.m))
        angles.apply(np.eye(d), out, angles.scratch(d))
        return np.ascontiguousarray(out.T)

    def _block_by_rows(self) -> Floats:
        """Return m < d frequencies of a block, (m, d). Applying the factors in reverse avoids a d × d matrix."""
        x, between = np.zeros((self.m, self._p)), np.empty((self.m, self._p))
        np.fill_diagonal(x, self._radii)
        self._hadamard(x, x, between)
        for layer in reversed(self._layers):
            x *= layer[0]
            if self._permutation is not None:
                between[:, self._permutation[0]] = x
                x, between = between, x
            self._hadamard(x, x, between)
        return x[:, : self._d] * self._first[0]
