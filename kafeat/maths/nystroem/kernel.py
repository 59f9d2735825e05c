"""The kernel of a Nyström map in the forms that its fit and its transform need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kafeat.contract.casts import all_finite
from kafeat.contract.checks import remedy
from kafeat.contract.kernel_inputs import Coordinates, Gram, KernelInputs
from kafeat.contract.step import Sample
from kafeat.errors import DataError
from kafeat.maths.kernel import DifferentiableKernel, KernelParameters, TiledKernel
from kafeat.maths.kernel_tiles import ColumnTile, FunctionTile, KernelTile, Landmarks, call_kernel
from kafeat.maths.kernels import find_kernel
from kafeat.maths.nystroem.landmarks import FitSample, Indices, Profile
from kafeat.types import Array, Floats

# Beyond that, a kernel matrix is not symmetric, or an eigenvalue negative, by more than rounding.
CLEARLY = 1e-6
_BLOCK = 1024
# Rows whose median is taken for that of all.
_FEW = 4096


@dataclass(frozen=True)
class LandmarkKernel:
    """A named kernel, `precomputed`, or a function k(X, Y), with its parameters in force."""

    kernel: str | Callable[..., Any]
    parameters: KernelParameters

    @property
    def name(self) -> str:
        return self.kernel if isinstance(self.kernel, str) else getattr(self.kernel, "__name__", "function")

    @property
    def precomputed(self) -> bool:
        return self.kernel == "precomputed"

    @property
    def _named(self) -> TiledKernel | None:
        """The kernel of that name; None for columns and functions."""
        if not isinstance(self.kernel, str) or self.precomputed:
            return None
        kernel = find_kernel(self.kernel)
        if not isinstance(kernel, TiledKernel):
            raise TypeError(f"{self.kernel} has no tile form")
        return kernel

    @property
    def non_negative(self) -> bool:
        """True if the kernel is defined for values of at least 0 only."""
        return self._named is not None and self._named.non_negative

    def tile(
        self, landmarks: Array, scale: float, dtype: np.dtype[Any], centre: Floats | None = None
    ) -> KernelTile:
        """k(·, landmarks)/scale; of a precomputed kernel, landmarks are numbers of columns.

        `centre` (d,) is a place among the rows; None: the mean of the landmarks.
        """
        if not isinstance(self.kernel, str):
            return FunctionTile(self.kernel, landmarks, scale, dtype)
        if self._named is None:
            return ColumnTile(landmarks, scale, dtype)
        return self._named.tile(Landmarks(landmarks, dtype, scale, centre), self.parameters)

    def centre(self, X: Floats) -> Floats | None:
        """The median of rows X (n, d), of some if they are many; None for kernels that are of no distance.

        One row that lies far off does not move it, as it does the mean.
        """
        if self._named is None or not self._named.centred:
            return None
        middle: Floats = np.median(X[:: -(-len(X) // _FEW)].astype(np.float64), axis=0)
        return middle

    def scale(self, diagonal: Floats) -> float:
        """Return a divisor by which float32 holds the kernel: its largest diagonal entry, if it has no bound."""
        largest = float(np.abs(diagonal).max(initial=0.0))
        return largest if self._scaled and 0.0 < largest < np.inf else 1.0

    @property
    def _scaled(self) -> bool:
        """True unless the kernel has a bound."""
        return self._named is None or self._named.scaled

    def diagonal(self, X: Floats, rows: Indices) -> Floats:
        """k(x, x), float64."""
        if self.precomputed:
            return X[rows, rows].astype(np.float64)
        parts: list[Floats] = [np.empty(0)]
        for start in range(0, len(rows), _BLOCK // 8):
            x = X[rows[start : start + _BLOCK // 8]].astype(np.float64)
            # of named kernels the Gram matrix with no rows at all tells the diagonal
            y = x if callable(self.kernel) else x[:0]
            parts.append(self.gram(Coordinates(x, y)).squared_norms[0])
        values = np.concatenate(parts)
        _refuse_not_finite(values, f"nystroem: kernel {self.name}")
        return values

    def matrix(self, landmarks: Array, X: Floats) -> Floats:
        """K_mm, float64 and symmetric; `X` holds it where the kernel is precomputed."""
        if self.precomputed:
            K = X[np.ix_(landmarks, landmarks)].astype(np.float64)
        else:
            rows = landmarks.astype(np.float64)
            K = self.gram(Coordinates(rows, rows)).dots
        _refuse_not_finite(K, f"nystroem: kernel {self.name}")
        symmetric: Floats = (K + K.T) / 2.0
        if np.abs(K - symmetric).max() > CLEARLY * np.abs(K).max():
            raise DataError(f"nystroem: kernel {self.name}: expected a symmetric kernel matrix, got another")
        return symmetric

    def gram(self, pair: KernelInputs) -> Gram:
        """The exact kernel."""
        if isinstance(self.kernel, str):
            return find_kernel(self.kernel).gram(pair, self.parameters)
        if not isinstance(pair, Coordinates):
            raise TypeError("a function needs coordinates")
        function = self.kernel

        def norms(X: Floats) -> Floats:
            parts = [X[i : i + 64] for i in range(0, len(X), 64)]
            return np.concatenate([np.empty(0), *(call_kernel(function, x, x).diagonal() for x in parts)])

        values = call_kernel(function, pair.x, pair.y).astype(np.float64)
        return Gram(values, (norms(pair.x), norms(pair.y)))

    def view(self, sample: Sample, dual_l1: float, tolerance: float | None = None) -> FitSample:
        """Return the view of the fit sample that landmark selectors work on."""
        X, centre = sample.X, self.centre(sample.X)
        known: list[float] = []

        def scale() -> float:
            if not known:
                known.append(self.scale(self.diagonal(X, np.arange(len(X)))) if self._scaled else 1.0)
            return known[0]

        def scaled_diagonal(rows: Indices) -> Floats:
            return (self.diagonal(X, rows) / scale()).astype(X.dtype)

        def kernel(rows: Indices, columns: Indices) -> Floats:
            tile = self.tile(columns if self.precomputed else X[columns], scale(), X.dtype, centre)
            return evaluate(tile, X, rows, len(columns))

        return FitSample(X, kernel, scaled_diagonal, sample.label, dual_l1, self._profile(), tolerance)

    def _profile(self) -> Profile | None:
        """The kernel as a function of r², where it has a slope everywhere."""
        kernel, p = self._named, self.parameters
        if not isinstance(kernel, DifferentiableKernel):
            return None
        return Profile(lambda squared: kernel.with_slope(squared, p), float(p.gamma**-0.5))


def evaluate(tile: KernelTile, X: Floats, rows: Indices, m: int) -> Floats:
    """The kernel of some rows of X with m landmarks, block by block, in the dtype of the tile."""
    out = np.empty((len(rows), m), dtype=tile.dtype)
    height = min(_BLOCK, len(rows))
    scratch = tile.scratch(height)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for start in range(0, len(rows), _BLOCK):
            block = np.ascontiguousarray(X[_places(rows[start : start + _BLOCK])], dtype=tile.dtype)
            if len(block) < height:  # the last: buffers are laid out for their number of rows
                scratch = tile.scratch(len(block))
            tile.evaluate(block, out[start : start + _BLOCK], scratch)
    _refuse_not_finite(out, "nystroem")
    return out


def _places(rows: Indices) -> Indices | slice:
    """The numbers of rows, as a slice if they follow each other: then nothing is copied."""
    first, stop = int(rows[0]), int(rows[-1]) + 1
    return slice(first, stop) if stop - first == len(rows) and (np.diff(rows) == 1).all() else rows


def _refuse_not_finite(values: Floats, name: str) -> None:
    if not all_finite(values):
        bad = values[~np.isfinite(values)]
        raise DataError(
            f"{name}: expected kernel values that {values.dtype} can hold, got {bad[0]:g}: {remedy(values.dtype)}"
        )
