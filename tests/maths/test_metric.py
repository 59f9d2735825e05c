"""The average gradient outer product against finite differences."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from kafeat.maths import metric
from kafeat.maths.bandwidth import resolve_gamma
from kafeat.maths.exact_machine import errors_of_others
from kafeat.maths.fourier.learning import waves
from kafeat.maths.kernels.shift_invariant import RbfKernel
from kafeat.maths.metric import learn_metric, mean_gradient_product, mean_squared_gradients
from kafeat.maths.ridge import PENALTIES


@pytest.fixture(autouse=True)
def _few_frequencies(monkeypatch):
    monkeypatch.setattr(metric, "_FREQUENCIES", 96)


def test_the_product_is_that_of_finite_differences():
    rng = np.random.default_rng(0)
    X, frequencies, weights = rng.normal(size=(30, 4)), rng.normal(size=(7, 4)), rng.normal(size=(14, 3))
    step = 1e-5
    ends = [[waves(X + s * e, frequencies, None) @ weights for s in (step, -step)] for e in np.eye(4)]
    gradients = np.stack([(above - below) / (2 * step) for above, below in ends])  # (d, n, k)
    expected = np.einsum("dnk,enk->de", gradients, gradients) / len(X)
    product = mean_gradient_product(X, frequencies, weights)
    np.testing.assert_allclose(product, expected, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(mean_squared_gradients(X, frequencies, weights), np.diag(expected), rtol=1e-7)


def one_direction(n=800, d=12, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    direction = np.zeros(d)
    direction[[2, 5]] = 0.6, 0.8
    return X, np.sin(2.0 * X @ direction)[:, None] + noise * rng.normal(size=(n, 1)), direction


def test_a_label_of_one_direction_stretches_it():
    X, Y, direction = one_direction()
    found = learn_metric(X, Y, np.random.default_rng(1))
    values, vectors = np.linalg.eigh(found["root"])
    assert abs(vectors[:, -1] @ direction) > 0.99
    assert values[-2] < 0.35 * values[-1]
    assert found["spectrum"][0] == pytest.approx(1.0)
    assert found["importance"][[2, 5]].sum() > 0.9
    assert found["importance"].sum() == pytest.approx(1.0)
    before, after = found["error_identity"], found["error_kept"]
    assert after < 0.5 * before


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_a_label_of_noise_leaves_the_identity(seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(600, 8)), rng.normal(size=(600, 1))
    found = learn_metric(X, Y, rng)
    assert np.array_equal(found["root"], np.eye(8))
    assert found["error_identity"] == found["error_kept"]


def test_a_metric_is_judged_as_by_the_exact_machine_if_all_rows_are_landmarks(monkeypatch):
    monkeypatch.setattr(metric, "_LATER_MULTIPLES", [1.0])
    monkeypatch.setattr(metric, "_RCOND", 1e-13)  # penalties are relative to the mean of all eigenvalues
    monkeypatch.setattr("kafeat.maths.held_out_ridge.HELD_OUT_PENALTIES", PENALTIES)
    X, Y, _ = one_direction(n=700, d=6)
    train, held, new = slice(0, 400), slice(400, 500), slice(500, 700)
    data = metric._Data(X[train], Y[train], X[held], Y[held])
    gamma = resolve_gamma("median", RbfKernel(), X[train], np.random.default_rng(5))
    K, of_held, of_new = (
        np.exp(-gamma * cdist(X[rows], X[train], "sqeuclidean")) for rows in (train, held, new)
    )
    chosen = errors_of_others(K, Y[train], of_held, Y[held]).mean(axis=1).argmin()
    exact = errors_of_others(K, Y[train], of_new, Y[new])[chosen].mean()

    def judged(landmarks):
        monkeypatch.setattr(metric, "_LANDMARKS", landmarks)
        return metric._mapped(data, X[new], Y[new], np.eye(6), 5).mean()

    assert judged(400) == pytest.approx(exact, rel=0.01)
    assert judged(1000) == judged(400)


@pytest.mark.parametrize("unit", [1e-150, 1e150])
def test_units_of_the_rows_do_not_matter(unit):
    X, Y, _ = one_direction(n=400)
    plain = learn_metric(X, Y, np.random.default_rng(1))
    moved = learn_metric(X * unit + unit, Y, np.random.default_rng(1))
    np.testing.assert_allclose(moved["root"], plain["root"], atol=1e-5)


def test_equal_rows_leave_the_identity():
    _, Y, _ = one_direction(n=400)
    found = learn_metric(np.full((400, 3), 7.0), Y, np.random.default_rng(1))
    assert np.array_equal(found["root"], np.eye(3))


@pytest.mark.parametrize("diagonal", [False, True])
def test_a_constant_column_weighs_nothing(diagonal):
    X, Y, _ = one_direction(n=600, d=7)
    X[:, 0] = 7.0
    found = learn_metric(X, Y, np.random.default_rng(0), diagonal=diagonal)
    assert found["error_kept"] < found["error_identity"]
    assert found["importance"][0] < 1e-9
    assert np.abs(found["root"][0]).max() < 1e-9


def test_a_direction_in_which_no_row_varies_weighs_nothing():
    X, Y, _ = one_direction(n=600, d=7)
    X[:, 0] = 1000.0 * (1.0 - X[:, 1:].sum(axis=1))
    found = learn_metric(X, Y, np.random.default_rng(0))
    assert found["error_kept"] < found["error_identity"]
    nothing = np.r_[1e-3, np.ones(6)]
    assert np.linalg.norm(nothing @ found["root"]) < 1e-6


@pytest.mark.parametrize("most_rows", [1, 3, 199])
def test_few_rows_to_learn_from_leave_the_identity(most_rows):
    X, Y, _ = one_direction(n=400)
    found = learn_metric(X, Y, np.random.default_rng(1), most_rows=most_rows)
    assert np.array_equal(found["root"], np.eye(12))
    assert "error_kept" not in found
