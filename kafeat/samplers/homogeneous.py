"""Explicit maps of homogeneous additive kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from kafeat import kernels
from kafeat.domain import refuse_negative
from kafeat.kernels import KernelParameters
from kafeat.pair import Pair
from kafeat.step import PositiveFloat, Sample, Step, Transform, parameter
from kafeat.types import Array, Floats, Shape, State


class Homogeneous(Step):
    """Homogeneous kernel map: z(x)·z(y) ≈ Σ_i (x_i y_i)^{γ/2} sech(log(y_i/x_i)/2), for γ = 1 Σ 2xy/(x + y).

    The kernel depends on the ratio y/x through its signature 𝒦 alone; sampling the spectrum of 𝒦 at jL, L = 2π/Λ,
    gives Ψ(x) = √(x^γ) [√κ₀, √(2κ_j) cos(jL log x), √(2κ_j) sin(jL log x)], j = 1..n: 2n + 1 outputs per input and
    Ψ(0) = 0. The error is known in closed form over log(y/x) and falls fast with the order n. Outputs come in blocks:
    Ψ₀ of every input, then cosine and sine of the first frequency, and so on.

    Source: Vedaldi & Zisserman 2012, equations 15 (uniform window) and 18 (rectangular), table 2 (periods).
    """

    kernel: Literal["chi2"] = parameter("chi2", "the additive kernel to approximate")
    order: Annotated[int, Field(ge=0, le=1000)] = parameter(1, "n; there are 2n + 1 outputs per input")
    homogeneity: PositiveFloat = parameter(1.0, "γ: scaling the inputs by s scales the kernel by s^γ")
    window: Literal["uniform", "rectangular"] = parameter(
        "rectangular", "coefficients sampled from the spectrum, or of the signature cut to one period"
    )
    period: Annotated[float, Field(ge=1)] | None = parameter(
        None, "Λ, in units of log(y/x); null: by the order"
    )
    negative: Literal["error", "signed"] = parameter(
        "error", "refuse negative inputs, or map them to -Ψ(|x|)"
    )

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        if self.negative == "error":
            refuse_negative(sample.X)
        period = self.period or max(1.0, _PERIODS[self.window](self.order))
        frequencies, coefficients = _COEFFICIENTS[self.window](self.order, 2.0 * np.pi / period)
        return {"frequencies": frequencies, "coefficients": coefficients}

    def state_shapes(self, state: State, n_features_in: int) -> Mapping[str, Shape]:
        return {"frequencies": (self.order,), "coefficients": (self.order + 1,)}

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return _HomogeneousTransform(self, state, n_features_in, dtype)

    def exact(self, state: State, pair: Pair) -> Pair:
        return kernels.additive(self.kernel)(pair, KernelParameters(homogeneity=self.homogeneity))


# Λ by the order n: Vedaldi & Zisserman 2012, table 2.
_PERIODS: dict[str, Callable[[int], float]] = {
    "uniform": lambda n: 5.86 * np.sqrt(n) + 3.65,
    "rectangular": lambda n: 8.80 * np.sqrt(n + 4.44) - 12.6,
}


def _uniform(order: int, step: float) -> tuple[Floats, Floats]:
    """jL and κ(jL)·L: samples of the spectrum, sech(πλ) for chi2."""
    frequencies = step * np.arange(order + 1)
    # sech(πλ) = 2e^{−πλ}/(1 + e^{−2πλ}), which does not overflow
    decay = np.exp(-np.pi * frequencies)
    return frequencies[1:], step * 2.0 * decay / (1.0 + decay**2)


def _rectangular(order: int, step: float) -> tuple[Floats, Floats]:
    """Fourier coefficients of the signature cut to one period; those that are not positive are passed over."""
    from scipy.integrate import quad

    def signature(ratio: float) -> float:
        return float(kernels.chi2_signature(np.asarray(ratio)))

    half = np.pi / step
    found: list[tuple[float, float]] = []
    j = 0
    while len(found) <= order:
        # The "cos" weight is quadrature for oscillating integrands; at frequency 0 it is the plain integral.
        value = quad(signature, 0.0, half, weight="cos", wvar=j * step, limit=200)[0] / half
        if value > 0.0 or j == 0 or j > 4 * order + 8:
            found.append((j * step, max(value, 0.0)))
        j += 1
    frequencies, coefficients = np.array(found).T
    return frequencies[1:], coefficients


_COEFFICIENTS = {"uniform": _uniform, "rectangular": _rectangular}


class _HomogeneousTransform(Transform):
    """One logarithm and one square root per entry; the rest are cosines and sines in cache."""

    def __init__(self, recipe: Homogeneous, state: State, n_features: int, dtype: np.dtype[Any]) -> None:
        self.n_features_in = n_features
        self.n_features_out = n_features * (2 * recipe.order + 1)
        coefficients = state["coefficients"].copy()
        coefficients[1:] *= 2.0
        self._amplitudes = np.sqrt(coefficients).astype(dtype)
        self._frequencies = state["frequencies"].astype(dtype)
        self._exponent = recipe.homogeneity / 2.0
        self._signed = recipe.negative == "signed"
        self._dtype = dtype

    def scratch(self, rows: int) -> tuple[Array, ...]:
        return tuple(np.empty((rows, self.n_features_in), dtype=self._dtype) for _ in range(3))

    def apply(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        root, logs, angles = scratch
        if self._signed:
            np.abs(X, out=logs)
        else:
            refuse_negative(X)
            logs[...] = X
        if self._exponent == 0.5:
            np.sqrt(logs, out=root)
        else:
            np.power(logs, self._exponent, out=root)
        if self._signed:
            np.copysign(root, X, out=root)
        # log 0 would be −∞ and 0·cos(∞) not a number; the square root is 0 there, so any finite logarithm does.
        np.maximum(logs, np.finfo(self._dtype).smallest_subnormal, out=logs)
        np.log(logs, out=logs)
        d = self.n_features_in
        np.multiply(root, self._amplitudes[0], out=out[:, :d])
        for j, (frequency, amplitude) in enumerate(zip(self._frequencies, self._amplitudes[1:], strict=True)):
            np.multiply(logs, frequency, out=angles)
            for block, wave in ((2 * j + 1, np.cos), (2 * j + 2, np.sin)):
                part = out[:, block * d : (block + 1) * d]
                wave(angles, out=part)
                part *= root
                part *= amplitude
