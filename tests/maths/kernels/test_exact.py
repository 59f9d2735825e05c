"""The oracle itself, against formulas on single numbers and against scikit-learn."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from math import asin, cos, exp, log2, pi, sin, sqrt, tanh

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln
from sklearn.gaussian_process.kernels import Matern

from kafeat.contract.kernel_inputs import Coordinates, Gram
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels import find_kernel, kernel_names
from kafeat.maths.kernels.histograms import AdditiveChi2Kernel, AdditiveKernel
from kafeat.maths.kernels.matern import MaternKernel, matern_profile

POWERS = {"coefficients": (0.5, 0.0, 2.0, 0.1)}
P = KernelParameters(gamma=0.3, degree=3, coef0=0.7, nu=1.5, alpha=0.8, skewedness=0.4, **POWERS)
EPS = np.finfo(float).eps

FORMULAS: dict[str, Callable] = {
    "rbf": lambda x, y: exp(-0.3 * sum((a - b) ** 2 for a, b in pairs(x, y))),
    "laplacian": lambda x, y: exp(-0.3 * sum(abs(a - b) for a, b in pairs(x, y))),
    "cauchy": lambda x, y: product(1 / (1 + 0.3 * (a - b) ** 2) for a, b in pairs(x, y)),
    "linear": lambda x, y: dot(x, y),
    "cosine": lambda x, y: dot(x, y) / sqrt(dot(x, x) * dot(y, y)) if dot(x, x) * dot(y, y) else 0.0,
    "polynomial": lambda x, y: (0.3 * dot(x, y) + 0.7) ** 3,
    "sigmoid": lambda x, y: tanh(0.3 * dot(x, y) + 0.7),
    "matern": lambda x, y: (1 + sqrt(3) * norm(x, y)) * exp(-sqrt(3) * norm(x, y)),
    "rational_quadratic": lambda x, y: (1 + norm(x, y) ** 2 / 0.8) ** -0.8,
    "chi2": lambda x, y: exp(-0.3 * sum((a - b) ** 2 / (a + b) for a, b in pairs(x, y) if a + b)),
    "additive_chi2": lambda x, y: sum(2 * a * b / (a + b) for a, b in pairs(x, y) if a + b),
    "intersection": lambda x, y: sum(min(a, b) for a, b in pairs(x, y)),
    "jensen_shannon": lambda x, y: sum(half(a, b) + half(b, a) for a, b in pairs(x, y) if a * b),
    "hellinger": lambda x, y: sum(sqrt(a * b) for a, b in pairs(x, y)),
    "skewed_chi2": lambda x, y: product(
        2 * sqrt((a + 0.4) * (b + 0.4)) / (a + b + 0.8) for a, b in pairs(x, y)
    ),
    "skewed_intersection": lambda x, y: product(sqrt((min(p) + 0.4) / (max(p) + 0.4)) for p in pairs(x, y)),
    "exponential": lambda x, y: exp(0.3 * dot(x, y)),
    "series": lambda x, y: 0.5 + 2.0 * (0.3 * dot(x, y)) ** 2 + 0.1 * (0.3 * dot(x, y)) ** 3,
    "anova": lambda x, y: sum(product(0.3 * a * b for a, b in s) for s in combinations(pairs(x, y), 3)),
    "all_subsets": lambda x, y: product(1 + 0.3 * a * b for a, b in pairs(x, y)),
    "arc_cosine": lambda x, y: (
        sqrt(dot(x, x) * dot(y, y)) * (sin(angle(x, y)) + (pi - angle(x, y)) * cos(angle(x, y))) / pi
    ),
}


def pairs(x, y):
    return zip(x, y, strict=True)


def half(a, b) -> float:
    return a / 2 * log2((a + b) / a)


def angle(x, y) -> float:
    """A right angle where a row is 0; by the chord, which keeps the digits of small angles."""
    if not dot(x, x) * dot(y, y):
        return pi / 2
    u, v = x / sqrt(dot(x, x)), y / sqrt(dot(y, y))
    return 2 * asin(min(1.0, sqrt(dot(u - v, u - v)) / 2))


def product(values) -> float:
    return float(np.prod(list(values)))


def dot(x, y) -> float:
    return sum(a * b for a, b in zip(x, y, strict=True))


def norm(x, y) -> float:
    return sqrt(0.3 * sum((a - b) ** 2 for a, b in zip(x, y, strict=True)))


def samples() -> Coordinates:
    rng = np.random.default_rng(0)
    x, y = rng.exponential(size=(12, 5)), rng.exponential(size=(9, 5))
    x[0], y[0] = 0.0, 0.0
    x[1], x[2, 3], y[2, 3] = y[1], 0.0, 0.0
    return Coordinates(x, y)


def check(name: str, formula: Callable, p: KernelParameters = P) -> None:
    pair = samples()
    got = find_kernel(name).gram(pair, p)
    want = np.array([[formula(x, y) for y in pair.y] for x in pair.x])
    # some 40 operations on numbers of the size of the largest entry
    tolerance = 40 * EPS * max(1.0, np.abs(want).max())
    np.testing.assert_allclose(got.dots, want, rtol=0, atol=tolerance)
    # k(x, x) is what the chain divides and subtracts by
    for own, rows in zip(got.squared_norms, (pair.x, pair.y), strict=True):
        diagonal = np.array([formula(row, row) for row in rows])
        np.testing.assert_allclose(own, diagonal, rtol=0, atol=40 * EPS * max(1.0, np.abs(diagonal).max()))


@pytest.mark.parametrize("name", kernel_names())
def test_is_its_formula(name: str) -> None:
    assert name in FORMULAS, f"{name}: expected its formula on single numbers among FORMULAS"
    check(name, FORMULAS[name])


def test_arc_cosine_of_order_0_is_its_formula() -> None:
    check("arc_cosine", lambda x, y: 1 - angle(x, y) / pi, replace(P, order=0))


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 0.8, 7.3])
def test_matern_is_scikit_learns(nu: float) -> None:
    pair = samples()
    got = MaternKernel().gram(pair, KernelParameters(gamma=0.3, nu=nu)).dots
    want = Matern(length_scale=1 / sqrt(0.3), nu=nu)(pair.x, pair.y)
    # Γ, a power and a Bessel function, each to some ten eps, and their logarithms' size
    np.testing.assert_allclose(got, want, rtol=0, atol=1000 * EPS)


def test_matern_near_zero_and_far_away() -> None:
    x = np.array([[0.0]])
    y = np.array([[0.0], [1e-200], [1e-9], [1e-6], [1e-3], [800.0], [1e6], [1e12], [1e150]])
    got = MaternKernel().gram(Coordinates(x, y), KernelParameters(nu=1.5)).dots[0]
    r = sqrt(3) * y[:, 0]
    np.testing.assert_allclose(got, (1 + r) * np.exp(-r), rtol=0, atol=1e-13)


@pytest.mark.parametrize("homogeneity", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("name", kernel_names(AdditiveKernel))
def test_additive_kernels_are_homogeneous_and_bounded_by_the_diagonal(name: str, homogeneity: float) -> None:
    pair, p = samples(), KernelParameters(homogeneity=homogeneity)
    got = find_kernel(name).gram(pair, p)
    scaled = find_kernel(name).gram(Coordinates(5 * pair.x, 5 * pair.y), p)
    np.testing.assert_allclose(scaled.dots, 5**homogeneity * got.dots, rtol=64 * EPS, atol=0)
    x, y = got.squared_norms
    assert (got.dots <= np.sqrt(np.outer(x, y)) * (1 + 64 * EPS)).all()  # Cauchy & Schwarz


def test_signed_entries_multiply_signs() -> None:
    x, y = np.array([[-2.0, 3.0]]), np.array([[5.0, -0.5]])
    want = -2 * 2 * 5 / 7 - 2 * 3 * 0.5 / 3.5
    assert AdditiveChi2Kernel().gram(Coordinates(x, y), P).dots[0, 0] == pytest.approx(want, rel=16 * EPS)


@pytest.mark.parametrize("name", kernel_names())
def test_a_gram_matrix_is_enough_where_the_kernel_says_so(name: str) -> None:
    pair = samples()
    gram = Gram(pair.dots, pair.squared_norms)
    if find_kernel(name).needs_coordinates:
        with pytest.raises(TypeError, match="this kernel needs coordinates"):
            find_kernel(name).gram(gram, P)
        return
    # ‖x‖² + ‖y‖² − 2x·y is off by a few eps of the norms; matern's root of it, near 0, by the root of that
    atol = 40 * sqrt(EPS * 40) if name == "matern" else 1000 * EPS
    np.testing.assert_allclose(
        find_kernel(name).gram(gram, P).dots, find_kernel(name).gram(pair, P).dots, rtol=1e-12, atol=atol
    )


@pytest.mark.parametrize("nu", [60.0, 1000.0, 1e6])
@pytest.mark.parametrize("t", [1e-3, 0.5, 4.0])
def test_matern_of_a_large_order_is_a_mixture_of_gaussians(nu: float, t: float) -> None:
    """E exp(−tν/2G), G ~ Gamma(ν): Bessel functions of that order are no numbers."""

    def density(g: float) -> float:
        return float(np.exp(-t * nu / (2 * g) + (nu - 1) * np.log(g) - g - gammaln(nu)))

    reach = 12 * sqrt(nu)  # beyond it less than e^{−30} is left
    want = quad(density, max(nu - reach, 1e-9), nu + reach, points=[nu], limit=200)[0]
    # the expansion is off by 1e-9, and the density by eps of logarithms as large as ν log ν
    got = matern_profile(np.array([t]), nu)[0]
    assert got == pytest.approx(want, abs=1e-9 + 4 * EPS * nu * np.log(nu))


@pytest.mark.parametrize("nu", [0.01, 0.3, 0.5, 1.5, 2.2, 50.0, 51.0])
def test_matern_has_no_end(nu: float) -> None:
    got = matern_profile(np.array([0.0, 1e-30, 1e3, 1e18, 1e300, np.inf]), nu)
    assert got[0] == 1.0
    assert (np.diff(got) <= 0.0).all()
    assert (got[3:] == 0.0).all()


def test_a_rough_matern_falls_at_once() -> None:
    """1 − k ≈ Γ(1 − ν)/Γ(1 + ν)·(s/2)^{2ν} for small s, ν < 1 (DLMF 10.27.4, 10.25.2)."""
    nu, s = 0.1, 1e-8
    t = np.array([s * s / (2 * nu)])
    want = np.exp(gammaln(1 - nu) - gammaln(1 + nu)) * (s / 2) ** (2 * nu)
    assert 1.0 - matern_profile(t, nu)[0] == pytest.approx(want, rel=1e-12)
