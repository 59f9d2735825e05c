"""The contract of an additive homogeneous kernel: a sum over the columns of a kernel of two numbers.

k(x, y) = (xy)^{γ/2} 𝒦(log y/x) by its signature 𝒦(ω), and 𝒦(ω) = ∫ e^{−iωλ} κ(λ) dλ (Vedaldi & Zisserman 2012,
table 1). A map of order n has n frequencies, the multiples of L = 2π/Λ; Λ is its period in units of ω.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.maths.kernel import KernelParameters, TiledKernel, as_coordinates, find_kernel, kernel_names
from kafeat.types import Floats

# Rows at a time, so that the numbers between two passes stay in the cache.
_BLOCK = 64


class AdditiveKernel(TiledKernel):
    """Σ_i sgn(x_i y_i) (|x_i||y_i|)^{(γ−1)/2} k(|x_i|, |y_i|), γ the homogeneity, for kernels with k(x, x) = x."""

    needs_coordinates = True
    non_negative = True

    @abstractmethod
    def entry(self, x: Floats, y: Floats) -> Floats:
        """Return k(x, y) of numbers above 0."""

    @abstractmethod
    def signature(self, ratio: Floats) -> Floats:
        """Return 𝒦(ω) at ω = `ratio`."""

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        c = as_coordinates(inputs)
        total = np.zeros((len(c.x), len(c.y)))
        for x, y in zip(c.x.T, c.y.T, strict=True):
            # Only where both are not 0: histograms are mostly zeros, and the kernel of 0 is 0.
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
    """An additive kernel whose spectrum κ is a function, with the periods Λ(n) that suit two windows best.

    The periods are those of Vedaldi & Zisserman 2012, table 2.
    """

    @abstractmethod
    def spectrum(self, frequency: Floats) -> Floats:
        """Return κ(λ) at λ = `frequency`."""

    @abstractmethod
    def uniform_period(self, order: int) -> float:
        """Return the best Λ of a uniform window."""

    @abstractmethod
    def rectangular_period(self, order: int) -> float:
        """Return the best Λ of a rectangular window."""

    def period(self, window: str, order: int) -> float:
        """Return the default Λ, at least 1.

        One feature alone is a multiple of √(x^γ). For order 0 the uniform window therefore has Λ = 2πκ(0): then
        Lκ(0) = 1, and k̂(x, x) = k(x, x); the formula of the higher orders would give 1.72 k(x, x) for chi2.
        """
        if window != "uniform":
            return max(1.0, float(self.rectangular_period(order)))
        if order == 0:
            return 2.0 * np.pi * float(self.spectrum(np.zeros(1))[0])
        return max(1.0, float(self.uniform_period(order)))


def additive_names() -> tuple[str, ...]:
    """Return the names of the additive kernels, `chi2` for the additive one."""
    return tuple("chi2" if name == "additive_chi2" else name for name in kernel_names(AdditiveKernel))


def additive_kernel(name: str) -> AdditiveKernel:
    """Return the additive kernel of that name; `chi2` is the additive one here."""
    kernel = find_kernel("additive_chi2" if name == "chi2" else name)
    if not isinstance(kernel, AdditiveKernel):
        raise TypeError(f"{name} is no additive kernel")
    return kernel


def spectral_kernel(name: str) -> SpectralKernel:
    """Return the additive kernel of that name, which has a spectrum."""
    kernel = additive_kernel(name)
    if not isinstance(kernel, SpectralKernel):
        raise TypeError(f"the spectrum of {name} is no function")
    return kernel


def sech(x: Floats) -> Floats:
    """Return the hyperbolic secant."""
    decay = np.exp(-np.abs(x))  # 2e^{−x}/(1 + e^{−2x}) does not overflow
    result: Floats = 2.0 * decay / (1.0 + decay * decay)
    return result
