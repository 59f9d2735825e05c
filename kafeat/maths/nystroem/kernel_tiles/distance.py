"""Kernels of the Euclidean distance: one matrix product, then a function of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kafeat.contract.kernel_inputs import distances
from kafeat.maths.kernels.exact import KernelParameters, matern_profile
from kafeat.maths.nystroem.kernel_tiles.base import KernelTile
from kafeat.types import Array, Floats

Finish = Callable[[Floats], None]
"""c·r² becomes the kernel, in place."""

# e^{−s} is 0 from there on, and ∞·0 would be no number.
_NOTHING_LEFT = 1e4


# Beyond that error of c‖x − l‖² in float64, differences are taken, which cost some ten times as much.
_MOST_CANCELLED = 1e-6


class DistanceTile(KernelTile):
    """A function of c‖x − l‖² = c‖x‖² + c‖l‖² − 2c x·l, all of it by one matrix product: [x, ‖x‖², 1]·[−2cl, c, c‖l‖²].

    Both sides are moved to `centre` first: the sum cancels less when the rows lie far from 0. Landmarks that are so far
    from it that float64 cancels too much are met by differences. Without a centre, as in files of format 1, it is the
    mean of the landmarks, and there are none of these.
    """

    def __init__(
        self,
        landmarks: Floats,
        parameters: KernelParameters,
        dtype: np.dtype[Any],
        factor: float,
        finish: Finish,
        centre: Floats | None,
    ) -> None:
        middle = np.asarray(landmarks, dtype=np.float64).mean(axis=0) if centre is None else centre
        self._centre = middle.astype(dtype)
        moved = landmarks.astype(np.float64) - self._centre
        super().__init__(moved, parameters, dtype)
        norms = np.einsum("ij,ij->i", moved, moved)
        # four terms of the size c‖l‖² where x is near l, and the kernel is not 0
        cancelled = 4.0 * float(np.finfo(np.float64).eps) * abs(factor) * norms
        self._far = np.flatnonzero(cancelled > (np.inf if centre is None else _MOST_CANCELLED))
        self._far_rows, self._factor = landmarks[self._far].astype(np.float64), factor
        both = np.vstack([-2.0 * factor * moved.T, np.full(len(moved), factor), factor * norms])
        self._both = np.ascontiguousarray(both, dtype=dtype)
        # rounding must not take r² below 0
        self._clip = np.maximum if factor > 0.0 else np.minimum
        self._finish = finish

    def scratch(self, rows: int) -> tuple[Array, ...]:
        return (np.ones((rows, len(self._both)), dtype=self._dtype),)

    def evaluate(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        (inputs,) = scratch
        moved = inputs[:, :-2]
        np.subtract(X, self._centre, out=moved)
        np.einsum("ij,ij->i", moved, moved, out=inputs[:, -2])
        np.matmul(inputs, self._both, out=out)
        self._clip(out, 0.0, out=out)
        if len(self._far):
            out[:, self._far] = self._factor * distances(X.astype(np.float64), self._far_rows, "sqeuclidean")
        self._finish(out)


def rbf(landmarks: Floats, p: KernelParameters, dtype: np.dtype[Any], centre: Floats | None) -> DistanceTile:
    """exp(−γr²)."""

    def finish(scaled: Floats) -> None:
        np.exp(scaled, out=scaled)

    return DistanceTile(landmarks, p, dtype, -p.gamma, finish, centre)


def rational_quadratic(
    landmarks: Floats, p: KernelParameters, dtype: np.dtype[Any], centre: Floats | None
) -> DistanceTile:
    """(1 + γr²/α)^{−α}."""

    def finish(scaled: Floats) -> None:
        np.log1p(scaled, out=scaled)
        scaled *= scaled.dtype.type(-p.alpha)
        np.exp(scaled, out=scaled)

    return DistanceTile(landmarks, p, dtype, p.gamma / p.alpha, finish, centre)


def matern(
    landmarks: Floats, p: KernelParameters, dtype: np.dtype[Any], centre: Floats | None
) -> DistanceTile:
    """Of s = √(2νγ)·r: e^{−s}, (1 + s)e^{−s}, (1 + s + s²/3)e^{−s} for ν = ½, 3/2, 5/2; else Bessel's K_ν."""

    def finish(scaled: Floats) -> None:
        _matern(scaled, p.nu)

    return DistanceTile(landmarks, p, dtype, 2.0 * p.nu * p.gamma, finish, centre)


def _matern(squared: Floats, nu: float) -> None:
    if nu not in (0.5, 1.5, 2.5):
        squared[...] = matern_profile(squared.astype(np.float64) / (2.0 * nu), nu)
        return
    s = np.sqrt(squared, out=squared)
    np.minimum(s, _NOTHING_LEFT, out=s)
    decay = np.exp(-s)
    if nu == 2.5:
        polynomial = s * s.dtype.type(1.0 / 3.0)
        polynomial += 1.0
        s *= polynomial
    if nu > 0.5:
        s += 1.0
        s *= decay
    else:
        s[...] = decay
