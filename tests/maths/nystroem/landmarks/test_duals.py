"""Landmarks by the duals of a first classifier: their definition, and what they need."""

import numpy as np
import pytest

from kafeat.errors import DataError, UsageError
from kafeat.maths.nystroem.landmarks.of_label import dual_kmeans, dual_weighted, dual_weights, duals
from tests.maths.nystroem.landmarks.views import rbf_view


def features(n: int = 120, m: int = 9) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, m))


@pytest.mark.parametrize("tau", [0.0, 0.3])
@pytest.mark.parametrize("classes", [True, False])
def test_alpha_is_that_of_the_minimum(classes: bool, tau: float) -> None:
    Z, rng = features(), np.random.default_rng(1)
    f = Z @ rng.standard_normal((9, 2)) + rng.standard_normal((120, 2))
    Y = np.where(f > 0, 1.0, -1.0) if classes else f
    alpha = duals(Z, Y, classes, tau)
    # at the minimum λw = Zᵀα, and α is the slope of the loss at f = Zw
    w = Z.T @ alpha / ((Z**2).sum() / len(Z))
    want = Y * np.maximum(0, 1 - tau - Y * (Z @ w))
    if not classes:
        want = np.sign(Y - Z @ w) * np.maximum(0, np.abs(Y - Z @ w) - tau)
    # the iteration stops at 1e-5 of the largest coefficient; an output is off by as much times ‖z‖₁, twice over
    np.testing.assert_allclose(alpha, want, rtol=0, atol=1e-3)


def test_l1_on_the_dual_of_the_squared_hinge_scales_the_solution() -> None:
    # the solution with τ is (1 − τ) times the one without
    Z = features()
    Y = np.where(Z[:, :1] + 0.5 * Z[:, 1:2] ** 2 > 0, 1.0, -1.0)
    np.testing.assert_allclose(duals(Z, Y, True, 0.4), 0.6 * duals(Z, Y, True, 0.0), rtol=0, atol=1e-3)


def test_rows_near_the_border_weigh_most() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(600, 1))
    label = np.where(X[:, 0] > 0, 1, -1)
    found = X[dual_weighted(rbf_view(X, 1.0, label), 60, rng)]
    assert np.abs(found).mean() < 0.7 * np.abs(X).mean()


def test_rows_without_a_dual_are_drawn_where_others_run_out() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-5, 0.1, (50, 1)), rng.normal(5, 0.1, (50, 1))])
    label = np.repeat(["a", "b"], 50).astype(object)
    view = rbf_view(X, 0.1, label, 0.9)
    rows, alpha = dual_weights(view, 20, rng)
    assert len(rows) == len(alpha) == 100
    for select in (dual_weighted, dual_kmeans):
        assert len(np.unique(select(view, 90, rng), axis=0)) == 90


TEXTS = np.array(["x", "y", "z"] * 40, dtype=object)


@pytest.mark.parametrize("label", [np.arange(120) % 3, TEXTS, np.linspace(0, 1, 120)])
def test_classes_and_quantities(label: np.ndarray) -> None:
    view = rbf_view(features(), 0.1, label)
    assert len(set(dual_weighted(view, 30, np.random.default_rng(0)).tolist())) == 30


def test_needs_a_label_of_two_values() -> None:
    for select in (dual_weighted, dual_kmeans):
        with pytest.raises(UsageError, match=r"expected a label column, got none: name it with --label"):
            select(rbf_view(features()), 5, np.random.default_rng(0))
        with pytest.raises(DataError, match="label: expected at least two classes, got only 3"):
            select(rbf_view(features(), label=np.full(120, 3)), 5, np.random.default_rng(0))


def test_a_kernel_of_zeros_weighs_rows_alike() -> None:
    Y = np.array([[1.0], [-1.0], [1.0]])
    np.testing.assert_array_equal(duals(np.empty((3, 0)), Y, True, 0.25), 0.75 * Y)
