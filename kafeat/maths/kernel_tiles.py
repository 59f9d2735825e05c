"""Kernels between a tile of rows and fixed landmarks, in the map's precision, grouped by what they are functions of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from kafeat.compiled.library import ARRAY, FLAG, REALS, SIZE, address, aligned, loop, vector_bytes
from kafeat.contract.checks import refuse_negative
from kafeat.contract.kernel_inputs import distances
from kafeat.errors import UsageError
from kafeat.types import Array, Floats, Scratch

# The numbers of these profiles in the C file.
_PROFILES = {"gaussian": 0, "matern_1": 1, "rational_quadratic": 2, "matern_3": 3, "matern_5": 5}
_TERMS = {"harmonic": 0, "cityblock": 1, "intersection": 2}
_ACROSS = {64: 4, 32: 2}
"""How many vectors of landmarks the loop computes at a time, for vectors of so many bytes. The C file agrees."""

Profile = Literal["gaussian", "matern_1", "rational_quadratic", "matern_3", "matern_5"]
Term = Literal["harmonic", "cityblock", "intersection"]

Finish = Callable[[Floats], object]
"""Turns c·r², or dot products, into the kernel, in place."""

# If the error of c‖x − l‖² in float64 is larger, differences are used, which cost about ten times as much.
_MOST_CANCELLED = 1e-6


def exponential(scaled: Floats) -> None:
    """Replace x by e^x."""
    np.exp(scaled, out=scaled)


def profile_loop(profile: Profile | None, finish: Finish, dtype: np.dtype[Any], alpha: float = 0.0) -> Finish:
    """Return a function that turns c·r² into a kernel in place, in C order, even if rounding made it negative.

    c is −γ for gaussian, γ/α for rational_quadratic, and 2νγ for matern with ν = 1/2, 3/2 and 5/2. `finish` does it if
    there is no loop.
    """
    run = loop("profile", dtype, ARRAY, SIZE, FLAG, REALS[dtype.name])
    if run is None or profile is None:
        clip = np.minimum if profile == "gaussian" else np.maximum
        return lambda squares: finish(clip(squares, 0.0, out=squares))
    number = _PROFILES[profile]
    return lambda squares: run(address(squares), squares.size, number, alpha)


def sums_loop(term: Term, landmarks: Floats, dtype: np.dtype[Any]) -> Callable[[Floats, Floats], None]:
    """Return a function that writes sums over the columns of X (n, d) and landmarks (m, d) into (n, m), in C order.

    The terms are xl/(x + l) for harmonic, 0 where x is 0, |x − l| for cityblock, and min(x, l) for intersection.
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
    """Do the same without a compiled loop, with one pass over the tile for each landmark."""
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
    """Rows (m, d) to compare others with in `dtype`, and a divisor of the kernel."""

    rows: Floats
    dtype: np.dtype[Any]
    scale: float = 1.0
    centre: Floats | None = None
    """The point (d,) that kernels of the distance move to 0. None means the mean of the landmarks."""

    @property
    def doubles(self) -> Floats:
        """The rows in float64."""
        return self.rows.astype(np.float64)


class KernelTile(ABC):
    """k(x, l_j) of every row x of a tile with every landmark l_j."""

    def __init__(self, landmarks: Floats, dtype: np.dtype[Any]) -> None:
        self._landmarks = np.ascontiguousarray(landmarks, dtype=dtype)
        self._dtype = self.dtype = dtype

    def scratch(self, rows: int) -> Scratch:
        """Return buffers for tiles of `rows` rows: by default, one as large as the rows."""
        return np.empty((rows, self._landmarks.shape[1]), dtype=self._dtype)

    @abstractmethod
    def evaluate(self, X: Floats, out: Floats, scratch: Scratch) -> None:
        """Write the kernel of `X` (rows, d) with the landmarks (m, d) into `out` (rows, m), C order."""


class ProductTile(KernelTile):
    """A function of x·l."""

    def __init__(self, landmarks: Floats, dtype: np.dtype[Any], finish: Finish | None = None) -> None:
        super().__init__(landmarks, dtype)
        self._finish = finish

    def evaluate(self, X: Floats, out: Floats, scratch: Scratch) -> None:
        np.matmul(X, self._landmarks.T, out=out)
        if self._finish:
            self._finish(out)


