"""Kernels between a tile of rows and fixed landmarks, in the map's precision: what Nyström runs on.

The exact forms, in float64, are in `kernels.py`; a test holds the two against each other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from kafeat.domain import refuse_negative
from kafeat.kernels import KernelParameters
from kafeat.types import Array, Floats


class KernelTile(ABC):
    """k(x, l_j) of every row x of a tile with every landmark l_j."""

    def __init__(self, landmarks: Floats, parameters: KernelParameters, dtype: np.dtype[Any]) -> None:
        self._landmarks = np.ascontiguousarray(landmarks, dtype=dtype)
        self._parameters = parameters
        self._dtype = dtype

    def scratch(self, rows: int) -> tuple[Array, ...]:
        """Buffers for tiles of `rows` rows."""
        return (np.empty((rows, self._landmarks.shape[1]), dtype=self._dtype),)

    @abstractmethod
    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        """Write the kernel of `X` (rows, d) with the landmarks (m, d) into `out` (rows, m), C order."""


class DistanceTile(KernelTile):
    """A function of ‖x − l‖² = ‖x‖² + ‖l‖² − 2x·l, by one matrix product.

    Both sides are moved to the mean of the landmarks first: the sum cancels less when the rows lie far from 0.
    """

    def __init__(
        self,
        landmarks: Floats,
        parameters: KernelParameters,
        dtype: np.dtype[Any],
        finish: Callable[[Floats, KernelParameters], None],
    ) -> None:
        centre = np.asarray(landmarks, dtype=np.float64).mean(axis=0)
        self._centre = centre.astype(dtype)
        moved = landmarks.astype(np.float64) - self._centre
        super().__init__(moved, parameters, dtype)
        self._norms = np.einsum("ij,ij->i", moved, moved).astype(dtype)
        self._doubled = np.ascontiguousarray((-2.0 * moved).astype(dtype).T)
        self._finish = finish

    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        (moved,) = scratch
        np.subtract(X, self._centre, out=moved)
        np.matmul(moved, self._doubled, out=out)
        out += np.einsum("ij,ij->i", moved, moved)[:, None]
        out += self._norms
        np.maximum(out, 0.0, out=out)
        self._finish(out, self._parameters)


def _finish_rbf(squared: Floats, p: KernelParameters) -> None:
    squared *= squared.dtype.type(-p.gamma)
    np.exp(squared, out=squared)


class ProductTile(KernelTile):
    """A function of x·l."""

    def __init__(
        self,
        landmarks: Floats,
        parameters: KernelParameters,
        dtype: np.dtype[Any],
        finish: Callable[[Floats, KernelParameters], None],
    ) -> None:
        super().__init__(landmarks, parameters, dtype)
        self._finish = finish

    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        np.matmul(X, self._landmarks.T, out=out)
        self._finish(out, self._parameters)


def _finish_linear(dots: Floats, p: KernelParameters) -> None:
    del dots, p


def _finish_polynomial(dots: Floats, p: KernelParameters) -> None:
    dots *= dots.dtype.type(p.gamma)
    dots += dots.dtype.type(p.coef0)
    np.power(dots, p.degree, out=dots)


def _finish_sigmoid(dots: Floats, p: KernelParameters) -> None:
    dots *= dots.dtype.type(p.gamma)
    dots += dots.dtype.type(p.coef0)
    np.tanh(dots, out=dots)


class CosineTile(KernelTile):
    """x·l/(‖x‖‖l‖), and 0 where one of them is 0."""

    def __init__(self, landmarks: Floats, parameters: KernelParameters, dtype: np.dtype[Any]) -> None:
        norms = np.linalg.norm(landmarks.astype(np.float64), axis=1, keepdims=True)
        super().__init__(landmarks / np.where(norms > 0.0, norms, 1.0), parameters, dtype)

    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        norms = np.sqrt(np.einsum("ij,ij->i", X, X))
        np.matmul(X, self._landmarks.T, out=out)
        out /= np.where(norms > 0.0, norms, X.dtype.type(1.0))[:, None]


class LaplacianTile(KernelTile):
    """exp(−γ‖x − l‖₁)."""

    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        (difference,) = scratch
        for j, landmark in enumerate(self._landmarks):
            np.subtract(X, landmark, out=difference)
            np.abs(difference, out=difference)
            difference.sum(axis=1, out=out[:, j])
        out *= self._dtype.type(-self._parameters.gamma)
        np.exp(out, out=out)


class HarmonicTile(KernelTile):
    """Σ_i x_i l_i/(x_i + l_i), from which both chi2 kernels follow; x, l ≥ 0, and 0/0 counts as 0."""

    def __init__(
        self,
        landmarks: Floats,
        parameters: KernelParameters,
        dtype: np.dtype[Any],
        exponential: bool,
    ) -> None:
        super().__init__(landmarks, parameters, dtype)
        self._sums = self._landmarks.sum(axis=1)
        self._exponential = exponential

    def scratch(self, rows: int) -> tuple[Array, ...]:
        shape = (rows, self._landmarks.shape[1])
        return np.empty(shape, dtype=self._dtype), np.empty(shape, dtype=self._dtype)

    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        refuse_negative(X)
        total, product = scratch
        tiny = np.finfo(self._dtype).tiny
        for j, landmark in enumerate(self._landmarks):
            np.add(X, landmark, out=total)
            np.maximum(total, tiny, out=total)
            # the quotient first: it is at most 1, where a product of the two could overflow or vanish
            np.divide(landmark, total, out=product)
            product *= X
            product.sum(axis=1, out=out[:, j])
        if not self._exponential:
            out *= self._dtype.type(2.0)
            return
        # (x − l)²/(x + l) = x + l − 4xl/(x + l)
        out *= self._dtype.type(4.0)
        out -= X.sum(axis=1)[:, None]
        out -= self._sums
        np.minimum(out, 0.0, out=out)
        out *= self._dtype.type(self._parameters.gamma)
        np.exp(out, out=out)


def kernel_tile(
    name: str, landmarks: Floats, parameters: KernelParameters, dtype: np.dtype[Any]
) -> KernelTile:
    """The tile form of the kernel of that name."""
    match name:
        case "rbf":
            return DistanceTile(landmarks, parameters, dtype, _finish_rbf)
        case "laplacian":
            return LaplacianTile(landmarks, parameters, dtype)
        case "linear":
            return ProductTile(landmarks, parameters, dtype, _finish_linear)
        case "polynomial":
            return ProductTile(landmarks, parameters, dtype, _finish_polynomial)
        case "sigmoid":
            return ProductTile(landmarks, parameters, dtype, _finish_sigmoid)
        case "cosine":
            return CosineTile(landmarks, parameters, dtype)
        case "chi2":
            return HarmonicTile(landmarks, parameters, dtype, exponential=True)
        case "additive_chi2":
            return HarmonicTile(landmarks, parameters, dtype, exponential=False)
    raise ValueError(f"no tile form of the kernel {name!r}")
