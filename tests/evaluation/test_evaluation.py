"""Errors and scores against their definitions and against scikit-learn."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV

from kafeat.errors import DataError
from kafeat.evaluation.fidelity import fidelity
from kafeat.evaluation.ridge import PENALTIES, features_basis, kernel_basis, ridge
from kafeat.evaluation.usefulness import task_of, usefulness


@pytest.mark.parametrize("n", [40, 400])  # all eigenvalues, and Lanczos
def test_fidelity_is_what_it_says(n):
    rng = np.random.default_rng(0)
    A, Z = rng.standard_normal((n, 6)), rng.standard_normal((n, 5))
    K = A @ A.T
    E = Z @ Z.T - K
    expected = {
        "relative_frobenius": np.linalg.norm(E) / np.linalg.norm(K),
        "relative_spectral": np.linalg.norm(E, 2) / np.linalg.norm(K, 2),
        "max_abs_error": np.abs(E).max(),
        "mean_abs_error": np.abs(E).mean(),
        "bias": E.mean(),
    }
    assert fidelity(K, Z) == pytest.approx(expected, rel=1e-10)
    # rounding alone: ZZᵀ is computed twice in other orders
    assert all(abs(value) < 1e-12 for value in fidelity(A @ A.T, A).values())


def test_a_kernel_of_zeros_has_no_error_unless_the_map_errs():
    K = np.zeros((3, 3))
    assert fidelity(K, np.zeros((3, 2)))["relative_frobenius"] == 0.0
    assert fidelity(K, np.ones((3, 2)))["relative_frobenius"] == np.inf


@pytest.mark.parametrize("width", [7, 150])  # fewer and more columns than rows
@pytest.mark.parametrize("given", ["features", "kernel"])
def test_ridge_is_scikit_learns_on_the_chosen_penalty(given, width):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, width))
    y = X @ rng.standard_normal((width, 2)) + 0.3 * rng.standard_normal((120, 2))
    train = 90
    basis = features_basis(X, train) if given == "features" else kernel_basis(X @ X.T, train)
    predicted, penalty = ridge(basis, y[:train])
    mean = y[:train].mean(axis=0)
    theirs = KernelRidge(alpha=penalty, kernel="linear").fit(X[:train], y[:train] - mean)
    # The system's condition is below 1e9: nine digits of sixteen are left.
    np.testing.assert_allclose(predicted, theirs.predict(X[train:]) + mean, atol=1e-6)
    scale = (X[:train] ** 2).sum() / train
    chosen = RidgeCV(alphas=PENALTIES * scale, fit_intercept=False).fit(X[:train], y[:train] - mean)
    assert penalty == pytest.approx(chosen.alpha_)


@pytest.mark.parametrize(
    ("labels", "task"),
    [
        (np.array(["a", "b"], dtype=object), "classification"),
        (np.array([True, False]), "classification"),
        (np.arange(5), "classification"),
        (np.array([1.0, 2.0, 1.0]), "classification"),
        (np.array([1.0, 2.5]), "regression"),
        (np.arange(101), "regression"),
    ],
)
def test_task(labels, task):
    assert task_of(labels) == task


def test_usefulness_tells_a_useful_map_from_raw_columns():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (600, 2))
    ring = (X[:, 0] ** 2 + X[:, 1] ** 2 > 0.5).astype(int)
    Z = np.column_stack([X, X**2, np.ones(600)])
    report = usefulness(X, Z, Z @ Z.T, ring, rng)
    assert report["task"] == "classification"
    assert report["rows_train"] + report["rows_test"] == 600
    # A line cannot follow a circle, a quadric can: chance of the larger class against nearly all.
    assert report["score_raw"] < 0.75
    assert report["score_map"] > 0.9
    assert report["score_map"] == report["score_exact"]


def test_r_squared_of_a_noiseless_line_is_1():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 3))
    y = X @ np.array([1.0, -2.0, 0.5]) + 0.25
    report = usefulness(X, X, X @ X.T, y, rng)
    assert report["task"] == "regression"
    assert report["score_raw"] == pytest.approx(1.0, abs=1e-6)


def test_one_class_is_refused():
    X = np.eye(10)
    with pytest.raises(DataError, match="expected at least two classes, got only '?a'?"):
        usefulness(X, X, X, np.array(["a"] * 10, dtype=object), np.random.default_rng(0))
