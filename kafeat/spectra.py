"""Frequency laws of shift-invariant kernels, and the ways to draw from them.

A continuous shift-invariant kernel is the characteristic function of its frequency law,
k(x, y) = E_ω[cos ω·(x − y)] (Bochner). A law is isotropic (a direction times a radius) or a product of one
law per coordinate. Frequencies come as rows of an (m, d) array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kafeat.types import Floats

Mixing = Callable[[int, np.random.Generator], Floats]


@dataclass(frozen=True)
class Isotropic:
    """ω = √γ · scale · s^½ · g with g ~ N(0, I) and s an independent mixing variable (none for rbf)."""

    scale: float
    mixing: Mixing | None = None

    def radii(self, m: int, d: int, gamma: float, rng: np.random.Generator) -> Floats:
        """m independent draws of ‖ω‖ in d dimensions."""
        chi = np.sqrt(rng.chisquare(d, size=m))
        mixed = chi if self.mixing is None else chi * np.sqrt(self.mixing(m, rng))
        return float(np.sqrt(gamma)) * self.scale * mixed

    def iid(self, m: int, d: int, gamma: float, rng: np.random.Generator) -> Floats:
        """m independent draws of ω."""
        mixed = 1.0 if self.mixing is None else np.sqrt(self.mixing(m, rng))[:, None]
        result: Floats = np.sqrt(gamma) * self.scale * mixed * rng.standard_normal((m, d))
        return result

    def orthogonal(self, m: int, d: int, gamma: float, rng: np.random.Generator) -> Floats:
        """Blocks of d orthogonal directions, each with a norm of its own (Yu et al. 2016)."""
        directions = [haar(d, rng) for _ in range(-(-m // d))]
        return np.concatenate(directions)[:m] * self.radii(m, d, gamma, rng)[:, None]


@dataclass(frozen=True)
class Product:
    """Each coordinate of ω independently from `inverse_cdf`(u), u ~ U(0, 1), times γ^`power`."""

    inverse_cdf: Callable[[Floats], Floats]
    power: float

    def iid(self, m: int, d: int, gamma: float, rng: np.random.Generator) -> Floats:
        """m independent draws of ω."""
        # 1 − u is uniform on (0, 1]; the half step keeps off both ends, where the inverses are infinite.
        u = np.clip(rng.random((m, d)), 2.0**-54, 1.0 - 2.0**-53)
        result: Floats = gamma**self.power * self.inverse_cdf(u)
        return result


Law = Isotropic | Product


def haar(d: int, rng: np.random.Generator) -> Floats:
    """A uniformly distributed d × d orthogonal matrix: QR of a Gaussian one, with the signs of R undone."""
    q, r = np.linalg.qr(rng.standard_normal((d, d)))
    return q * np.sign(np.diag(r))


def inverse_cauchy(u: Floats) -> Floats:
    """Inverse c.d.f. of Cauchy(0, 1)."""
    result: Floats = np.tan(np.pi * (u - 0.5))
    return result


def inverse_laplace(u: Floats) -> Floats:
    """Inverse c.d.f. of Laplace(0, 1)."""
    result: Floats = -np.sign(u - 0.5) * np.log1p(-2.0 * np.abs(u - 0.5))
    return result


def inverse_sech(u: Floats) -> Floats:
    """Inverse c.d.f. of the density sech(πω)."""
    result: Floats = np.log(np.tan(0.5 * np.pi * u)) / np.pi
    return result


def rbf() -> Isotropic:
    """exp(−γ‖δ‖²): N(0, 2γ I)."""
    return Isotropic(np.sqrt(2.0))


def matern(nu: float) -> Isotropic:
    """Matérn of √γ‖δ‖: N(0, γ I)·√(2ν/χ²_{2ν}), one χ² per frequency."""
    return Isotropic(1.0, lambda m, rng: 2.0 * nu / rng.chisquare(2.0 * nu, size=m))


def rational_quadratic(alpha: float) -> Isotropic:
    """(1 + γ‖δ‖²/α)^{−α}: N(0, 2γs I), s ~ Gamma(shape α, rate α), one s per frequency."""
    return Isotropic(np.sqrt(2.0), lambda m, rng: rng.gamma(alpha, 1.0 / alpha, size=m))


def laplacian() -> Product:
    """exp(−γ‖δ‖₁): each coordinate Cauchy(0, γ)."""
    return Product(inverse_cauchy, 1.0)


def cauchy() -> Product:
    """Π 1/(1 + γδ_i²): each coordinate Laplace(0, √γ)."""
    return Product(inverse_laplace, 0.5)


def skewed_chi2() -> Product:
    """The skewed chi2 kernel on log(x + c): density sech(πω) in each coordinate (γ = 1)."""
    return Product(inverse_sech, 0.0)


def skewed_intersection() -> Product:
    """The skewed intersection kernel on log(x + c): Cauchy(0, ½) in each coordinate (γ = ½)."""
    return Product(inverse_cauchy, 1.0)
