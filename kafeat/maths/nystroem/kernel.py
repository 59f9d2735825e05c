"""The kernel of a Nyström map, as fitting and transforming need it.

If the kernel is precomputed, a row holds k(x, y) for every training row y, and landmarks are column numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from kafeat.contract.checks import all_finite, remedy
from kafeat.contract.kernel_inputs import Coordinates, Gram, KernelInputs
from kafeat.contract.step import DOUBLE, Sample, refuse_parameter
from kafeat.contract.threads import check
from kafeat.errors import DataError, UsageError
from kafeat.maths.kernel import DifferentiableKernel, KernelParameters, TiledKernel, as_coordinates
from kafeat.maths.kernel_tiles import KernelTile, Landmarks, call_kernel
from kafeat.maths.nystroem.landmarks import POINTS, FitSample, Given, Indices, Profile
from kafeat.types import Array, Floats

# Relative size from which an asymmetry or a negative eigenvalue of a kernel matrix is not due to rounding.
CLEARLY = 1e-6
_BLOCK = 1024
# About this many rows are enough for the median.
_FEW = 4096

NO_EXACT = (
    "nystroem: kernel precomputed: there is no exact kernel beyond the given columns: to compare with it, give the "
    "square kernel matrix of all rows to `kafeat evaluate --config`, with this as the first step of the config"
)


class LandmarkKernel:
    """A named kernel with its parameters, between rows and landmarks."""

    def __init__(self, name: str, kernel: TiledKernel, parameters: KernelParameters) -> None:
        self.name, self._kernel, self._parameters = name, kernel, parameters
        self.non_negative = kernel.non_negative

    @property
    def profile(self) -> Profile | None:
        """The kernel as a differentiable function of r² = ‖x − y‖², or None if it has no such form."""
        kernel, p = self._kernel, self._parameters
        if not isinstance(kernel, DifferentiableKernel):
            return None
        return Profile(lambda squared: kernel.with_slope(squared, p), float(p.gamma**-0.5))

    def tile(
        self, landmarks: Array, scale: float, dtype: np.dtype[Any], centre: Floats | None = None
    ) -> KernelTile:
        """Return the tile form of k(·, landmarks)/scale. `centre` (d,) is by default the landmarks' mean."""
        return self._kernel.tile(Landmarks(landmarks, dtype, scale, centre), self._parameters)

    def gram(self, pair: KernelInputs) -> Gram:
        """Return the exact kernel matrix of these inputs."""
        return self._kernel.gram(pair, self._parameters)

    def rows(self, X: Floats, chosen: Indices) -> Array:
        """Return the landmarks for the chosen row numbers of the sample."""
        return X[chosen]

    def centre(self, X: Floats) -> Floats | None:
        """Return the median (d,) of about `_FEW` rows of X (n, d), or None if the kernel does not subtract a centre."""
        if not self._kernel.centred:
            return None
        return np.median(X[:: -(-len(X) // _FEW)].astype(np.float64), axis=0)

    def scale(self, diagonal: Floats) -> float:
        """Return a divisor so that float32 can hold the kernel: 1 for a bounded kernel, or the largest k(x, x)."""
        largest = float(np.abs(diagonal).max(initial=0.0))
        return largest if self._kernel.scaled and 0.0 < largest < np.inf else 1.0

    def diagonal(self, X: Floats, rows: Indices) -> Floats:
        """Return k(x, x) for these rows of X, in float64."""
        blocks = (rows[start : start + _BLOCK // 8] for start in range(0, len(rows), _BLOCK // 8))
        parts = (X[block].astype(np.float64) for block in blocks)
        # no rows y are needed, because a Gram matrix also holds k(x, x)
        norms = (self.gram(Coordinates(part, part[:0])).squared_norms[0] for part in parts)
        values = np.concatenate([np.empty(0), *norms])
        _refuse_not_finite(values, f"nystroem: kernel {self.name}")
        return values

    def matrix(self, landmarks: Array, X: Floats) -> Floats:
        """Return the kernel matrix K_mm between landmarks of a sample X, in float64 and symmetric."""
        K = self.among(landmarks, X)
        _refuse_not_finite(K, f"nystroem: kernel {self.name}")
        symmetric: Floats = (K + K.T) / 2.0
        if np.abs(K - symmetric).max() > CLEARLY * np.abs(K).max():
            raise DataError(
                f"nystroem: kernel {self.name}: expected a symmetric kernel matrix, got an asymmetric one"
            )
        return symmetric

    def among(self, landmarks: Array, X: Floats) -> Floats:
        """Return the kernel between all landmarks (m, m) in float64. Rounding may have made it slightly asymmetric."""
        rows = landmarks.astype(np.float64)
        return self.gram(Coordinates(rows, rows)).dots

    def against(self, landmarks: Array, scale: float) -> Callable[[Floats], Floats]:
        """Return a function from rows (n, d) to k(·, landmarks)/scale, (n, m) in float64."""
        tile = self.tile(landmarks, scale, DOUBLE, self.centre(landmarks))
        return lambda rows: evaluate(tile, rows, np.arange(len(rows)), len(landmarks))

    def view(self, sample: Sample, dual_l1: float, tolerance: float | None = None) -> FitSample:
        """Return the fit sample and its kernel, as landmark selectors need them."""
        X, centre = sample.X, self.centre(sample.X)

        @cache
        def scale() -> float:
            return self.scale(self.diagonal(X, np.arange(len(X)))) if self._kernel.scaled else 1.0

        def scaled_diagonal(rows: Indices) -> Floats:
            return (self.diagonal(X, rows) / scale()).astype(X.dtype)

        def kernel(rows: Indices, columns: Indices) -> Floats:
            tile = self.tile(self.rows(X, columns), scale(), X.dtype, centre)
            return evaluate(tile, X, rows, len(columns))

        roots = self._kernel.roots
        return FitSample(X, kernel, scaled_diagonal, sample.label, dual_l1, self.profile, tolerance, roots)


class FunctionKernel(TiledKernel):
    """The user's Python function k(X, Y), which returns a kernel matrix (n, m)."""

    scaled = True

    def __init__(self, function: Callable[[Floats, Floats], Any]) -> None:
        self._function = function

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        c = as_coordinates(inputs)
        # the user's function need not handle an empty array
        values = call_kernel(self._function, c.x, c.y) if len(c.y) else np.empty((len(c.x), 0))
        return Gram(values.astype(np.float64), (self._norms(c.x), self._norms(c.y)))

    def _norms(self, X: Floats) -> Floats:
        parts = [X[i : i + 64] for i in range(0, len(X), 64)]
        return np.concatenate([np.empty(0), *(call_kernel(self._function, x, x).diagonal() for x in parts)])

    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        def write(X: Floats, rows: Floats, out: Floats, _: Floats) -> None:
            out[...] = call_kernel(self._function, X, rows) / landmarks.scale

        return KernelTile(landmarks.rows, landmarks.dtype, write, 0)


def evaluate(tile: KernelTile, X: Floats, rows: Indices, m: int) -> Floats:
    """Return the kernel of these rows of X with m landmarks, in the dtype of the tile, computed block by block."""
    out = np.empty((len(rows), m), dtype=tile.dtype)
    height = min(_BLOCK, len(rows))
    scratch = tile.scratch(height)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for start in range(0, len(rows), _BLOCK):
            check()
            block = np.ascontiguousarray(X[_places(rows[start : start + _BLOCK])], dtype=tile.dtype)
            if len(block) < height:  # the last block is shorter, and buffers depend on the number of rows
                scratch = tile.scratch(len(block))
            tile.evaluate(block, out[start : start + _BLOCK], scratch)
    _refuse_not_finite(out, "nystroem")
    return out


def _places(rows: Indices) -> Indices | slice:
    """Return the row numbers, as a slice if they are consecutive, so that indexing copies nothing."""
    first, stop = int(rows[0]), int(rows[-1]) + 1
    return slice(first, stop) if stop - first == len(rows) and (np.diff(rows) == 1).all() else rows


def _refuse_not_finite(values: Floats, name: str) -> None:
    if not all_finite(values):
        bad = values[~np.isfinite(values)]
        raise DataError(
            f"{name}: expected kernel values that {values.dtype} can hold, got {bad[0]:g}: {remedy(values.dtype)}"
        )


class _Columns(TiledKernel):
    """A precomputed kernel: a row already holds k(x, ·), and landmarks are column numbers."""

    scaled = True

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        raise UsageError(NO_EXACT)

    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        columns: Array = landmarks.rows
        scale = landmarks.dtype.type(landmarks.scale)

        def write(X: Floats, _: Floats, out: Floats, __: Floats) -> None:
            np.take(X, columns, axis=1, out=out, mode="clip")  # mode "raise" would need a buffer
            out /= scale

        return KernelTile(np.empty((len(columns), 0)), landmarks.dtype, write, 0)


class PrecomputedKernel(LandmarkKernel):
    """A kernel whose values are the columns of the input."""

    def __init__(self) -> None:
        super().__init__("precomputed", _Columns(), KernelParameters())

    def rows(self, X: Floats, chosen: Indices) -> Array:
        return chosen

    def diagonal(self, X: Floats, rows: Indices) -> Floats:
        return X[rows, rows].astype(np.float64)

    def among(self, landmarks: Array, X: Floats) -> Floats:
        return X[np.ix_(landmarks, landmarks)].astype(np.float64)


def check_square(X: Floats) -> None:
    """Raise an error if X is not square: it must be the kernel matrix of all training rows."""
    if X.shape[0] != X.shape[1]:
        raise DataError(
            f"nystroem: kernel precomputed: expected the square kernel matrix of the training rows, got "
            f"{X.shape[0]} rows and {X.shape[1]} columns: fit on all of them (fit_rows: all), with no other columns"
        )


def check_parameters(landmarks: str | Given, weights: str) -> None:
    """Raise an error for parameters that need the coordinates of rows, which a precomputed kernel lacks."""
    name = landmarks.key if isinstance(landmarks, Given) else landmarks
    if isinstance(landmarks, Given) or name in POINTS:
        refuse_parameter("landmarks", "landmarks that are columns of the input", name)
    if weights == "fitted":
        refuse_parameter("weights", "exact, for a precomputed kernel", weights)
