"""Every learner on a problem that a line cannot solve and a map can."""

from itertools import count

import numpy as np
import pytest

from kafeat.contract.folds import RANDOM, Folded, RowKeys
from kafeat.errors import UsageError
from kafeat.jobs.fit import map_on_data
from kafeat.jobs.fit.map_on_data import Inputs
from kafeat.jobs.fit.search import learn_ridge
from kafeat.maths.scoring import score_for
from kafeat.maths.task import task_of
from kafeat.study.learners import NO_SCALING, Truth, split, train, unit_scaling_of
from kafeat.study.learners_sklearn import held as held_rows
from kafeat.study.machines import LEARNERS, learner_of


def inputs(Z, height=37, standardize=False):
    numbers = np.arange(len(Z))

    def blocks(rows):
        for start in range(0, len(Z), height):
            found = numbers[start : start + height][rows[start : start + height]]
            if len(found):
                yield found, Z[found]

    return Inputs(Z.shape[1], blocks, standardize=standardize)


def usual(task, predicted, labels):
    return score_for(None, task.kind).of(task, predicted, labels)


def score(model, inputs, test, truth):
    tested = truth.predicted(model, inputs, test)
    return usual(truth.task, tested.predicted, tested.labels)


def model_of(learner, *known):
    return learner.linear(*known).model


def exact_machine(learner, K, rows, truth, penalty=None):
    """The machine that learns from these rows of the kernel of all rows."""
    rows = np.flatnonzero(rows)
    return train(lambda: learner.on_kernel(K[np.ix_(rows, rows)], rows, truth), penalty).model


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
        model = model_of(learner, table, ~held.test, truth)
        found[which] = score(model, table, held.test, truth)
        assert 0 <= model.nonzero <= columns.shape[1]
    # A line cannot follow a circle, a quadric can: the share of the larger class, 0.61, against nearly all.
    assert found["raw"] < 0.75
    assert found["map"] > 0.9
    # The kernel of a quadric, which no line in X has.
    exact, K = exact_machine(learner, Z @ Z.T, ~held.test, truth), Z[held.test] @ Z[~held.test].T
    assert usual(truth.task, exact(K), truth.labels[held.test]) > 0.9
    assert 0 < exact.nonzero <= 480


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
    assert score(model_of(learner, table, ~held.test, truth), table, held.test, truth) > least
    exact = exact_machine(learner, X @ X.T, ~held.test, truth)
    assert usual(truth.task, exact(X[held.test] @ X[~held.test].T), y[held.test]) > 0.95


@pytest.mark.parametrize("name", ["linear_svc_l1", "logistic"])
def test_learners_of_classes_refuse_a_number(name):
    y = np.linspace(0.1, 1, 50)
    truth = Truth(task_of(y), y, Folded(np.arange(50) % 3, RANDOM))
    with pytest.raises(UsageError, match=f"learner {name}: expected classes, got a number"):
        model_of(learner_of(name), inputs(np.eye(50)), np.ones(50, bool), truth)


def test_l1_uses_fewer_features():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((500, 40))
    labels = (Z[:, 3] > 0).astype(int)
    held = split(500, 0)
    truth, table = Truth(task_of(labels), labels, held.folds), inputs(Z)
    sparse = model_of(learner_of("linear_svc_l1"), table, ~held.test, truth)
    assert sparse.nonzero < model_of(learner_of("linear_svc"), table, ~held.test, truth).nonzero == 40


def test_sgd_averages_and_neither_the_scale_nor_the_order_of_the_rows_matters(ring):
    _X, Z, held, truth = ring
    learner = learner_of("sgd")
    model = model_of(learner, inputs(Z), ~held.test, truth, 1e-4)
    assert model.estimator.average
    moved = model_of(learner, inputs(1e4 * Z + 1e3), ~held.test, truth, 1e-4)
    np.testing.assert_allclose(moved(1e4 * Z + 1e3), model(Z), rtol=1e-3, atol=1e-3)  # float32 holds the rows
    order = np.argsort(truth.labels, kind="stable")  # as in a file that is sorted by its label
    sorted_truth = Truth(truth.task, truth.labels[order], truth.folds.select(order))
    sorted_model = model_of(learner, inputs(Z[order]), ~held.test[order], sorted_truth, 1e-4)
    right = usual(truth.task, sorted_model(Z[held.test]), truth.labels[held.test])
    # Each is right about at least 0.9 of 120 rows; chance moves that by less than four standard errors, 0.11.
    assert abs(right - usual(truth.task, model(Z[held.test]), truth.labels[held.test])) < 0.11


def test_the_scaling_of_sgd_has_one_divisor_unless_columns_have_units():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((200, 3)) * [1.0, 10.0, 0.0] + 5.0
    for standardize in (False, True):
        scaling = unit_scaling_of(iter([Z[:50], Z[50:]]), standardize)
        scaled = scaling(Z)
        assert np.square(scaled).sum(axis=1).mean() == pytest.approx(1.0)
        np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-12)
        spread = scaled.std(axis=0)
        assert spread[1] / spread[0] == pytest.approx(1.0 if standardize else Z[:, 1].std() / Z[:, 0].std())


def test_tau_acts_for_classes_as_the_cost_divided_by_one_minus_tau(ring):
    _X, Z, held, truth = ring
    K = Z[~held.test] @ Z[~held.test].T
    dual, hinge = learner_of("dual_l1", tau=0.6), learner_of("linear_svc_hinge")
    for learn in (
        lambda learner, penalty: model_of(learner, inputs(Z), ~held.test, truth, penalty)(Z),
        lambda learner, penalty: exact_machine(learner, Z @ Z.T, ~held.test, truth, penalty)(K),
    ):
        np.testing.assert_array_equal(learn(dual, 1.0), learn(hinge, 0.4))
        assert (learn(dual, 1.0) != learn(hinge, 1.0)).any()


