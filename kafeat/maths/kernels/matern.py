"""The Matérn kernel."""

from __future__ import annotations

import numpy as np

from kafeat.contract.kernel_inputs import Gram, KernelInputs
from kafeat.maths.fourier.spectra import IsotropicDistribution
from kafeat.maths.kernel import KernelParameters, ShiftInvariantKernel, TiledKernel, unit_gram
from kafeat.maths.kernel_tiles import KernelTile, Landmarks, Profile, distance_tile, profile_loop
from kafeat.types import Floats

# Bessel functions of larger orders overflow float64 where the kernel is not negligible.
_LARGE_ORDER = 50.0
# For smaller orders, the kernel is 0 beyond this argument. SciPy's Bessel function is NaN for much larger arguments.
_NOTHING_LEFT = 1e4
_FARTHEST = 1e300
_PROFILES: dict[float, Profile] = {0.5: "matern_1", 1.5: "matern_3", 2.5: "matern_5"}


class MaternKernel(ShiftInvariantKernel, TiledKernel):
    """2^{1−ν}/Γ(ν)·(√(2ν) r)^ν K_ν(√(2ν) r), r = √γ‖x − y‖."""

    distance = "matern"
    centred = True

    def gram(self, inputs: KernelInputs, p: KernelParameters) -> Gram:
        return unit_gram(matern_profile(p.gamma * inputs.squared_distances, p.nu))

    def frequencies(self, p: KernelParameters) -> IsotropicDistribution:
        """Return N(0, γ I)·√(2ν/χ²_{2ν}), one χ² per frequency."""
        from scipy.special import gammaincinv

        # χ²_{2ν} is twice a Gamma(ν) variable.
        return IsotropicDistribution(
            p.gamma, 1.0, lambda t: matern_profile(t, p.nu), lambda u: p.nu / gammaincinv(p.nu, u)
        )

    def tile(self, landmarks: Landmarks, p: KernelParameters) -> KernelTile:
        made = profile_loop(_PROFILES.get(p.nu), lambda scaled: _finish(scaled, p.nu), landmarks.dtype)
        return distance_tile(landmarks, 2.0 * p.nu * p.gamma, made)


def matern_profile(t: Floats, nu: float) -> Floats:
    """Return the Matérn kernel of t = γ‖x − y‖² = r², for example e^{−r} for ν = ½, (1 + √3 r)e^{−√3 r} for 3/2."""
    from scipy.special import gammaln, kve

    if nu > _LARGE_ORDER:
        return _matern_of_large_order(np.minimum(t, _FARTHEST), nu)
    s = np.clip(np.sqrt(2.0 * nu * t), np.finfo(np.float64).tiny, _NOTHING_LEFT)
    with np.errstate(over="ignore"):
        logs = (1.0 - nu) * np.log(2.0) - gammaln(nu) + nu * np.log(s) + np.log(kve(nu, s)) - s
    return np.where(t > 0.0, np.exp(np.minimum(logs, 0.0)), 1.0)


def _matern_of_large_order(t: Floats, nu: float) -> Floats:
    """Return the Matérn kernel by Debye's expansion of K_ν(νz), z² = 2t/ν, to third order, with an error below 1e-9.

    Source: NIST Digital Library of Mathematical Functions, 10.41.4 and 10.41.10.
    """
    square = 2.0 * t / nu
    root = np.sqrt(1.0 + square)
    excess = square / (1.0 + root)  # root − 1 without cancellation
    logs = nu * (np.log1p(excess / 2.0) - excess) - 0.5 * np.log(root)
    return np.exp(logs) * _debye_series(1.0 / root, nu) / _debye_series(np.ones(1), nu)


def _debye_series(p: Floats, nu: float) -> Floats:
    """Return Σ (−1)^k u_k(p)/ν^k, which at p = 1 (z = 0) is the series of Γ(ν)."""
    u1 = (3.0 * p - 5.0 * p**3) / 24.0
    u2 = (81.0 * p**2 - 462.0 * p**4 + 385.0 * p**6) / 1152.0
    u3 = (30375.0 * p**3 - 369603.0 * p**5 + 765765.0 * p**7 - 425425.0 * p**9) / 414720.0
    return 1.0 - u1 / nu + u2 / nu**2 - u3 / nu**3


def _finish(squared: Floats, nu: float) -> None:
    """Turn s² = 2νγr² into e^{−s}, (1 + s)e^{−s}, (1 + s + s²/3)e^{−s} for ν = ½, 3/2, 5/2. Others use Bessel's K_ν."""
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
