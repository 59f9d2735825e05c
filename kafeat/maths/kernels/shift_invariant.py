"""Kernels of x − y, or of log(x + c) − log(y + c), with their frequency distributions, except `matern`."""

from __future__ import annotations

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs, distances
from kafeat.maths.fourier.spectra import (
    IsotropicDistribution,
    ProductDistribution,
    inverse_cauchy,
    inverse_laplace,
    inverse_sech,
)
from kafeat.maths.kernel import (
    DifferentiableKernel,
    Kernel,
    KernelParameters,
    ShiftInvariantKernel,
    TiledKernel,
    as_coordinates,
    unit_gram,
)
from kafeat.maths.kernel_tiles import (
    KernelTile,
    Landmarks,
    distance_tile,
    exponential,
    profile_loop,
    sums_tile,
)
from kafeat.types import Floats


class RbfKernel(ShiftInvariantKernel, TiledKernel, DifferentiableKernel):
    """exp(−γ‖x − y‖²)."""

    distance = "euclidean"
    centred = True

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        return unit_gram(_gaussian(p.gamma * inputs.squared_distances))

    def frequencies(self, p: KernelParameters) -> IsotropicDistribution:
        """Return the frequency distribution N(0, 2γ I)."""
        return IsotropicDistribution(p.gamma, float(np.sqrt(2.0)), _gaussian)

    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        return distance_tile(landmarks, -p.gamma, profile_loop("gaussian", exponential, landmarks.dtype))

    def with_slope(self, squared: Floats, p: KernelParameters) -> tuple[Floats, Floats]:
        K = np.exp(-p.gamma * squared)
        return K, -p.gamma * K


def _gaussian(t: Floats) -> Floats:
    """Return exp(−t) for t = γ‖x − y‖²."""
    return np.exp(-t)


class RationalQuadraticKernel(ShiftInvariantKernel, TiledKernel, DifferentiableKernel):
    """(1 + γ‖x − y‖²/α)^{−α}."""

    distance = "euclidean"
    centred = True

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        return unit_gram(_rational(p.gamma * inputs.squared_distances, p.alpha))

    def frequencies(self, p: KernelParameters) -> IsotropicDistribution:
        """Return N(0, 2γs I), s ~ Gamma(shape α, rate α), one s per frequency."""
        from scipy.special import gammaincinv

        return IsotropicDistribution(
            p.gamma,
            float(np.sqrt(2.0)),
            lambda t: _rational(t, p.alpha),
            lambda u: gammaincinv(p.alpha, u) / p.alpha,
        )

    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        def finish(scaled: Floats) -> None:
            np.log1p(scaled, out=scaled)
            scaled *= scaled.dtype.type(-p.alpha)
            np.exp(scaled, out=scaled)

        made = profile_loop("rational_quadratic", finish, landmarks.dtype, p.alpha)
        return distance_tile(landmarks, p.gamma / p.alpha, made)

    def with_slope(self, squared: Floats, p: KernelParameters) -> tuple[Floats, Floats]:
        base = 1.0 + p.gamma / p.alpha * squared
        K = base**-p.alpha
        return K, -p.gamma * K / base


def _rational(t: Floats, alpha: float) -> Floats:
    """Return (1 + t/α)^{−α} for t = γ‖x − y‖²."""
    return np.exp(-alpha * np.log1p(t / alpha))


class LaplacianKernel(ShiftInvariantKernel, TiledKernel):
    """exp(−γ‖x − y‖₁)."""

    needs_coordinates = True
    distance = "cityblock"

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        c = as_coordinates(inputs)
        return unit_gram(np.exp(-p.gamma * distances(c.x, c.y, "cityblock")))

    def frequencies(self, p: KernelParameters) -> ProductDistribution:
        """Return Cauchy(0, γ) for each coordinate of a frequency."""
        return ProductDistribution(p.gamma, inverse_cauchy, lambda t: -np.abs(t))

    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        exp = profile_loop("gaussian", exponential, landmarks.dtype)

        def finish(_: Floats, sums: Floats) -> None:
            sums *= sums.dtype.type(-p.gamma)
            exp(sums)

        return sums_tile("cityblock", landmarks, finish)


class CauchyKernel(ShiftInvariantKernel):
    """Π_i 1/(1 + γ(x_i − y_i)²)."""

    needs_coordinates = True
    distance = "euclidean"

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        c = as_coordinates(inputs)
        logs = np.zeros((len(c.x), len(c.y)))
        for x, y in zip(c.x.T, c.y.T, strict=True):
            logs += np.log1p(p.gamma * (x[:, None] - y[None, :]) ** 2)
        return unit_gram(np.exp(-logs))

    def frequencies(self, p: KernelParameters) -> ProductDistribution:
        """Return Laplace(0, √γ) for each coordinate of a frequency."""
        return ProductDistribution(float(np.sqrt(p.gamma)), inverse_laplace, lambda t: -np.log1p(t * t))


class SkewedChi2Kernel(Kernel):
    """Π_i 2√(x_i + c)√(y_i + c)/(x_i + y_i + 2c), which is Π sech(δ_i/2) of δ = log(x + c) − log(y + c)."""

    needs_coordinates = True

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        c = as_coordinates(inputs)
        logs = np.zeros((len(c.x), len(c.y)))
        for x, y in zip(c.x.T + p.skewedness, c.y.T + p.skewedness, strict=True):
            logs += np.log(2.0 * np.sqrt(x[:, None] * y[None, :]) / (x[:, None] + y[None, :]))
        return unit_gram(np.exp(logs))

    def log_frequencies(self) -> ProductDistribution:
        """Return the density sech(πω) for each coordinate of a frequency of log(x + c)."""
        return ProductDistribution(1.0, inverse_sech, _log_sech_of_half)


def _log_sech_of_half(t: Floats) -> Floats:
    half = 0.5 * np.abs(t)
    return np.log(2.0) - half - np.log1p(np.exp(-2.0 * half))


class SkewedIntersectionKernel(Kernel):
    """Π_i min(√((x_i + c)/(y_i + c)), √((y_i + c)/(x_i + c))), which is exp(−½‖log(x + c) − log(y + c)‖₁)."""

    needs_coordinates = True

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        c = as_coordinates(inputs)
        return unit_gram(
            np.exp(-0.5 * distances(np.log(c.x + p.skewedness), np.log(c.y + p.skewedness), "cityblock"))
        )

    def log_frequencies(self) -> ProductDistribution:
        """Return Cauchy(0, ½) for each coordinate of a frequency of log(x + c)."""
        return ProductDistribution(0.5, inverse_cauchy, lambda t: -np.abs(t))
