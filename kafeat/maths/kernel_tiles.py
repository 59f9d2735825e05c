"""Kernels between a tile of rows and fixed landmarks: functions of dot products, distances and sums over columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from kafeat.compiled.library import ARRAY, FLAG, REALS, SIZE, address, aligned, loop, vector_bytes
from kafeat.contract.checks import refuse_negative
from kafeat.contract.kernel_inputs import distances
from kafeat.errors import UsageError
from kafeat.types import Floats

# The codes by which the C files know functions of a distance, and terms of a sum over columns.
_PROFILES = {"gaussian": 0, "matern_1": 1, "rational_quadratic": 2, "matern_3": 3, "matern_5": 5}
_TERMS = {"harmonic": 0, "cityblock": 1, "intersection": 2}
_ACROSS = {64: 4, 32: 2}
"""For each vector size in bytes, the number of landmark vectors per step of the compiled loop, as in the C file."""

Profile = Literal["gaussian", "matern_1", "rational_quadratic", "matern_3", "matern_5"]
Term = Literal["harmonic", "cityblock", "intersection"]

Finish = Callable[[Floats], object]
"""A function that replaces an array of c·r², or of dot products, by the kernel in place."""

# If rounding in float64 may change c‖x − l‖² (c = `factor`) by more than this, distances are computed from x − l, at
# ten times the cost.
_MOST_CANCELLED = 1e-6


def exponential(scaled: Floats) -> None:
    """Replace x by e^x in place."""
    np.exp(scaled, out=scaled)


def profile_loop(profile: Profile | None, finish: Finish, dtype: np.dtype[Any], alpha: float = 0.0) -> Finish:
    """Return a function that replaces an array of c·r² (in C order) by a kernel. Entries with a wrong sign count as 0.

    Wrong signs come from rounding. c is −γ for gaussian, γ/α for rational_quadratic, and 2νγ for matern with ν = 1/2,
    3/2 and 5/2. Without a compiled loop, the returned function calls `finish`.
    """
    run = loop("profile", dtype, ARRAY, SIZE, FLAG, REALS[dtype.name])
    if run is None or profile is None:
        clip = np.minimum if profile == "gaussian" else np.maximum
        return lambda squares: finish(clip(squares, 0.0, out=squares))
    number = _PROFILES[profile]
    return lambda squares: run(address(squares), squares.size, number, alpha)


def sums_loop(term: Term, landmarks: Floats, dtype: np.dtype[Any]) -> Callable[[Floats, Floats], None]:
    """Return a function that writes Σ_i t(x_i, l_i) for rows X (n, d) and landmarks (m, d) into (n, m), in C order.

    For cityblock, t(x, l) is |x − l|. For intersection, it is min(x, l), and for harmonic xl/(x + l), or 0 if x is 0.
    """
    size = vector_bytes()
    run = loop(f"sums_{size}", dtype, ARRAY, SIZE, SIZE, ARRAY, SIZE, FLAG, ARRAY) if size else None
    if run is None:
        return partial(_sums, term, landmarks)
    (m, d), number, wide = landmarks.shape, _TERMS[term], _ACROSS[size] * size // dtype.itemsize
    panels = aligned(-(-m // wide) * wide * d, dtype)
    panels[...] = 0.0
    for start in range(0, m, wide):
        panel = panels[start * d : (start + wide) * d].reshape(d, wide)
        panel[:, : m - start] = landmarks[start : start + wide].T

    def write(X: Floats, out: Floats) -> None:
        X = np.ascontiguousarray(X)
        run(address(X), *X.shape, address(panels), m, number, address(out))

    return write


def _sums(term: Term, landmarks: Floats, X: Floats, out: Floats) -> None:
    """Write the sums of `sums_loop` without a compiled loop, with one pass over the tile for each landmark."""
    if term == "cityblock":  # in float64 by SciPy, which is as fast as passes in float32
        np.copyto(out, distances(X, landmarks, "cityblock"), casting="same_kind")
        return
    with np.errstate(divide="ignore", over="ignore"):
        if term == "harmonic":  # 1/(1/x + 1/l), where 1/0 = ∞ gives 0, as it should
            X, landmarks = 1.0 / X, 1.0 / landmarks
        for j, landmark in enumerate(landmarks):
            terms = np.minimum(X, landmark) if term == "intersection" else 1.0 / (X + landmark)
            terms.sum(axis=1, out=out[:, j])


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Rows (m, d) with which a kernel compares other rows, the dtype to compute in, and a divisor of the kernel."""

    rows: Floats
    dtype: np.dtype[Any]
    scale: float = 1.0
    centre: Floats | None = None
    """The point (d,) that kernels of ‖x − l‖ subtract from all rows. None means the mean of the landmarks."""

    @property
    def doubles(self) -> Floats:
        """The landmark rows in float64."""
        return self.rows.astype(np.float64)


