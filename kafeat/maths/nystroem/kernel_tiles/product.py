"""Kernels of the dot product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kafeat.contract.checks import refuse_negative
from kafeat.maths.kernels.exact import KernelParameters
from kafeat.maths.nystroem.kernel_tiles.base import KernelTile
from kafeat.types import Array, Floats

Finish = Callable[[Floats, KernelParameters], None]
"""Dot products become the kernel, in place."""


class ProductTile(KernelTile):
    """A function of x·l."""

    def __init__(
        self, landmarks: Floats, parameters: KernelParameters, dtype: np.dtype[Any], finish: Finish
    ) -> None:
        super().__init__(landmarks, parameters, dtype)
        self._finish = finish

    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        np.matmul(X, self._landmarks.T, out=out)
        self._finish(out, self._parameters)


def linear(dots: Floats, p: KernelParameters) -> None:
    """x·l."""
    del dots, p


def polynomial(dots: Floats, p: KernelParameters) -> None:
    """(γ x·l + c₀)^degree."""
    dots *= dots.dtype.type(p.gamma)
    dots += dots.dtype.type(p.coef0)
    np.power(dots, p.degree, out=dots)


def sigmoid(dots: Floats, p: KernelParameters) -> None:
    """tanh(γ x·l + c₀)."""
    dots *= dots.dtype.type(p.gamma)
    dots += dots.dtype.type(p.coef0)
    np.tanh(dots, out=dots)


class CosineTile(KernelTile):
    """x·l/(‖x‖‖l‖), and 0 where one of them is 0."""

    def __init__(self, landmarks: Floats, parameters: KernelParameters, dtype: np.dtype[Any]) -> None:
        norms = np.linalg.norm(landmarks.astype(np.float64), axis=1, keepdims=True)
        super().__init__(landmarks / np.where(norms > 0.0, norms, 1.0), parameters, dtype)

    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        (scaled,) = scratch
        # By powers of two near the largest entries, which changes no digit: squares stay within the dtype.
        exponents = np.frexp(np.abs(X).max(axis=1, initial=0.0))[1]
        most = np.finfo(X.dtype).maxexp - 2
        np.multiply(X, np.ldexp(X.dtype.type(1.0), -exponents.clip(-most, most))[:, None], out=scaled)
        norms = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        np.matmul(scaled, self._landmarks.T, out=out)
        out /= np.where(norms > 0.0, norms, X.dtype.type(1.0))[:, None]


class HellingerTile(KernelTile):
    """Σ_i √x_i √l_i."""

    def __init__(self, landmarks: Floats, parameters: KernelParameters, dtype: np.dtype[Any]) -> None:
        super().__init__(np.sqrt(landmarks.astype(np.float64)), parameters, dtype)

    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        refuse_negative(X)
        (roots,) = scratch
        np.sqrt(X, out=roots)
        np.matmul(roots, self._landmarks.T, out=out)