def test_the_ridge_of_a_fit_is_that_of_an_evaluation(ring):
    X, Z, _held, truth = ring
    # Times are in four parts, and the last one is learned from, too.
    for keys in (None, RowKeys(np.arange(480.0), True), RowKeys(np.arange(480.0) % 40, False)):
        folded = Folded.of(keys, 480)
        for features, least, most in ((Z, 0.9, 1.0), (X, 0.0, 0.75)):
            known = features[:480], truth.labels[:480], folded, truth.task
            predicted = learn_ridge(*known)(features[480:])
            assert least < usual(truth.task, predicted, truth.labels[480:]) <= most
            np.testing.assert_array_equal(predicted, learner_of("ridge").learn(*known)(features[480:]))


def test_reading_and_making_are_counted_apart(monkeypatch):
    clock = count()  # a look at it takes a second
    monkeypatch.setattr(map_on_data.time, "perf_counter", lambda: float(next(clock)))
    table, some = Inputs.of(np.eye(4)[:, :3]), np.arange(4) > 1
    (numbers, Z), seconds = map_on_data.timed(lambda: table.joined(some), lambda: table.seconds)
    np.testing.assert_array_equal(Z, np.eye(4)[numbers, :3])
    # Two pieces are asked for, of which the second is the end, and one is made: 6 of 8 looks are inside.
    assert (table.reading, table.making, table.last_making, seconds) == (2.0, 1.0, 1.0, 7.0 - 3.0)
    np.testing.assert_array_equal(table.without(np.array([1])).joined(some)[1], Z[:, [0, 2]])


def test_too_many_rows_for_memory_are_refused():
    table = Inputs(10**6, lambda rows: iter(()))
    with pytest.raises(UsageError, match="expected at most 1 GiB of training rows in memory, got 1,000 rows"):
        held_rows(table, np.ones(1000, bool), NO_SCALING, 1 << 30)


@pytest.mark.sampled
@pytest.mark.parametrize("name", LEARNERS)
def test_a_given_penalty_is_used_and_the_penalty_of_the_search_gives_its_model_again(ring, name):
    _X, Z, held, truth = ring
    learner, rows, K = learner_of(name), ~held.test, Z[held.test] @ Z[~held.test].T
    for fit, tests in (
        (lambda penalty=None: model_of(learner, inputs(Z), rows, truth, penalty), Z[held.test]),
        (lambda penalty=None: exact_machine(learner, Z @ Z.T, rows, truth, penalty), K),
    ):
        searched = fit()
        again = fit(searched.penalty)
        assert again.penalty == searched.penalty
        np.testing.assert_array_equal(again(tests), searched(tests))
        assert fit(7.5).penalty == pytest.approx(7.5)


def test_the_hinge_is_that_of_the_kernel_machine(ring):
    """With a linear kernel and one penalty both minimize the same, but for the penalty on the intercept."""
    _X, Z, held, truth = ring
    Z = Z - Z.mean(axis=0)
    rows = np.flatnonzero(~held.test)
    learner = learner_of("linear_svc_hinge")
    linear = model_of(learner, inputs(Z), ~held.test, truth, 1.0).estimator
    exact = exact_machine(learner, Z @ Z.T, ~held.test, truth, 1.0).estimator
    slopes, same = linear.coef_[0], exact.dual_coef_[0] @ Z[rows[exact.support_]]
    # Both solvers stop at 1e-3, and liblinear penalizes the intercept: the slopes differ by less than two hundredths.
    assert np.linalg.norm(slopes - same) < 0.02 * np.linalg.norm(same)


def test_the_exact_machine_of_logistic_is_kernel_logistic_regression(ring):
    """With a linear kernel it is logistic regression on the columns, whose penalty is on the same norm."""
    from sklearn.linear_model import LogisticRegression

    _X, Z, held, truth = ring
    learner, rows, tests = learner_of("logistic"), ~held.test, Z[held.test]
    linear = model_of(learner, inputs(Z), rows, truth, 0.5)(tests)
    exact = exact_machine(learner, Z @ Z.T, rows, truth, 0.5)(tests @ Z[rows].T)
    theirs = LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000).fit(Z[rows], truth.labels[rows])
    # All stop where a step changes the loss of a row by less than 1e-9, of which a probability moves by the root.
    np.testing.assert_allclose(linear, theirs.predict_proba(tests), atol=1e-4)
    np.testing.assert_allclose(exact, linear, atol=1e-4)


@pytest.mark.parametrize("name", ["linear_svc", "logistic", "sgd"])
def test_classes_of_no_training_row_come_last(name):
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "c", "z"], 30)
    Z = np.eye(4)[np.repeat(np.arange(4), 30)] + 0.1 * rng.standard_normal((120, 4))
    truth, train = Truth(task_of(labels), labels, Folded(np.arange(120) % 3, RANDOM)), labels != "b"
    predicted = model_of(learner_of(name), inputs(Z), train, truth, 0.01)(Z)
    assert predicted.shape == (120, 4)
    assert (predicted.argmax(axis=1)[train] == truth.task.numbers(labels)[train]).mean() > 0.9
    assert (predicted[:, 1] == predicted.min(axis=1)).all()
