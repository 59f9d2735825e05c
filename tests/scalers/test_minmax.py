"""Minmax against scikit-learn."""

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler

from tests.recipes import fit_step


@pytest.mark.parametrize("clip", [False, True])
def test_is_scikit_learns(clip: bool) -> None:
    X = np.random.default_rng(0).standard_normal((200, 5)) * np.array([1.0, 1e-8, 1e8, 3.0, 5.0])
    new = X * 1.7 - 0.3
    want = MinMaxScaler(clip=clip).fit(X).transform(new)
    # theirs is x·s + o, which cancels: both are right to a few eps of the terms, max|x|/(max − min)
    far = (np.abs(new).max(axis=0) / np.ptp(X, axis=0)).max()
    got = fit_step(X, "minmax", clip=clip).transform(new)
    np.testing.assert_allclose(got, want, rtol=0, atol=16 * np.finfo(float).eps * far)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_range_of_the_sample_is_exactly_zero_to_one(dtype: str) -> None:
    X = np.random.default_rng(0).standard_normal((200, 5)) * 7 + 3
    Z = fit_step(X, "minmax", dtype).transform(X)
    # width is max − min rounded, and so is the numerator: their quotient is 1
    assert (Z.min(axis=0) == 0.0).all()
    assert (Z.max(axis=0) == 1.0).all()


def test_constant_columns_are_only_moved() -> None:
    X = np.full((5, 1), 0.1)
    assert fit_step(X, "minmax").transform(np.array([[0.1], [1.1]])).ravel().tolist() == [0.0, 1.1 - 0.1]


def test_a_column_that_varies_by_rounding_alone_is_not_blown_up() -> None:
    X = np.full((40, 2), 0.1)
    X[::3, 0] = np.nextafter(0.1, 1.0)
    X[::3, 1] += 1e-12  # far above rounding
    Z = fit_step(X, "minmax").transform(X)
    assert np.abs(Z[:, 0]).max() < 1e-15
    assert Z[:, 1].max() == 1.0
