"""Every learner on a problem that a line cannot solve and a map can."""

import warnings

import numpy as np
import pytest

from kafeat.errors import UsageError
from kafeat.evaluation.choose_learner import LEARNERS, learner_of
from kafeat.evaluation.folds import split
from kafeat.evaluation.learners import Inputs, Truth, features_score, score
from kafeat.evaluation.task import task_of


def inputs(Z, height=37, standardize=False):
    numbers = np.arange(len(Z))

    def blocks(rows):
        for start in range(0, len(Z), height):
            found = numbers[start : start + height][rows[start : start + height]]
            if len(found):
                yield found, Z[found]

    return Inputs(Z.shape[1], blocks, standardize)


@pytest.fixture(scope="module")
def ring():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (600, 2))
    labels = np.where(X[:, 0] ** 2 + X[:, 1] ** 2 > 0.5, "out", "in").astype(object)
    Z = np.column_stack([X, X**2])
    held = split(600, 0)
    return X, Z, held, Truth(task_of(labels), labels, held.folds)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_quadric_is_learned_from_its_features_and_not_from_raw_columns(ring, name):
    X, Z, held, truth = ring
    learner = learner_of(name)
    found = {}
    for which, columns in (("raw", X), ("map", Z)):
        table = inputs(columns, standardize=which == "raw")
        model = learner.linear(table, ~held.test, truth)
        found[which] = score(model, table, held.test, truth)
        assert 0 <= model.nonzero <= columns.shape[1]
    # A line cannot follow a circle, a quadric can: the share of the larger class, 0.61, against nearly all.
    assert found["raw"] < 0.75
    assert found["map"] > 0.9
    rows = np.flatnonzero(~held.test)
    # The kernel of a quadric, which no line in X has.
    exact = learner.exact((Z @ Z.T)[np.ix_(rows, rows)], rows, truth)
    tests = np.flatnonzero(held.test)
    assert truth.task.score(exact((Z @ Z.T)[np.ix_(tests, rows)]), truth.labels[tests]) > 0.9
    assert 0 < exact.nonzero <= len(rows)


@pytest.mark.parametrize("name", ["ridge", "linear_svc", "dual_l1", "sgd"])
def test_a_line_is_learned(name):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 3))
    y = X @ np.array([1.0, -2.0, 0.5]) + 0.25
    held = split(400, 0)
    truth, table = Truth(task_of(y), y, held.folds), inputs(X)
    learner = learner_of(name, tau=0.01)
    # 1,600 stochastic steps do not get as near as a solver.
    least = 0.99 if name == "sgd" else 0.999
    assert score(learner.linear(table, ~held.test, truth), table, held.test, truth) > least
    rows, tests = np.flatnonzero(~held.test), np.flatnonzero(held.test)
    K = X @ X.T
    exact = learner.exact(K[np.ix_(rows, rows)], rows, truth)
    assert truth.task.score(exact(K[np.ix_(tests, rows)]), y[tests]) > 0.95


@pytest.mark.parametrize("name", ["linear_svc_l1", "logistic"])
def test_learners_of_classes_refuse_a_number(name):
    y = np.linspace(0.1, 1, 50)
    truth = Truth(task_of(y), y, np.arange(50) % 3)
    with pytest.raises(UsageError, match=f"learner {name}: expected classes, got a number"):
        learner_of(name).linear(inputs(np.eye(50)), np.ones(50, bool), truth)


def test_l1_uses_fewer_features():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((500, 40))
    labels = (Z[:, 3] > 0).astype(int)
    held = split(500, 0)
    truth, table = Truth(task_of(labels), labels, held.folds), inputs(Z)
    sparse = learner_of("linear_svc_l1").linear(table, ~held.test, truth)
    assert sparse.nonzero < learner_of("linear_svc").linear(table, ~held.test, truth).nonzero == 40


def test_scores_do_not_depend_on_how_rows_are_cut(ring):
    _X, Z, held, truth = ring
    scores = set()
    for height in (7, 600):
        table = inputs(Z, height)
        scores.add(
            round(score(learner_of("ridge").linear(table, ~held.test, truth), table, held.test, truth), 12)
        )
    assert len(scores) == 1


def test_no_warning_of_a_solver_escapes(ring):
    _X, Z, held, truth = ring
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner_of("linear_svc").linear(inputs(Z * 1e3), ~held.test, truth)


def test_penalties_of_sgd_are_tried_on_rows_that_it_has_not_seen(ring):
    _X, Z, held, truth = ring
    table, asked = inputs(Z), []

    def blocks(rows):
        asked.append(rows.copy())
        return table.blocks(rows)

    learner_of("sgd").linear(Inputs(Z.shape[1], blocks), ~held.test, truth)
    fitted, tried, *final = asked
    assert not (fitted & tried).any()
    assert ((fitted | tried) == ~held.test).all()
    assert all((rows == ~held.test).all() for rows in final)


def test_features_score_is_ridge_on_the_last_rows(ring):
    X, Z, _held, truth = ring
    assert features_score(Z, truth.labels, 480) > 0.9 > 0.75 > features_score(X, truth.labels, 480)


def test_too_many_rows_for_memory_are_refused():
    table = Inputs(10**6, lambda rows: iter(()))
    with pytest.raises(UsageError, match="expected at most 1 GiB of training rows in memory, got 1,000 rows"):
        table.matrix(np.ones(1000, bool), 1 << 30)


def test_unknown_learner():
    with pytest.raises(UsageError, match="learner: expected one of ridge, .*, got 'tree'"):
        learner_of("tree")