class DistanceTile(KernelTile):
    """A function of c‖x − l‖² = c‖x‖² + c‖l‖² − 2c x·l, by one matrix product: [x, ‖x‖², 1]·[−2cl, c, c‖l‖²].

    Both sides are moved to `centre` first, because the sum cancels less if the rows lie near 0. Landmarks so far away
    that float64 would cancel too much are compared by differences. Without a centre, as in files of format 1, it is the
    mean of the landmarks, and no differences are used. A sum may have the wrong sign, which `finish` must handle.
    """

    def __init__(self, landmarks: Landmarks, factor: float, finish: Finish) -> None:
        rows, dtype, centre = landmarks.doubles, landmarks.dtype, landmarks.centre
        self._centre = (rows.mean(axis=0) if centre is None else centre).astype(dtype)
        moved = rows - self._centre
        super().__init__(moved, dtype)
        norms = np.einsum("ij,ij->i", moved, moved)
        # four terms of the size c‖l‖² where x is near l, and the kernel is not 0
        cancelled = 4.0 * float(np.finfo(np.float64).eps) * abs(factor) * norms
        self._far = np.flatnonzero(cancelled > (np.inf if centre is None else _MOST_CANCELLED))
        self._far_rows, self._factor = rows[self._far], factor
        both = np.vstack([-2.0 * factor * moved.T, np.full(len(moved), factor), factor * norms])
        self._both = np.ascontiguousarray(both, dtype=dtype)
        self._finish = finish

    def scratch(self, rows: int) -> Floats:
        return np.ones((rows, len(self._both)), dtype=self._dtype)

    def evaluate(self, X: Floats, out: Floats, scratch: Floats) -> None:
        moved = np.subtract(X, self._centre, out=scratch[:, :-2])
        np.einsum("ij,ij->i", moved, moved, out=scratch[:, -2])
        np.matmul(scratch, self._both, out=out)
        if len(self._far):
            out[:, self._far] = self._factor * distances(X.astype(np.float64), self._far_rows, "sqeuclidean")
        self._finish(out)


class SumsTile(KernelTile):
    """A function of sums over the columns, of the terms in `sums_loop`, with x, l ≥ 0 except for cityblock."""

    def __init__(
        self, term: Term, landmarks: Floats, dtype: np.dtype[Any], finish: Finish | None = None
    ) -> None:
        super().__init__(landmarks, dtype)
        self._signed, self._halves, self._finish = term == "cityblock", term == "harmonic", finish
        # halves, so that sums of harmonic terms do not overflow
        self._sum = sums_loop(term, 0.5 * self._landmarks if self._halves else self._landmarks, dtype)

    def evaluate(self, X: Floats, out: Floats, scratch: Floats) -> None:
        if not self._signed:
            refuse_negative(X)
        self._sum(np.multiply(X, self._dtype.type(0.5), out=scratch) if self._halves else X, out)
        if self._halves:
            out *= self._dtype.type(2.0)
        self.finish(X, out)

    def finish(self, X: Floats, sums: Floats) -> None:
        """Turn the `sums` (rows, m) into the kernel, in place."""
        if self._finish:
            self._finish(sums)


class ColumnTile(KernelTile):
    """The input row already holds k(x, ·), and landmarks are numbers of columns."""

    def __init__(self, columns: Array, scale: float, dtype: np.dtype[Any]) -> None:
        super().__init__(np.empty((len(columns), 0)), dtype)
        self._columns = columns
        self._scale = dtype.type(scale)

    def evaluate(self, X: Floats, out: Floats, scratch: Scratch) -> None:
        np.take(X, self._columns, axis=1, out=out, mode="clip")  # already checked; "raise" would use a buffer
        out /= self._scale


class FunctionTile(KernelTile):
    """A Python function k(X, Y) → (n, m)."""

    def __init__(
        self, function: Callable[[Floats, Floats], Any], landmarks: Floats, scale: float, dtype: np.dtype[Any]
    ) -> None:
        super().__init__(landmarks, dtype)
        self._function = function
        self._scale = scale

    def evaluate(self, X: Floats, out: Floats, scratch: Scratch) -> None:
        out[...] = call_kernel(self._function, X, self._landmarks) / self._scale


def call_kernel(function: Callable[[Floats, Floats], Any], X: Floats, Y: Floats) -> Floats:
    """Return k(X, Y) from a function of the user, which may return a wrong shape."""
    values = np.asarray(function(X, Y))
    if values.shape != (len(X), len(Y)):
        raise UsageError(
            f"kernel: expected a function that gives an array of shape {(len(X), len(Y))}, got {values.shape}"
        )
    return values
