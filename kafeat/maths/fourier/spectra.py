"""Frequency distributions of shift-invariant kernels, and the ways to draw from them.

A continuous shift-invariant kernel is the characteristic function of its frequency distribution, k(x, y) =
E_ω[cos ω·(x − y)] (Bochner). The distribution is isotropic (a direction times a radius) or a product of distributions
of single coordinates. Frequencies are rows of an (m, d) array. `iid`, `orthogonal` and `qmc` give unbiased features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kafeat.errors import DataError
from kafeat.types import Floats

# SciPy has Sobol points of at most this many dimensions.
_MOST_SOBOL_DIMENSIONS = 21_201


# The largest mixing variable s, to prevent overflow. Even far smaller s give frequencies whose cosines look random.
_LARGEST_MIXING = 1e30


@dataclass(frozen=True)
class IsotropicDistribution:
    """ω = √γ·scale·√s·g with g ~ N(0, I). s is `inverse_mixing`(u) with u ~ U(0, 1), or 1 if `inverse_mixing` is None.

    `profile` is the kernel as a function of γ‖δ‖².
    """

    gamma: float
    scale: float
    profile: Callable[[Floats], Floats]
    inverse_mixing: Callable[[Floats], Floats] | None = None

    def _mixed(self, u: Floats) -> Floats:
        mixed: Floats = np.full(u.shape, np.sqrt(self.gamma) * self.scale)
        if self.inverse_mixing is None:
            return mixed
        with np.errstate(divide="ignore"):
            return mixed * np.sqrt(np.minimum(self.inverse_mixing(u), _LARGEST_MIXING))

    def radii(self, m: int, d: int, rng: np.random.Generator) -> Floats:
        """Return m draws of ‖ω‖ in d dimensions, one from each of m equally likely ranges, in random order."""
        u, v = ((rng.permutation(m) + rng.random(m)) / m for _ in range(2))
        return self._radii_at(u, v, d)

    def _radii_at(self, u: Floats, v: Floats, d: int) -> Floats:
        """Return ‖ω‖ in d dimensions for uniform u and v in (0, 1), which determine ‖g‖ and the mixing variable s."""
        from scipy.special import chdtri

        return self._mixed(v) * np.sqrt(chdtri(d, np.clip(u, 1e-300, None)))

    def iid(self, m: int, d: int, rng: np.random.Generator) -> Floats:
        """Return m independent draws of ω, (m, d)."""
        return self._mixed(_uniform((m, 1), rng)) * rng.standard_normal((m, d))

    def orthogonal(self, m: int, d: int, rng: np.random.Generator) -> Floats:
        """Return m frequencies (m, d): blocks of d orthogonal directions, each with its own norm (Yu et al. 2016).

        If m < d, a smaller m gives the first rows of the result for a larger m, up to rounding.
        """
        if m < d:
            of_directions, of_radii = rng.spawn(2)
            frequencies = frame(m, d, of_directions)
            # Sobol points are spread as evenly as the draws of `radii`, and the first ones do not depend on m.
            u, v = sobol(m, 2, of_radii).T
            frequencies *= self._radii_at(u, v, d)[:, None]
            return frequencies
        directions = [haar(d, rng) for _ in range(-(-m // d))]
        return np.concatenate(directions)[:m] * self.radii(m, d, rng)[:, None]

    def qmc(self, m: int, d: int, rng: np.random.Generator) -> Floats:
        """Return m quasi-random draws of ω, (m, d): inverse c.d.f. of scrambled Sobol points (Avron et al. 2016)."""
        from scipy.special import ndtri

        # The mixing variable needs one additional dimension.
        u = sobol(m, d + (self.inverse_mixing is not None), rng)
        return self._mixed(u[:, -1:]) * ndtri(u[:, :d])

    def kernel(self, differences: Floats) -> Floats:
        """Return k(δ) for rows δ (n, d), (n,)."""
        return self.profile(self.gamma * np.einsum("ij,ij->i", differences, differences))

    def scaled(self, factor: float) -> IsotropicDistribution:
        """Return the distribution of factor·ω. `factor` is above 0."""
        return replace(self, gamma=self.gamma * factor * factor)  # the square by itself might overflow


@dataclass(frozen=True)
class ProductDistribution:
    """Each coordinate of ω is `scale`·`inverse_cdf`(u), u ~ U(0, 1), independently.

    `log_kernel` is the logarithm of the kernel of one coordinate, as a function of δ_i·scale.
    """

    scale: float
    inverse_cdf: Callable[[Floats], Floats]
    log_kernel: Callable[[Floats], Floats]

    def iid(self, m: int, d: int, rng: np.random.Generator) -> Floats:
        return self.scale * self.inverse_cdf(_uniform((m, d), rng))

    def qmc(self, m: int, d: int, rng: np.random.Generator) -> Floats:
        return self.scale * self.inverse_cdf(sobol(m, d, rng))

    def kernel(self, differences: Floats) -> Floats:
        return np.exp(self.log_kernel(self.scale * differences).sum(axis=1))

    def scaled(self, factor: float) -> ProductDistribution:
        return replace(self, scale=self.scale * factor)


FrequencyDistribution = IsotropicDistribution | ProductDistribution


def _inside(u: Floats) -> Floats:
    """Clip numbers in [0, 1] away from both ends, where the inverse c.d.f. is infinite."""
    return np.clip(u, 2.0**-54, 1.0 - 2.0**-53)


def _uniform(shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    return _inside(rng.random(shape))


def sobol(m: int, d: int, rng: np.random.Generator) -> Floats:
    """Return the first m scrambled Sobol points in (0, 1)^d."""
    from scipy.stats import qmc

    if d > _MOST_SOBOL_DIMENSIONS:
        raise DataError(
            f"frequencies: qmc: expected at most {_MOST_SOBOL_DIMENSIONS:,} inputs, got {d:,}: "
            "choose frequencies: iid"
        )
    points: Floats = qmc.Sobol(d, scramble=True, rng=rng).random_base2(max(m - 1, 0).bit_length())[:m]
    return _inside(points)


def haar(d: int, rng: np.random.Generator) -> Floats:
    """Return a uniformly distributed d × d orthogonal matrix: Q of a Gaussian matrix QR, with diag(R) > 0."""
    q, r = np.linalg.qr(rng.standard_normal((d, d)))
    return q * np.sign(np.diag(r))


def frame(m: int, d: int, rng: np.random.Generator) -> Floats:
    """Return m < d orthonormal rows, (m, d), distributed like the first m of `haar`, in O(m·d) memory."""
    from scipy.linalg import qr

    # The transpose of a C array is in LAPACK's order, which lets LAPACK work in place.
    q, r = qr(rng.standard_normal((m, d)).T, overwrite_a=True, mode="economic", check_finite=False)
    q *= np.sign(np.diag(r))
    rows: Floats = q.T
    return rows


def inverse_cauchy(u: Floats) -> Floats:
    """Return the inverse c.d.f. of Cauchy(0, 1)."""
    return np.tan(np.pi * (u - 0.5))


def inverse_laplace(u: Floats) -> Floats:
    """Return the inverse c.d.f. of Laplace(0, 1)."""
    return -np.sign(u - 0.5) * np.log1p(-2.0 * np.abs(u - 0.5))


def inverse_sech(u: Floats) -> Floats:
    """Return the inverse c.d.f. of the density sech(πω)."""
    return np.log(np.tan(0.5 * np.pi * u)) / np.pi
