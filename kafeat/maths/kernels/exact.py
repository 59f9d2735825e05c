"""Exact kernels, float64: short, slow and obviously right. They are the oracle of every map.

Each function takes a pair of samples and gives the Gram matrix of its kernel together with k(x, x), so that
kernels can be chained. γ, degree, c₀, ν and α are the fields of `KernelParameters`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kafeat.contract.kernel_inputs import Coordinates, Gram, KernelInputs, distances
from kafeat.types import Floats

# Rows at a time, so that what is between two passes stays in the cache.
_BLOCK = 64


@dataclass(frozen=True)
class KernelParameters:
    """The numbers that a kernel may depend on; each kernel reads its own."""

    gamma: float = 1.0
    degree: int = 2
    coef0: float = 1.0
    nu: float = 1.5
    alpha: float = 1.0
    skewedness: float = 1.0
    homogeneity: float = 1.0


@dataclass(frozen=True)
class Kernel:
    """A kernel by its function, what it needs to see, and the distance that a data-driven γ is read from."""

    gram: Callable[[KernelInputs, KernelParameters], Gram]
    needs_coordinates: bool
    distance: Literal["euclidean", "matern", "cityblock", "chi2", "none"]
    non_negative: bool = False


def _coordinates(pair: KernelInputs) -> Coordinates:
    if not isinstance(pair, Coordinates):
        raise TypeError("this kernel needs coordinates")
    return pair


def _unit(values: Floats) -> Gram:
    """A kernel with k(x, x) = 1."""
    return Gram(values, (np.ones(values.shape[0]), np.ones(values.shape[1])))


def rbf(pair: KernelInputs, p: KernelParameters) -> Gram:
    """exp(−γ‖x − y‖²)."""
    return _unit(rbf_profile(p.gamma * pair.squared_distances))


def rbf_profile(t: Floats) -> Floats:
    """exp(−t), t = γ‖x − y‖²."""
    return np.exp(-t)


def laplacian(pair: KernelInputs, p: KernelParameters) -> Gram:
    """exp(−γ‖x − y‖₁)."""
    c = _coordinates(pair)
    return _unit(np.exp(-p.gamma * distances(c.x, c.y, "cityblock")))


def cauchy(pair: KernelInputs, p: KernelParameters) -> Gram:
    """Π_i 1/(1 + γ(x_i − y_i)²)."""
    c = _coordinates(pair)
    logs = np.zeros((len(c.x), len(c.y)))
    for x, y in zip(c.x.T, c.y.T, strict=True):
        logs += np.log1p(p.gamma * (x[:, None] - y[None, :]) ** 2)
    return _unit(np.exp(-logs))


def matern(pair: KernelInputs, p: KernelParameters) -> Gram:
    """Matérn of r = √γ‖x − y‖: 2^{1−ν}/Γ(ν)·(√(2ν) r)^ν K_ν(√(2ν) r)."""
    return _unit(matern_profile(p.gamma * pair.squared_distances, p.nu))


def matern_profile(t: Floats, nu: float) -> Floats:
    """The Matérn kernel of t = γ‖x − y‖² = r²; ν = ½: e^{−r}, 3/2: (1 + √3 r)e^{−√3 r}, and so on."""
    from scipy.special import gammaln, kve

    if nu > _LARGE_ORDER:
        return _matern_of_large_order(np.minimum(t, _FARTHEST), nu)
    s = np.clip(np.sqrt(2.0 * nu * t), np.finfo(np.float64).tiny, _NOTHING_LEFT)
    with np.errstate(over="ignore"):
        logs = (1.0 - nu) * np.log(2.0) - gammaln(nu) + nu * np.log(s) + np.log(kve(nu, s)) - s
    return np.where(t > 0.0, np.exp(np.minimum(logs, 0.0)), 1.0)


# Bessel functions of higher orders are no numbers of float64 at arguments that matter.
_LARGE_ORDER = 50.0
# Below that order the kernel is 0 from this argument on, and far beyond it SciPy's Bessel function is NaN.
_NOTHING_LEFT = 1e4
_FARTHEST = 1e300


def _matern_of_large_order(t: Floats, nu: float) -> Floats:
    """By Debye's expansion of K_ν(νz), z² = 2t/ν, to the third order: off by less than 1e-9.

    Source: NIST Digital Library of Mathematical Functions, 10.41.4 and 10.41.10.
    """
    square = 2.0 * t / nu
    root = np.sqrt(1.0 + square)
    excess = square / (1.0 + root)  # root − 1 without cancellation
    logs = nu * (np.log1p(excess / 2.0) - excess) - 0.5 * np.log(root)
    result: Floats = np.exp(logs) * _debye_series(1.0 / root, nu) / _debye_series(np.ones(1), nu)
    return result


def _debye_series(p: Floats, nu: float) -> Floats:
    """Σ (−1)^k u_k(p)/ν^k; at p = 1, which is z = 0, that of Γ(ν)."""
    u1 = (3.0 * p - 5.0 * p**3) / 24.0
    u2 = (81.0 * p**2 - 462.0 * p**4 + 385.0 * p**6) / 1152.0
    u3 = (30375.0 * p**3 - 369603.0 * p**5 + 765765.0 * p**7 - 425425.0 * p**9) / 414720.0
    total: Floats = 1.0 - u1 / nu + u2 / nu**2 - u3 / nu**3
    return total


def rational_quadratic(pair: KernelInputs, p: KernelParameters) -> Gram:
    """(1 + γ‖x − y‖²/α)^{−α}."""
    return _unit(rational_quadratic_profile(p.gamma * pair.squared_distances, p.alpha))


def rational_quadratic_profile(t: Floats, alpha: float) -> Floats:
    """(1 + t/α)^{−α}, t = γ‖x − y‖²."""
    values: Floats = np.exp(-alpha * np.log1p(t / alpha))
    return values


def skewed_chi2(pair: KernelInputs, p: KernelParameters) -> Gram:
    """Π_i 2√(x_i + c)√(y_i + c)/(x_i + y_i + 2c)."""
    c = _coordinates(pair)
    logs = np.zeros((len(c.x), len(c.y)))
    for x, y in zip(c.x.T + p.skewedness, c.y.T + p.skewedness, strict=True):
        logs += np.log(2.0 * np.sqrt(x[:, None] * y[None, :]) / (x[:, None] + y[None, :]))
    return _unit(np.exp(logs))


def skewed_intersection(pair: KernelInputs, p: KernelParameters) -> Gram:
    """Π_i min(√((x_i + c)/(y_i + c)), √((y_i + c)/(x_i + c)))."""
    c = _coordinates(pair)
    return _unit(
        np.exp(-0.5 * distances(np.log(c.x + p.skewedness), np.log(c.y + p.skewedness), "cityblock"))
    )


def linear(pair: KernelInputs, _: KernelParameters) -> Gram:
    """x·y."""
    return Gram(pair.dots, pair.squared_norms)


def cosine(pair: KernelInputs, _: KernelParameters) -> Gram:
    """x·y/(‖x‖‖y‖), and 0 where one of them is 0."""
    x, y = (np.sqrt(norms) for norms in pair.squared_norms)
    scale = np.where(x > 0, x, np.inf)[:, None] * np.where(y > 0, y, np.inf)[None, :]
    return Gram(pair.dots / scale, ((x > 0).astype(float), (y > 0).astype(float)))


def polynomial(pair: KernelInputs, p: KernelParameters) -> Gram:
    """(γ x·y + c₀)^degree."""
    x, y = pair.squared_norms

    def power(dots: Floats) -> Floats:
        return (p.gamma * dots + p.coef0) ** p.degree

    return Gram(power(pair.dots), (power(x), power(y)))


def sigmoid(pair: KernelInputs, p: KernelParameters) -> Gram:
    """tanh(γ x·y + c₀): not positive definite."""
    x, y = pair.squared_norms

    def squash(dots: Floats) -> Floats:
        result: Floats = np.tanh(p.gamma * dots + p.coef0)
        return result

    return Gram(squash(pair.dots), (squash(x), squash(y)))


def chi2(pair: KernelInputs, p: KernelParameters) -> Gram:
    """exp(−γ Σ_i (x_i − y_i)²/(x_i + y_i)), x, y ≥ 0."""
    c = _coordinates(pair)
    # Σ(x − y)²/(x + y) = Σx + Σy − 2 Σ2xy/(x + y), but without cancellation for near rows
    distance = np.zeros((len(c.x), len(c.y)))
    for start in range(0, len(c.x), _BLOCK):
        block = distance[start : start + _BLOCK]
        for x, y in zip(c.x[start : start + _BLOCK].T, c.y.T, strict=True):
            total = x[:, None] + y[None, :]
            total[total == 0.0] = 1.0  # where both are 0, the difference is
            apart = x[:, None] - y[None, :]
            block += apart / total * apart  # a square might not be a number
    return _unit(np.exp(-p.gamma * distance))


def _additive(pair: KernelInputs, p: KernelParameters, entry: Callable[[Floats, Floats], Floats]) -> Gram:
    """Σ_i sgn(x_i y_i) (|x_i||y_i|)^{(γ−1)/2} k(|x_i|, |y_i|), γ the homogeneity; all four have k(x, x) = x."""
    c = _coordinates(pair)
    total = np.zeros((len(c.x), len(c.y)))
    for x, y in zip(c.x.T, c.y.T, strict=True):
        # Only where both are not 0: histograms are mostly zeros, and the kernel of 0 is 0.
        rows, columns = np.flatnonzero(x), np.flatnonzero(y)
        for block in np.split(rows, range(_BLOCK, len(rows), _BLOCK)):
            u, v = x[block][:, None], y[columns][None, :]
            values = entry(np.abs(u), np.abs(v)) * (np.sign(u) * np.sign(v))
            if p.homogeneity != 1.0:
                values *= np.abs(u) ** ((p.homogeneity - 1.0) / 2.0) * np.abs(v) ** (
                    (p.homogeneity - 1.0) / 2.0
                )
            total[np.ix_(block, columns)] += values
    return Gram(total, ((np.abs(c.x) ** p.homogeneity).sum(1), (np.abs(c.y) ** p.homogeneity).sum(1)))


def _additive_chi2(x: Floats, y: Floats) -> Floats:
    """2xy/(x + y)."""
    return 2.0 * x / (x + y) * y


def _hellinger(x: Floats, y: Floats) -> Floats:
    """√(xy)."""
    return np.sqrt(x) * np.sqrt(y)


def _jensen_shannon(x: Floats, y: Floats) -> Floats:
    """½x log₂((x + y)/x) + ½y log₂((x + y)/y)."""
    return 0.5 * (x * np.log2(1.0 + y / x) + y * np.log2(1.0 + x / y))


def chi2_signature(ratio: Floats) -> Floats:
    """𝒦(ω) = sech(ω/2), of 2xy/(x + y)."""
    return 2.0 / (np.exp(-0.5 * np.abs(ratio)) * (np.exp(np.abs(ratio)) + 1.0))


def intersection_signature(ratio: Floats) -> Floats:
    """𝒦(ω) = e^{−|ω|/2}, of min(x, y)."""
    return np.exp(-0.5 * np.abs(ratio))


def jensen_shannon_signature(ratio: Floats) -> Floats:
    """𝒦(ω) = ½e^{ω/2} log₂(1 + e^{−ω}) + ½e^{−ω/2} log₂(1 + e^{ω})."""
    w = np.abs(ratio)
    near = np.log1p(np.exp(-w))  # log(1 + e^{-w}); log(1 + e^{w}) is w more
    result: Floats = (0.5 * np.exp(0.5 * w) * near + 0.5 * np.exp(-0.5 * w) * (w + near)) / np.log(2.0)
    return result


def hellinger_signature(ratio: Floats) -> Floats:
    """𝒦(ω) = 1, of √(xy)."""
    return np.ones_like(ratio)


SIGNATURES: dict[str, Callable[[Floats], Floats]] = {
    "chi2": chi2_signature,
    "intersection": intersection_signature,
    "jensen_shannon": jensen_shannon_signature,
    "hellinger": hellinger_signature,
}


_ENTRIES: dict[str, Callable[[Floats, Floats], Floats]] = {
    "chi2": _additive_chi2,
    "intersection": np.minimum,
    "jensen_shannon": _jensen_shannon,
    "hellinger": _hellinger,
}


def additive(name: str) -> Callable[[KernelInputs, KernelParameters], Gram]:
    """The additive homogeneous kernel of that name."""
    return lambda pair, p: _additive(pair, p, _ENTRIES[name])


KERNELS: dict[str, Kernel] = {
    "rbf": Kernel(rbf, False, "euclidean"),
    "laplacian": Kernel(laplacian, True, "cityblock"),
    "cauchy": Kernel(cauchy, True, "euclidean"),
    "matern": Kernel(matern, False, "matern"),
    "rational_quadratic": Kernel(rational_quadratic, False, "euclidean"),
    "linear": Kernel(linear, False, "none"),
    "cosine": Kernel(cosine, False, "none"),
    "polynomial": Kernel(polynomial, False, "none"),
    "sigmoid": Kernel(sigmoid, False, "none"),
    "chi2": Kernel(chi2, True, "chi2", non_negative=True),
    "additive_chi2": Kernel(additive("chi2"), True, "none", non_negative=True),
    "intersection": Kernel(additive("intersection"), True, "none", non_negative=True),
    "jensen_shannon": Kernel(additive("jensen_shannon"), True, "none", non_negative=True),
    "hellinger": Kernel(additive("hellinger"), True, "none", non_negative=True),
}


def exponential(pair: KernelInputs, p: KernelParameters) -> Gram:
    """exp(γ x·y)."""
    x, y = pair.squared_norms

    def power(dots: Floats) -> Floats:
        result: Floats = np.exp(p.gamma * dots)
        return result

    return Gram(power(pair.dots), (power(x), power(y)))


def arc_cosine(order: Literal[0, 1]) -> Callable[[KernelInputs, KernelParameters], Gram]:
    """Order 0: 1 − θ/π; order 1: ‖x‖‖y‖(sin θ + (π − θ) cos θ)/π; θ the angle, π/2 where a row is 0."""

    def gram(pair: KernelInputs, _: KernelParameters) -> Gram:
        x, y = (np.sqrt(norms) for norms in pair.squared_norms)
        lengths = x[:, None] * y[None, :]
        # sin²(θ/2) from distances: an arc cosine would lose half of the digits of a small angle.
        chords = pair.squared_distances - (x[:, None] - y[None, :]) ** 2
        half = np.divide(chords, 4.0 * lengths, out=np.full_like(lengths, 0.5), where=lengths > 0)
        half = np.clip(half, 0.0, 1.0)
        angles = 2.0 * np.arctan2(np.sqrt(half), np.sqrt(1.0 - half))
        if order == 0:
            diagonals = tuple(np.where(norms > 0, 1.0, 0.5) for norms in (x, y))
            return Gram(1.0 - angles / np.pi, (diagonals[0], diagonals[1]))
        values = lengths * (np.sin(angles) + (np.pi - angles) * np.cos(angles)) / np.pi
        return Gram(values, pair.squared_norms)

    return gram
