"""Kernels that are no formula of ours: a column of the input, or a Python function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kafeat.errors import UsageError
from kafeat.maths.kernel_tiles import KernelTile
from kafeat.types import Array, Floats


class ColumnTile(KernelTile):
    """The input row holds k(x, ·) already; landmarks are numbers of columns."""

    def __init__(self, columns: Array, scale: float, dtype: np.dtype[Any]) -> None:
        super().__init__(np.empty((len(columns), 0)), dtype)
        self._columns = columns
        self._scale = dtype.type(scale)

    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        np.take(X, self._columns, axis=1, out=out, mode="clip")  # they were checked; "raise" would buffer
        out /= self._scale


class FunctionTile(KernelTile):
    """A Python function k(X, Y) → (n, m)."""

    def __init__(
        self, function: Callable[[Floats, Floats], Any], landmarks: Floats, scale: float, dtype: np.dtype[Any]
    ) -> None:
        super().__init__(landmarks, dtype)
        self._function = function
        self._scale = scale

    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        out[...] = call_kernel(self._function, X, self._landmarks) / self._scale


def call_kernel(function: Callable[[Floats, Floats], Any], X: Floats, Y: Floats) -> Floats:
    """k(X, Y) by a function of the user's, which may be wrong about its shape."""
    values = np.asarray(function(X, Y))
    if values.shape != (len(X), len(Y)):
        raise UsageError(
            f"kernel: expected a function that gives an array of shape {(len(X), len(Y))}, got {values.shape}"
        )
    return values