Write = Callable[[Floats, Floats, Floats, Floats], object]
"""A function write(rows, landmarks, out, buffers) that writes the kernel into `out` (n, m), in C order."""


class KernelTile:
    """Computes k(x, l_j) for every row x of a tile and every landmark l_j.

    The function `write` gets a tile (n, d), the landmarks in `dtype`, the array to fill, and a buffer of the shape
    (buffers, n, width). By default, `width` is d.
    """

    def __init__(
        self,
        landmarks: Floats,
        dtype: np.dtype[Any],
        write: Write,
        buffers: int = 1,
        width: int | None = None,
    ) -> None:
        self._landmarks, self._write = np.ascontiguousarray(landmarks, dtype=dtype), write
        self.dtype, self._buffers = dtype, (buffers, landmarks.shape[1] if width is None else width)

    def scratch(self, rows: int) -> Floats:
        """Return the buffers for tiles of `rows` rows."""
        return np.empty((self._buffers[0], rows, self._buffers[1]), dtype=self.dtype)

    def evaluate(self, X: Floats, out: Floats, scratch: Floats) -> None:
        """Write the kernel of `X` (rows, d) with the landmarks (m, d) into `out` (rows, m), C order."""
        self._write(X, self._landmarks, out, scratch)


def product_tile(landmarks: Floats, dtype: np.dtype[Any], finish: Finish | None = None) -> KernelTile:
    """Return a kernel tile for x·l, or for a function of x·l that `finish` computes in place."""

    def write(X: Floats, landmarks: Floats, out: Floats, _: Floats) -> None:
        np.matmul(X, landmarks.T, out=out)
        if finish:
            finish(out)

    return KernelTile(landmarks, dtype, write)


def distance_tile(landmarks: Landmarks, factor: float, finish: Finish) -> KernelTile:
    """Return a kernel tile for a function of c‖x − l‖², by one matrix product: [x, ‖x‖², 1]·[−2cl, c, c‖l‖²].

    `centre` is subtracted first, because the product loses fewer digits for rows near 0. If a landmark is so far from
    the centre that even float64 loses too many digits, distances to it are computed from x − l. Without a centre, as in
    files of format 1, the landmarks' mean is subtracted, and x − l is never used. Rounding may give c‖x − l‖² the wrong
    sign, which `finish` must handle.
    """
    rows, dtype = landmarks.doubles, landmarks.dtype
    centre = (rows.mean(axis=0) if landmarks.centre is None else landmarks.centre).astype(dtype)
    moved = rows - centre
    norms = np.einsum("ij,ij->i", moved, moved)
    # Far from l, the kernel is almost 0, and rounding does not matter. Near l, each of four terms is about c‖l‖².
    cancelled = 4.0 * float(np.finfo(np.float64).eps) * abs(factor) * norms
    far = np.flatnonzero(cancelled > (np.inf if landmarks.centre is None else _MOST_CANCELLED))
    far_rows = rows[far]

    def write(X: Floats, both: Floats, out: Floats, scratch: Floats) -> None:
        [sums] = scratch
        moved = np.subtract(X, centre, out=sums[:, :-2])
        np.einsum("ij,ij->i", moved, moved, out=sums[:, -2])
        sums[:, -1] = 1.0
        np.matmul(sums, both, out=out)
        if len(far):
            out[:, far] = factor * distances(X.astype(np.float64), far_rows, "sqeuclidean")
        finish(out)

    both = np.vstack([-2.0 * factor * moved.T, np.full(len(moved), factor), factor * norms])
    return KernelTile(both, dtype, write, width=len(both))


def sums_tile(
    term: Term, landmarks: Landmarks, finish: Callable[[Floats, Floats], object] | None = None
) -> KernelTile:
    """Return a kernel tile for the sums of `sums_loop`, which `finish` may turn into another kernel in place."""
    rows, dtype = np.ascontiguousarray(landmarks.rows, dtype=landmarks.dtype), landmarks.dtype
    # halve x and l for harmonic terms, so that x + l does not overflow
    halves = term == "harmonic"
    add = sums_loop(term, 0.5 * rows if halves else rows, dtype)

    def write(X: Floats, _: Floats, out: Floats, scratch: Floats) -> None:
        if term != "cityblock":
            refuse_negative(X)
        add(np.multiply(X, dtype.type(0.5), out=scratch[0]) if halves else X, out)
        if halves:
            out *= dtype.type(2.0)
        if finish:
            finish(X, out)

    return KernelTile(rows, dtype, write)


def call_kernel(function: Callable[[Floats, Floats], Any], X: Floats, Y: Floats) -> Floats:
    """Return k(X, Y) from the user's function, or raise an error if its shape is wrong."""
    values = np.asarray(function(X, Y))
    if values.shape != (len(X), len(Y)):
        raise UsageError(
            f"kernel: expected a function that gives an array of shape {(len(X), len(Y))}, got {values.shape}"
        )
    return values
