"""Kernels given as a matrix: a row holds k(x, every training row), and landmarks are numbers of its columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.contract.step import refuse_parameter
from kafeat.errors import DataError, UsageError
from kafeat.maths.kernel_tiles import ColumnTile, KernelTile
from kafeat.maths.nystroem.kernel import LandmarkKernel
from kafeat.maths.nystroem.landmarks import POINTS, Given, Indices
from kafeat.types import Array, Floats

NO_EXACT = (
    "nystroem: kernel precomputed: there is no exact kernel beyond the given columns; `kafeat evaluate --config` takes "
    "a recipe with this as its first step, and the square kernel matrix of all rows"
)


class PrecomputedKernel(LandmarkKernel):
    """The given columns."""

    def __init__(self) -> None:
        super().__init__("precomputed")

    def tile(
        self, landmarks: Array, scale: float, dtype: np.dtype[Any], centre: Floats | None = None
    ) -> KernelTile:
        return ColumnTile(landmarks, scale, dtype)

    def gram(self, pair: KernelInputs) -> Gram:
        raise UsageError(NO_EXACT)

    def norms(self, X: Floats) -> Floats:
        return self.diagonal(X, np.arange(len(X)))

    def rows(self, X: Floats, chosen: Indices) -> Array:
        return chosen

    def diagonal(self, X: Floats, rows: Indices) -> Floats:
        return X[rows, rows].astype(np.float64)

    def among(self, landmarks: Array, X: Floats) -> Floats:
        return X[np.ix_(landmarks, landmarks)].astype(np.float64)


def check_square(X: Floats) -> None:
    """Refuse rows to fit on that are no kernel matrix of all training rows."""
    if X.shape[0] != X.shape[1]:
        raise DataError(
            f"nystroem: kernel precomputed: expected the square kernel matrix of the training rows, got "
            f"{X.shape[0]} rows and {X.shape[1]} columns: fit on all of them (fit_rows: all), with no other columns"
        )


def check_parameters(landmarks: str | Given, weights: str, preimages: bool) -> None:
    """Refuse parameters that need the coordinates of rows."""
    name = landmarks.key if isinstance(landmarks, Given) else landmarks
    if isinstance(landmarks, Given) or name in POINTS:
        refuse_parameter("landmarks", "landmarks that are columns of the input", name)
    if weights == "fitted":
        refuse_parameter("weights", "exact, for a precomputed kernel", weights)
    if preimages:
        refuse_parameter("preimages", "false, for a precomputed kernel", preimages)
