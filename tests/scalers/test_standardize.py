"""Standardize against scikit-learn."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from tests.recipes import fit_step


def test_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 6)) * np.array([1e-6, 1.0, 3.0, 1e5, 7.0, 1e9]) + np.arange(6)
    got, new = fit_step(X, "standardize"), X[::-1] * 1.5
    # a mean of n numbers is off by a few eps of the column's size, which is at most a few σ here
    # (column 0: mean 0, column 1: mean 1, and so on); values reach 5 σ
    np.testing.assert_allclose(got.transform(new), StandardScaler().fit(X).transform(new), rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [0.0, 0.1, -3.7e8, 1e-30])
def test_constant_columns_are_only_centred(dtype: str, value: float) -> None:
    n = 100_000  # a running sum of that many equal numbers is off by far more than their last bit
    X = np.column_stack([np.full(n, value), np.arange(n)])
    fm = fit_step(X, "standardize", dtype)
    assert fm.chain.steps[0].state["scale"][0] == 1.0
    assert not fm.transform(X[:10])[:, 0].any()
    # one number, one subtraction, each rounded
    other = fm.transform(np.array([[value + 1.0, 0.0]]))[0, 0]
    exact = np.dtype(dtype).type(value + 1.0).astype(float) - value
    assert float(other) == pytest.approx(exact, abs=float(4 * np.finfo(dtype).eps) * (abs(value) + 1))


def test_one_row_is_centred() -> None:
    assert not fit_step(np.array([[3.0, -1.0]]), "standardize").transform(np.array([[3.0, -1.0]])).any()


def test_small_spread_far_from_zero_is_not_taken_for_constant() -> None:
    X = 1e6 + 1e-3 * np.random.default_rng(0).standard_normal((500, 1))
    # E[x²] − μ² would cancel to noise; around the mean, σ is right to eps·1e6/1e-3
    assert fit_step(X, "standardize").chain.steps[0].state["scale"][0] == pytest.approx(np.std(X), rel=1e-6)
    assert np.std(fit_step(X, "standardize").transform(X)) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("size", [1e-180, 1e180])
def test_squares_need_not_be_numbers_of_float64(size: float) -> None:
    X = np.random.default_rng(0).standard_normal((50, 2))
    # a product with a number that is no power of two rounds once
    Z, near = fit_step(size * X, "standardize").transform(size * X), 50 * np.finfo(float).eps
    np.testing.assert_allclose(Z, fit_step(X, "standardize").transform(X), rtol=0, atol=near)
