"""Kernels of histograms: additive homogeneous ones, and the exponential of the chi2 distance.

An additive homogeneous kernel is a sum over the columns of a kernel of two numbers,
k(x, y) = (xy)^{γ/2} 𝒦(log y/x) by its signature 𝒦(ω), and 𝒦(ω) = ∫ e^{−iωλ} κ(λ) dλ (Vedaldi & Zisserman 2012,
table 1). A map of order n has the n frequencies L, 2L, …, nL, with L = 2π/Λ. Its kernel has the period Λ in ω.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from kafeat.contract.checks import refuse_negative
from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.maths.kernel import KernelParameters, TiledKernel, as_coordinates, unit_gram
from kafeat.maths.kernel_tiles import (
    KernelTile,
    Landmarks,
    exponential,
    profile_loop,
    sums_tile,
)
from kafeat.types import Floats

# The number of rows per block, so that intermediate results stay in the cache.
_BLOCK = 64


class AdditiveKernel(TiledKernel):
    """Σ_i sgn(x_i y_i) (|x_i||y_i|)^{(γ−1)/2} k(|x_i|, |y_i|), γ the homogeneity, for kernels with k(x, x) = x."""

    needs_coordinates = True
    non_negative = True
    roots = True

    @abstractmethod
    def entry(self, x: Floats, y: Floats) -> Floats:
        """Return k(x, y) for numbers x and y above 0."""

    @abstractmethod
    def signature(self, ratio: Floats) -> Floats:
        """Return the signature 𝒦(ω) at ω = `ratio`."""

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        c = as_coordinates(inputs)
        total = np.zeros((len(c.x), len(c.y)))
        for x, y in zip(c.x.T, c.y.T, strict=True):
            # Only where both entries are nonzero: histograms are mostly zeros, and k(0, y) = k(x, 0) = 0.
            rows, columns = np.flatnonzero(x), np.flatnonzero(y)
            for block in np.split(rows, range(_BLOCK, len(rows), _BLOCK)):
                u, v = x[block][:, None], y[columns][None, :]
                values = self.entry(np.abs(u), np.abs(v)) * (np.sign(u) * np.sign(v))
                if p.homogeneity != 1.0:
                    values *= np.abs(u) ** ((p.homogeneity - 1.0) / 2.0) * np.abs(v) ** (
                        (p.homogeneity - 1.0) / 2.0
                    )
                total[np.ix_(block, columns)] += values
        return Gram(total, ((np.abs(c.x) ** p.homogeneity).sum(1), (np.abs(c.y) ** p.homogeneity).sum(1)))


class SpectralKernel(AdditiveKernel):
    """An additive kernel whose spectrum κ is a density, with the best periods Λ(n) for two windows.

    The periods are those of Vedaldi & Zisserman 2012, table 2.
    """

    @abstractmethod
    def spectrum(self, frequency: Floats) -> Floats:
        """Return the spectrum κ(λ) at λ = `frequency`."""

    @abstractmethod
    def periods(self, order: int) -> tuple[float, float]:
        """Return the best periods Λ of a uniform window and of a rectangular one."""

    def period(self, window: str, order: int) -> float:
        """Return the default period Λ, which is at least 1 for order 1 and above.

        For order 0, the single feature is a multiple of √(x^γ), and the uniform window has Λ = 2πκ(0). Then Lκ(0) = 1
        and k̂(x, x) = k(x, x), while the formula of the higher orders would give 1.72 k(x, x) for chi2.
        """
        if window != "uniform":
            return max(1.0, float(self.periods(order)[1]))
        if order == 0:
            return 2.0 * np.pi * float(self.spectrum(np.zeros(1))[0])
        return max(1.0, float(self.periods(order)[0]))


class AdditiveChi2Kernel(SpectralKernel):
    """Σ_i 2x_i y_i/(x_i + y_i), x, y ≥ 0."""

    def entry(self, x: Floats, y: Floats) -> Floats:
        return 2.0 * x / (x + y) * y

    def signature(self, ratio: Floats) -> Floats:
        """Return 𝒦(ω) = sech(ω/2)."""
        return 2.0 / (np.exp(-0.5 * np.abs(ratio)) * (np.exp(np.abs(ratio)) + 1.0))

    def spectrum(self, frequency: Floats) -> Floats:
        """Return κ(λ) = sech(πλ)."""
        return sech(np.pi * frequency)

    def periods(self, order: int) -> tuple[float, float]:
        return 5.86 * np.sqrt(order) + 3.65, 8.80 * np.sqrt(order + 4.44) - 12.6

    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        return sums_tile("harmonic", landmarks, lambda _, sums: np.add(sums, sums, out=sums))


class HellingerKernel(AdditiveKernel):
    """Σ_i √(x_i y_i), x, y ≥ 0."""

    def entry(self, x: Floats, y: Floats) -> Floats:
        return np.sqrt(x) * np.sqrt(y)

    def signature(self, ratio: Floats) -> Floats:
        """Return 𝒦(ω) = 1, whose spectrum is a point mass: one feature is exact."""
        return np.ones_like(ratio)

    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        return KernelTile(np.sqrt(landmarks.doubles), landmarks.dtype, self._write)

    @staticmethod
    def _write(X: Floats, roots: Floats, out: Floats, scratch: Floats) -> None:
        refuse_negative(X)
        np.matmul(np.sqrt(X, out=scratch[0]), roots.T, out=out)


class IntersectionKernel(SpectralKernel):
    """Σ_i min(x_i, y_i), x, y ≥ 0."""

    roots = False  # k-means uses x, not √x: the kernel's squared distance is Σ|x_i − y_i|

    def entry(self, x: Floats, y: Floats) -> Floats:
        return np.minimum(x, y)

    def signature(self, ratio: Floats) -> Floats:
        """Return 𝒦(ω) = e^{−|ω|/2}."""
        return np.exp(-0.5 * np.abs(ratio))

    def spectrum(self, frequency: Floats) -> Floats:
        """Return κ(λ) = (2/π)/(1 + 4λ²)."""
        return (2.0 / np.pi) / (1.0 + 4.0 * frequency**2)

    def periods(self, order: int) -> tuple[float, float]:
        return 2.38 * np.log(order + 0.8) + 5.6, 2.00 * np.log(order + 0.99) + 3.52

    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        return sums_tile("intersection", landmarks)


class JensenShannonKernel(SpectralKernel):
    """½ Σ_i x_i log₂((x_i + y_i)/x_i) + y_i log₂((x_i + y_i)/y_i), x, y ≥ 0. A term with the factor 0 is 0."""

    def entry(self, x: Floats, y: Floats) -> Floats:
        return 0.5 * (x * np.log2(1.0 + y / x) + y * np.log2(1.0 + x / y))

    def signature(self, ratio: Floats) -> Floats:
        """Return 𝒦(ω) = ½e^{ω/2} log₂(1 + e^{−ω}) + ½e^{−ω/2} log₂(1 + e^{ω})."""
        w = np.abs(ratio)
        near = np.log1p(np.exp(-w))  # log(1 + e^{-w}); log(1 + e^{w}) is larger by w
        return (0.5 * np.exp(0.5 * w) * near + 0.5 * np.exp(-0.5 * w) * (w + near)) / np.log(2.0)

    def spectrum(self, frequency: Floats) -> Floats:
        """Return κ(λ) = (2/log 4) sech(πλ)/(1 + 4λ²)."""
        return (2.0 / np.log(4.0)) * sech(np.pi * frequency) / (1.0 + 4.0 * frequency**2)

    def periods(self, order: int) -> tuple[float, float]:
        return 6.64 * np.sqrt(order) + 7.24, 9.63 * np.sqrt(order + 1.0) - 2.93

    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        return KernelTile(landmarks.rows, landmarks.dtype, self._write, 2)

    @staticmethod
    def _write(X: Floats, landmarks: Floats, out: Floats, scratch: Floats) -> None:
        """Write the kernel into `out` with one pass over the tile for each landmark."""
        refuse_negative(X)
        total, share = scratch
        tiny = np.finfo(out.dtype).tiny
        for j, landmark in enumerate(landmarks):
            np.add(X, landmark, out=total)
            np.maximum(total, tiny, out=total)
            for part, target in ((X, share), (landmark, total)):
                np.divide(part, total, out=target)
                np.maximum(target, tiny, out=target)
                np.log2(target, out=target)
                target *= part
            total += share
            total.sum(axis=1, out=out[:, j])
        out *= out.dtype.type(-0.5)


ADDITIVE: dict[str, AdditiveKernel] = {
    "chi2": AdditiveChi2Kernel(),
    "hellinger": HellingerKernel(),
    "intersection": IntersectionKernel(),
    "jensen_shannon": JensenShannonKernel(),
}
"""The additive kernels by the names that homogeneous maps use."""


def spectral_kernel(name: str) -> SpectralKernel:
    """Return the additive kernel of that name. It must have a spectrum."""
    kernel = ADDITIVE[name]
    if not isinstance(kernel, SpectralKernel):
        raise TypeError(f"the spectrum of {name} is not a function")
    return kernel


def sech(x: Floats) -> Floats:
    """Return the hyperbolic secant."""
    decay = np.exp(-np.abs(x))  # 2e^{−x}/(1 + e^{−2x}) does not overflow
    return 2.0 * decay / (1.0 + decay * decay)


class Chi2Kernel(TiledKernel):
    """exp(−γ Σ_i (x_i − y_i)²/(x_i + y_i)), x, y ≥ 0."""

    needs_coordinates = True
    distance = "chi2"
    non_negative = True
    roots = True

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        c = as_coordinates(inputs)
        # Σ(x − y)²/(x + y) = Σx + Σy − 2 Σ2xy/(x + y), but without cancellation for near rows
        distance = np.zeros((len(c.x), len(c.y)))
        for start in range(0, len(c.x), _BLOCK):
            block = distance[start : start + _BLOCK]
            for x, y in zip(c.x[start : start + _BLOCK].T, c.y.T, strict=True):
                total = x[:, None] + y[None, :]
                total[total == 0.0] = 1.0  # where x and y are 0, their difference is 0
                difference = x[:, None] - y[None, :]
                block += difference / total * difference  # a square might overflow
        return unit_gram(np.exp(-p.gamma * distance))

    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        dtype, exp = landmarks.dtype, profile_loop("gaussian", exponential, landmarks.dtype)
        of_landmarks = np.ascontiguousarray(landmarks.rows, dtype=dtype).sum(axis=1)

        def finish(X: Floats, sums: Floats) -> None:
            # (x − l)²/(x + l) = x + l − 4xl/(x + l)
            sums *= dtype.type(4.0)
            sums -= X.sum(axis=1)[:, None]
            sums -= of_landmarks
            sums *= dtype.type(p.gamma)
            exp(sums)

        return sums_tile("harmonic", landmarks, finish)
