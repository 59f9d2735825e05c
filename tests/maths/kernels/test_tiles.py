"""Kernels in tiles against the oracle."""

import numpy as np
import pytest

from kafeat.contract.kernel_inputs import Coordinates
from kafeat.maths.kernel import KernelParameters, TiledKernel
from kafeat.maths.kernel_tiles import Landmarks
from kafeat.maths.kernels import find_kernel, kernel_names

P = KernelParameters(gamma=0.2, degree=3, coef0=0.5, nu=1.5, alpha=0.7, coefficients=(0.5, 0.0, 1.5, 0.3))


def run(name: str, X: np.ndarray, landmarks: np.ndarray, p=P, scale: float = 1.0) -> np.ndarray:
    tile = find_kernel(name).tile(Landmarks(landmarks, X.dtype, scale), p)
    out = np.empty((len(X), len(landmarks)), dtype=X.dtype)
    tile.evaluate(X, out, tile.scratch(len(X)))
    return out


def exact(name: str, X: np.ndarray, landmarks: np.ndarray, p: KernelParameters = P) -> np.ndarray:
    return find_kernel(name).gram(Coordinates(X.astype(float), landmarks.astype(float)), p).dots


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", kernel_names(TiledKernel))
def test_is_the_oracle(name: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    X, L = (rng.exponential(size=(n, 7)).astype(dtype) for n in (33, 12))
    X[0], X[1], L[0], L[2, 3], X[2, 3] = 0.0, L[1], 0.0, 0.0, 0.0
    want, eps = exact(name, X, L), float(np.finfo(dtype).eps)
    # Arguments are sums of d = 7 terms with modulus at most S: off by 3 d eps S at worst. Outer functions have a
    # slope of at most γ (times 3·max² for the cube), and add eps of their own; of Jensen-Shannon's two terms each
    # logarithm is at most 1/x + its rounding times x, so a term is off by 4 eps of x + l.
    S = max(np.abs(X).sum(1).max(), np.square(X, dtype=float).sum(1).max()) * 2
    # The sums over sets are at most e^{γ x·l} (for all sets), whose slope is as large as they are.
    slopes = {"polynomial": 3 * 0.2, "series": 3 * 0.2, "anova": 0.2, "all_subsets": 0.2}
    slope = slopes[name] * max(np.exp(0.2 * (X @ L.T).max()), want.max(), 1) if name in slopes else 1.0
    np.testing.assert_allclose(run(name, X, L), want, rtol=0, atol=21 * eps * S * slope)


@pytest.mark.parametrize(("dtype", "offset"), [("float32", 100.0), ("float32", 1e4), ("float64", 1e8)])
def test_rbf_far_from_the_origin(dtype: str, offset: float) -> None:
    rng = np.random.default_rng(0)
    X, L = ((rng.standard_normal((n, 5)) + offset).astype(dtype) for n in (40, 15))
    # As the centre is taken off first (a difference of near numbers is exact), what is left is of the size of the
    # spread: 16 at most here. Sums of 5 and three terms at eps each, and the centre itself is a number of the dtype.
    bound = 0.2 * 20 * float(np.finfo(dtype).eps) * 60
    np.testing.assert_allclose(run("rbf", X, L), exact("rbf", X, L), rtol=0, atol=bound)


def test_kernels_with_a_unit_diagonal_never_exceed_it() -> None:
    X = (np.random.default_rng(0).exponential(size=(30, 7)) + 50).astype(np.float32)
    for name in ("rbf", "laplacian", "chi2", "matern", "rational_quadratic"):
        assert run(name, X, X).max() <= 1.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 0.3, 1.0, 3.7, 30.0])
def test_matern_of_any_smoothness(nu: float, dtype: str) -> None:
    rng = np.random.default_rng(0)
    X, L = (rng.standard_normal((n, 5)).astype(dtype) for n in (30, 12))
    L[3] = X[4]
    p, eps = KernelParameters(gamma=0.3, nu=nu), float(np.finfo(dtype).eps)
    got, want = run("matern", X, L, p), exact("matern", X, L, p)
    # ‖x − l‖² is off by δ ≤ 21 eps S, S the sum of its three terms. From above ν = ½ on, the kernel has a slope of
    # at most 1/(ν' − ½) in r², and below it is Hölder: |k(s) − k(0)| ≤ 2 s^{2ν}, at a distance that is off by √δ.
    S = 0.3 * 2 * nu * 4 * max(np.square(X, dtype=float).sum(1).max(), np.square(L, dtype=float).sum(1).max())
    delta = 21 * eps * S
    bound = delta if nu >= 1.5 else 2 * delta**nu * (1 if nu < 1 else 1 - np.log(delta))
    # Bessel's function itself is good to some 1e-13 at ν = 30, by its logarithm (of size 100)
    np.testing.assert_allclose(got, want, rtol=0, atol=bound + 2e-12)
    assert got.max() <= 1.0 + 2e-12


