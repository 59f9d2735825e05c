"""Kernels of the Euclidean distance: one matrix product, then a function of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kafeat.kernel_tiles.tile import KernelTile
from kafeat.kernels import KernelParameters
from kafeat.types import Array, Floats

Finish = Callable[[Floats, KernelParameters], None]
"""Squared distances become the kernel, in place."""


class DistanceTile(KernelTile):
    """A function of ‖x − l‖² = ‖x‖² + ‖l‖² − 2x·l, by one matrix product.

    Both sides are moved to the mean of the landmarks first: the sum cancels less when the rows lie far from 0.
    """

    def __init__(
        self, landmarks: Floats, parameters: KernelParameters, dtype: np.dtype[Any], finish: Finish
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


def rbf(squared: Floats, p: KernelParameters) -> None:
    """exp(−γr²)."""
    squared *= squared.dtype.type(-p.gamma)
    np.exp(squared, out=squared)


def rational_quadratic(squared: Floats, p: KernelParameters) -> None:
    """(1 + γr²/α)^{−α}."""
    squared *= squared.dtype.type(p.gamma / p.alpha)
    np.log1p(squared, out=squared)
    squared *= squared.dtype.type(-p.alpha)
    np.exp(squared, out=squared)


def matern(squared: Floats, p: KernelParameters) -> None:
    """Of s = √(2νγ)·r: e^{−s}, (1 + s)e^{−s}, (1 + s + s²/3)e^{−s} for ν = ½, 3/2, 5/2; else Bessel's K_ν."""
    squared *= squared.dtype.type(2.0 * p.nu * p.gamma)
    s = np.sqrt(squared, out=squared)
    if p.nu not in (0.5, 1.5, 2.5):
        s[...] = _bessel(s, p.nu)
        return
    decay = np.exp(-s)
    if p.nu == 2.5:
        polynomial = s * s.dtype.type(1.0 / 3.0)
        polynomial += 1.0
        s *= polynomial
    if p.nu > 0.5:
        s += 1.0
        s *= decay
    else:
        s[...] = decay


# Where the kernel differs from 1 by less than s²/(4(ν − 1)) or s^{2ν}: nothing, in float64, for every ν above ½.
_NEAR = 1e-8


def _bessel(s: Floats, nu: float) -> Floats:
    """2^{1−ν}/Γ(ν)·s^ν K_ν(s), in float64."""
    from scipy.special import gammaln, kve

    positive = np.maximum(s.astype(np.float64), _NEAR)
    # by logarithms, and K_ν e^{s}: neither factor need be a number of float64
    logs = (1.0 - nu) * np.log(2.0) - gammaln(nu) + nu * np.log(positive) - positive
    values: Floats = np.exp(logs + np.log(kve(nu, positive)))
    return np.where(s < _NEAR, 1.0, values)
