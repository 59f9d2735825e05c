"""Kernels of tiles, compiled or not: their errors, and that they do not depend on places."""

import mpmath
import numpy as np
import pytest

from kafeat.compiled.library import describe
from kafeat.maths.kernel import KernelParameters, TiledKernel
from kafeat.maths.kernel_tiles import Landmarks, profile_loop
from kafeat.maths.kernels import find_kernel
from kafeat.types import Floats

DTYPES = ["float32", "float64"]


def evaluate(name: str, X: Floats, L: Floats) -> Floats:
    """The kernel of the rows X with the landmarks L."""
    kernel = find_kernel(name)
    assert isinstance(kernel, TiledKernel)
    tile = kernel.tile(Landmarks(L, X.dtype, 1.0, np.zeros(L.shape[1])), KernelParameters(gamma=0.7, nu=1.5))
    out = np.empty((len(X), len(L)), X.dtype)
    tile.evaluate(X, out, tile.scratch(len(X)))
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["chi2", "additive_chi2", "laplacian", "intersection"])
def test_a_kernel_does_not_depend_on_its_place(name: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    X, L = rng.random((90, 70)).astype(dtype), rng.random((131, 70))
    X[rng.random(X.shape) < 0.3] = 0.0
    if describe() != "compiled":
        pytest.skip("NumPy's sums depend on the place of a row in its tile, which is always the same one")
    whole = evaluate(name, X, L)
    np.testing.assert_array_equal(evaluate(name, X[::-1].copy(), L)[::-1], whole)
    np.testing.assert_array_equal(evaluate(name, X[17:20].copy(), L[60:67]), whole[17:20, 60:67])


def by_numpy(squares: Floats) -> None:
    """In the place of a compiled loop."""
    pytest.skip("nothing is compiled")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("profile", ["gaussian", "matern_1", "matern_3", "matern_5", "rational_quadratic"])
def test_profiles_are_those_of_wider_numbers(profile: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    squares = (10.0 ** rng.uniform(-12.0, 2.5, 203)).astype(dtype)
    squares[:2] = 0.0, -1e-6 if profile != "gaussian" else 0.0
    x = -squares if profile == "gaussian" else squares.copy()
    profile_loop(profile, by_numpy, x.dtype, 1.5)(x)  # type: ignore[arg-type]
    eps = float(np.finfo(dtype).eps)

    def exact(t: float) -> mpmath.mpf:
        t = max(mpmath.mpf(t), 0)
        s = mpmath.sqrt(t)
        factor = {"matern_3": 1 + s, "matern_5": 1 + s + t / 3}.get(profile, mpmath.mpf(1))
        if profile == "rational_quadratic":
            return (1 + t) ** -1.5
        return factor * mpmath.exp(-t if profile == "gaussian" else -s)

    with mpmath.workdps(40):
        for value, t in zip(x, squares, strict=True):
            want = exact(float(t))
            # some operations, and the rounding of the exponent, which the exponential multiplies
            exponent = {"gaussian": t, "rational_quadratic": 1.5 * np.log1p(max(float(t), 0.0))}.get(
                profile, np.sqrt(max(float(t), 0.0))
            )
            if want > float(np.finfo(dtype).tiny):
                assert abs(float(value) - want) <= (8.0 + 2.0 * float(exponent)) * eps * want
            else:  # what is below has fewer digits
                assert abs(float(value) - want) <= float(np.finfo(dtype).tiny)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_kernel_of_no_number_is_none(dtype: str) -> None:
    for profile in ("gaussian", "matern_1", "matern_3", "matern_5", "rational_quadratic"):
        x = np.array([np.nan, 1.0], dtype)
        profile_loop(profile, by_numpy, x.dtype, 1.0)(x)
        assert np.isnan(x[0])
        assert np.isfinite(x[1])
