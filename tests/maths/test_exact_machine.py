"""Held-out errors of kernel ridge against the solution of the bordered equations without the rows."""

import numpy as np
import pytest

from kafeat.maths.exact_machine import errors_of_others
from kafeat.maths.ridge import PENALTIES

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
X[30:] = X[:10]  # equal rows
Y = np.c_[np.sin(X[:, 0]), X[:, 1] * X[:, 2]] + 0.1 * RNG.normal(size=(40, 2))
K = np.exp(-0.5 * np.square(X[:, None] - X[None]).sum(axis=-1))


def unit(train):
    """The mean eigenvalue of the centred kernel of these rows."""
    centre = np.eye(len(train)) - 1.0 / len(train)
    return np.trace(centre @ K[np.ix_(train, train)] @ centre) / len(train)


def expected(train, held, penalty):
    """Errors on held rows of (K + λ)α + 1t = Y, 1ᵀα = 0."""
    n = len(train)
    border = np.ones((n, 1))
    system = np.block([[K[np.ix_(train, train)] + penalty * np.eye(n), border], [border.T, np.zeros((1, 1))]])
    solved = np.linalg.solve(system, np.r_[Y[train], np.zeros((1, 2))])
    return np.square(K[np.ix_(held, train)] @ solved[:n] + solved[n] - Y[held]).sum(axis=1)


def test_other_rows_have_the_errors_of_the_model():
    train, held = np.arange(25), np.arange(25, 40)
    found = errors_of_others(K[np.ix_(train, train)], Y[train], K[np.ix_(held, train)], Y[held])
    for penalty, errors in zip(PENALTIES, found, strict=True):
        oracle = expected(train, held, penalty * unit(train))
        # The condition of K + λ is at most 40/λ.
        assert errors == pytest.approx(oracle, rel=1e-11 / penalty, abs=1e-11 / penalty)


def test_a_kernel_of_equal_rows_predicts_the_mean():
    same, held = np.ones((6, 6)), np.ones((2, 6))
    y = np.arange(6.0)[:, None]
    assert np.allclose(errors_of_others(same, y, held, np.full((2, 1), 2.5)), 0.0)
