"""Homogeneous additive kernels by their signature 𝒦(ω), ω = log(y/x), and its spectrum κ(λ).

k(x, y) = (xy)^{γ/2} 𝒦(log y/x) and 𝒦(ω) = ∫ e^{−iωλ} κ(λ) dλ (Vedaldi & Zisserman 2012, table 1). A map of order n
has n frequencies, the multiples of L = 2π/Λ; Λ is its period in units of ω.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kafeat.maths.kernels import exact as kernels
from kafeat.types import Floats

Curve = Callable[[Floats], Floats]
Period = Callable[[int], float]


@dataclass(frozen=True)
class Signature:
    """𝒦, κ, and the periods Λ(n) that Vedaldi & Zisserman 2012 found best for two windows (their table 2)."""

    value: Curve
    spectrum: Curve
    uniform_period: Period
    rectangular_period: Period

    def period(self, window: str, order: int) -> float:
        """The default Λ, at least 1.

        One feature alone is a multiple of √(x^γ). For order 0 the uniform window therefore has Λ = 2πκ(0): then
        Lκ(0) = 1, and k̂(x, x) = k(x, x); the formula of the higher orders would give 1.72 k(x, x) for chi2.
        """
        if window != "uniform":
            return max(1.0, float(self.rectangular_period(order)))
        if order == 0:
            return 2.0 * np.pi * float(self.spectrum(np.zeros(1))[0])
        return max(1.0, float(self.uniform_period(order)))


def _sech(x: Floats) -> Floats:
    decay = np.exp(-np.abs(x))  # 2e^{−x}/(1 + e^{−2x}) does not overflow
    result: Floats = 2.0 * decay / (1.0 + decay * decay)
    return result


def chi2_spectrum(frequency: Floats) -> Floats:
    """κ(λ) = sech(πλ)."""
    return _sech(np.pi * frequency)


def intersection_spectrum(frequency: Floats) -> Floats:
    """κ(λ) = (2/π)/(1 + 4λ²)."""
    result: Floats = (2.0 / np.pi) / (1.0 + 4.0 * frequency**2)
    return result


def jensen_shannon_spectrum(frequency: Floats) -> Floats:
    """κ(λ) = (2/log 4) sech(πλ)/(1 + 4λ²)."""
    result: Floats = (2.0 / np.log(4.0)) * _sech(np.pi * frequency) / (1.0 + 4.0 * frequency**2)
    return result


SIGNATURES: dict[str, Signature] = {
    "chi2": Signature(
        kernels.chi2_signature,
        chi2_spectrum,
        lambda n: 5.86 * np.sqrt(n) + 3.65,
        lambda n: 8.80 * np.sqrt(n + 4.44) - 12.6,
    ),
    "intersection": Signature(
        kernels.intersection_signature,
        intersection_spectrum,
        lambda n: 2.38 * np.log(n + 0.8) + 5.6,
        lambda n: 2.00 * np.log(n + 0.99) + 3.52,
    ),
    "jensen_shannon": Signature(
        kernels.jensen_shannon_signature,
        jensen_shannon_spectrum,
        lambda n: 6.64 * np.sqrt(n) + 7.24,
        lambda n: 9.63 * np.sqrt(n + 1.0) - 2.93,
    ),
}
"""The kernels with a spectrum that is a function; that of hellinger, 𝒦 = 1, is a point mass: one feature is exact."""
