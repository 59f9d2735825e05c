"""Kernels in tiles against the oracle."""

from __future__ import annotations

import numpy as np
import pytest

from kafeat.errors import ValueRefused
from kafeat.kernel_tiles import kernel_tile
from kafeat.kernels import KERNELS, KernelParameters
from kafeat.pair import Coordinates

NAMES = ["rbf", "laplacian", "linear", "polynomial", "sigmoid", "cosine", "chi2", "additive_chi2"]
P = KernelParameters(gamma=0.2, degree=3, coef0=0.5)


def run(name: str, X: np.ndarray, landmarks: np.ndarray, p: KernelParameters = P) -> np.ndarray:
    tile = kernel_tile(name, landmarks, p, X.dtype)
    out = np.empty((len(X), len(landmarks)), dtype=X.dtype)
    tile.evaluate(X, out, tile.scratch(len(X)))
    return out


def exact(name: str, X: np.ndarray, landmarks: np.ndarray, p: KernelParameters = P) -> np.ndarray:
    return KERNELS[name].gram(Coordinates(X.astype(float), landmarks.astype(float)), p).dots


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_is_the_oracle(name: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    X, L = (rng.exponential(size=(n, 7)).astype(dtype) for n in (33, 12))
    X[0], X[1], L[0], L[2, 3], X[2, 3] = 0.0, L[1], 0.0, 0.0, 0.0
    want, eps = exact(name, X, L), float(np.finfo(dtype).eps)
    # Arguments are sums of d = 7 terms with modulus at most S: off by 3 d eps S at worst. Outer functions have a
    # slope of at most γ (times 3·max² for the cube), and add eps of their own.
    S = max(np.abs(X).sum(1).max(), np.square(X, dtype=float).sum(1).max()) * 2
    slope = 3 * 0.2 * max(want.max(), 1) if name == "polynomial" else 1.0
    np.testing.assert_allclose(run(name, X, L), want, rtol=0, atol=21 * eps * S * slope)


@pytest.mark.parametrize(("dtype", "offset"), [("float32", 100.0), ("float32", 1e4), ("float64", 1e8)])
def test_rbf_far_from_the_origin(dtype: str, offset: float) -> None:
    rng = np.random.default_rng(0)
    X, L = ((rng.standard_normal((n, 5)) + offset).astype(dtype) for n in (40, 15))
    # As the centre is taken off first (a difference of near numbers is exact), what is left is of the size of the
    # spread: 16 at most here. Sums of 5 and three terms at eps each, and the centre itself is a number of the dtype.
    bound = 0.2 * 20 * float(np.finfo(dtype).eps) * 60
    np.testing.assert_allclose(run("rbf", X, L), exact("rbf", X, L), rtol=0, atol=bound)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_chi2_kernels_have_no_cut_off(dtype: str, scale: float) -> None:
    rng = np.random.default_rng(0)
    X, L = ((rng.exponential(size=(n, 4)) * scale).astype(dtype) for n in (20, 10))
    # squares of such numbers are no float32 numbers; the kernel is
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        got = run("additive_chi2", X, L)
    np.testing.assert_allclose(got, exact("additive_chi2", X, L), rtol=16 * float(np.finfo(dtype).eps))
    p = KernelParameters(gamma=0.2 / scale)
    np.testing.assert_allclose(
        run("chi2", X, L, p), exact("chi2", X, L, p), rtol=0, atol=100 * float(np.finfo(dtype).eps)
    )


def test_kernels_with_a_unit_diagonal_never_exceed_it() -> None:
    X = (np.random.default_rng(0).exponential(size=(30, 7)) + 50).astype(np.float32)
    for name in ("rbf", "laplacian", "chi2"):
        assert run(name, X, X).max() <= 1.0


def test_chi2_refuses_negative_values() -> None:
    X = np.ones((3, 2))
    X[1, 1] = -1.0
    for name in ("chi2", "additive_chi2"):
        with pytest.raises(
            ValueRefused, match=r"row 2 \(index 1\), column 1: expected a value of at least 0, got -1"
        ):
            run(name, X, np.ones((2, 2)))


def test_unknown_name() -> None:
    with pytest.raises(ValueError, match="no tile form of the kernel 'hat'"):
        kernel_tile("hat", np.ones((1, 1)), P, np.dtype("float64"))
