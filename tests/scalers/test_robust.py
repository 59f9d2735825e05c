"""Robust against scikit-learn."""

import numpy as np
from sklearn.preprocessing import RobustScaler

from tests.recipes import fit_step

X = np.random.default_rng(0).standard_t(2, (200, 4)) * np.array([1.0, 1e-8, 1e8, 3.0])


def test_is_scikit_learns() -> None:
    new = X * 1.7 - 0.3
    np.testing.assert_allclose(
        fit_step(X, "robust").transform(new), RobustScaler().fit(X).transform(new), rtol=1e-13
    )


def test_an_outlier_moves_nothing() -> None:
    far = X.copy()
    far[np.argmax(X, axis=0), range(4)] = 1e30
    np.testing.assert_array_equal(fit_step(far, "robust").transform(X), fit_step(X, "robust").transform(X))


def test_a_column_whose_quartiles_are_one_is_only_centred() -> None:
    column = np.r_[np.full(90, 0.1), np.arange(10.0)][:, None]
    np.testing.assert_array_equal(fit_step(column, "robust").transform(column), column - 0.1)