@pytest.mark.parametrize("size", [1e-25, 1e25])
@pytest.mark.parametrize("name", ["linear", "polynomial", "series", "anova", "all_subsets"])
def test_a_scale_keeps_what_float32_cannot_hold(name: str, size: float) -> None:
    rng = np.random.default_rng(0)
    X, L = ((rng.exponential(size=(n, 5)) * size).astype(np.float32) for n in (20, 10))
    # of all sets, those of five columns: γ takes them back from the fifth power to the second
    gamma = size**-1.2 if name == "all_subsets" and size > 1 else 1.0
    p = KernelParameters(gamma=gamma, degree=2, coef0=0.0, coefficients=(0.0, 0.0, 2.0))
    want = exact(name, X, L, p)
    scale = float(want.max())
    # 5 products and their sum, squared: 2·(5 + 2) roundings of numbers up to 1
    atol = 14 * float(np.finfo(np.float32).eps)
    np.testing.assert_allclose(run(name, X, L, p, scale), want / scale, rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.parametrize("name", ["jensen_shannon", "intersection", "hellinger", "additive_chi2", "chi2"])
def test_kernels_of_histograms_have_no_cut_off(name: str, scale: float, dtype: str) -> None:
    rng = np.random.default_rng(0)
    X, L = ((rng.exponential(size=(n, 4)) * scale).astype(dtype) for n in (20, 10))
    # squares of such numbers are no float32 numbers; the kernel is
    p, eps = KernelParameters(gamma=0.2 / scale), float(np.finfo(dtype).eps)
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        got = run(name, X, L, p)
    # 4 positive terms; a logarithm of x/(x + l) near 1 is off by eps of 1, beside the other term of size l/x·log
    np.testing.assert_allclose(
        got, exact(name, X, L, p), rtol=40 * eps, atol=100 * eps if name == "chi2" else 0
    )


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_the_cosine_forgets_the_size_of_a_row(size: float) -> None:
    rng = np.random.default_rng(0)
    X, L = (rng.standard_normal((n, 5)) for n in (20, 8))
    X[3] = 0.0
    got = run("cosine", (size * X).astype(np.float32), L.astype(np.float32))
    # d = 5 products, two norms and two roundings of the inputs
    bound = 16 * float(np.finfo(np.float32).eps)
    np.testing.assert_allclose(got, exact("cosine", X, L), rtol=0, atol=bound)


@pytest.mark.parametrize("name", ["rbf", "matern", "rational_quadratic"])
def test_landmarks_far_from_the_centre_are_met_by_differences(name: str) -> None:
    """‖x‖² + ‖l‖² − 2x·l of 10²⁴ is off by 10⁸: the kernel of a row with itself was anything from 0 to 1."""
    rng = np.random.default_rng(0)
    L = rng.standard_normal((12, 5))
    L[:3] += 1e12
    X = np.vstack([L, L + 0.1])
    tile = find_kernel(name).tile(Landmarks(L, np.dtype(float), centre=np.median(L, axis=0)), P)
    out = np.empty((len(X), len(L)))
    tile.evaluate(X, out, tile.scratch(len(X)))
    # near ones cancel 30·4 eps of r² at most; of the rational quadratic and matern slopes are below 1
    np.testing.assert_allclose(out, exact(name, X, L), rtol=0, atol=1e-12)


@pytest.mark.parametrize("nu", [0.9, 1.5])
def test_rows_at_any_distance_have_a_matern_kernel(nu: float) -> None:
    """SciPy's Bessel function is NaN beyond some 10⁹, where the kernel is 0."""
    X, p = np.array([[0.0], [1e9], [1e12], [1e150]]), KernelParameters(gamma=1.0, nu=nu)
    np.testing.assert_array_equal(run("matern", X, X[:1], p)[:, 0], [1.0, 0.0, 0.0, 0.0])
