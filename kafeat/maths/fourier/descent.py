"""Gradient descent on frequencies and a linear model of their waves, in batches of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kafeat.maths.fourier.cosines import cos_sin
from kafeat.types import Array, Floats

BATCH = 128
# The rate rises like a sine for this share of the steps, and then falls like half a cosine.
_WARM_UP = 0.2
# Rows further from the middle than this many medians are pulled in while training: a few would lead it otherwise.
_FARTHEST = 3.0


def waves(X: Floats, frequencies: Floats, phases: Floats | None) -> Floats:
    """Return [cos ω_j·x, sin ω_j·x], or with phases cos(ω_j·x + b_j), in the dtype of X."""
    angles = X @ frequencies.T.astype(X.dtype)
    if phases is None:
        return cos_sin(angles)
    angles += phases.astype(X.dtype)
    return cos_sin(angles)[:, : len(frequencies)]


def gradients(
    W: Floats, V: Floats, b: Floats, x: Floats, y: Floats, phases: Floats | None
) -> tuple[Floats, Floats, Floats]:
    """Return the gradients of ½ mean ‖f(x)V + b − y‖² of a batch by W, V and b; f are the waves.

    With R the mean residuals times Vᵀ, that by the angles is R_sin·cos − R_cos·sin, and that by W its product with x.
    """
    m, angles = len(W), x @ W.T
    if phases is not None:
        angles += phases
    both = cos_sin(angles)
    cosines, sines = both[:, :m], both[:, m:]
    F = both if phases is None else cosines
    residual = (F @ V + b - y) / y.dtype.type(len(y))
    R = residual @ V.T
    by_angles = -sines * R[:, :m]
    if phases is None:
        by_angles += cosines * R[:, m:]
    return by_angles.T @ x, F.T @ residual, residual.sum(axis=0)


def cycle(t: float) -> float:
    """Return the rate at the share t of the way, relative to the largest."""
    if t < _WARM_UP:
        return float(np.sin(0.5 * np.pi * t / _WARM_UP))
    return float(0.5 * (1.0 + np.cos(np.pi * (t - _WARM_UP) / (1.0 - _WARM_UP))))


def batches(n: int, steps: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield the numbers of the rows of each batch: every row comes before one comes again."""
    order = rng.permutation(n)
    for _ in range(steps):
        if len(order) < BATCH:
            order = np.concatenate([order, rng.permutation(n)])
        yield order[:BATCH]
        order = order[BATCH:]


def pull_in(X: Floats) -> Floats:
    """Rows (n, d) around 0, none further off than `_FARTHEST` times the median."""
    lengths = np.sqrt((X.astype(np.float64) ** 2).sum(axis=1))
    farthest = _FARTHEST * float(np.median(lengths))
    if not farthest:
        return X
    near: Floats = X * (farthest / np.maximum(lengths, farthest))[:, None].astype(np.float32)
    return near


class Adam:
    """Steps of a few float32 arrays, each with its own rate, in place."""

    def __init__(self, arrays: list[Floats], rates: list[float]) -> None:
        self._arrays, self._rates = arrays, rates
        self._means, self._squares = ([np.zeros_like(a) for a in arrays] for _ in range(2))
        self._t = 0

    def step(self, gradients: list[Floats], factor: float) -> None:
        """Move every array against its gradient."""
        self._t += 1
        one, two = 1.0 - 0.9**self._t, 1.0 - 0.99**self._t
        for array, gradient, rate, mean, square in zip(
            self._arrays, gradients, self._rates, self._means, self._squares, strict=True
        ):
            mean += np.float32(0.1) * (gradient - mean)
            square += np.float32(0.01) * (gradient * gradient - square)
            size = np.sqrt(square)
            size *= np.float32(1.0 / np.sqrt(two))
            size += np.finfo(np.float32).tiny
            array -= np.float32(factor * rate / one) * (mean / size)
