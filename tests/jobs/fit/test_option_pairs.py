"""Options together: weights are repeated rows, and rows of no weight, of test or without a label are removed rows.

The map does not depend on the rows, so that models on other rows can be compared. Scikit-learn is the oracle.
"""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.errors import DataError

linear = pytest.importorskip("sklearn.linear_model")
class_weight = pytest.importorskip("sklearn.utils.class_weight")

N = 240
RNG = np.random.default_rng(11)
X = RNG.normal(size=(N, 3))
OF = np.arange(N) % 24
CLASSES = np.select([X[:, 0] > 0.9, X[:, 1] > 0.2], [2, 0], 1)
NUMBERS = X[:, 0] + 0.3 * RNG.normal(size=N)
# Weights hang on the class, so that counts of rows and sums of weights differ.
W = np.where(CLASSES == 2, 3, 1) * RNG.integers(0, 3, N)
UNLABELLED, TEST = np.arange(N) % 7 == 2, np.arange(N) % 5 == 0
OPTIONS = ("weight", "class_weight", "split_by", "split", "drop_unlabelled")
VALUES = dict(zip(OPTIONS, ("w", "balanced", "group:g", "part", True), strict=True))
MAP = {"kind": "fourier", "n_components": 16, "gamma": 0.3, "frequencies": "orthogonal", "weights": "uniform"}


def table(label, rows=None, **columns):
    every = {f"x{i}": X[:, i] for i in range(3)} | {"g": OF, "t": np.arange(N) // 2, "y": label, **columns}
    rows = np.arange(N) if rows is None else rows
    return pa.table(
        {name: pa.array(np.asarray(values)[rows], from_pandas=True) for name, values in every.items()}
    )


def with_options(label, options):
    """A table with a column for each option, and the rows that a fit with all of them is one on."""
    columns, times = {}, np.ones(N, int)
    if "weight" in options:
        columns, times = {"w": W}, times * W
    if "split" in options:
        columns, times = columns | {"part": np.where(TEST, "test", "train")}, times * ~TEST
    if "drop_unlabelled" in options:
        label, times = np.where(UNLABELLED, np.nan, label), times * ~UNLABELLED
    return table(label, **columns), np.repeat(np.arange(N), times)


def config(kind, penalty=0.01, **more):
    steps = [MAP, {"kind": kind, "penalty": penalty, **more}]
    return {"dtype": "float64", "columns": {"include": ["x*"]}, "steps": steps}


PAIRS = list(combinations(OPTIONS, 2))
SETS = [(), *((one,) for one in OPTIONS), *PAIRS, OPTIONS]
# Commands that take a second: all options together, and the pairs with the slow tests.
COMMANDS = [OPTIONS, *(pytest.param(pair, marks=pytest.mark.slow) for pair in PAIRS)]
KINDS = {"numbers": ("ridge", NUMBERS), "ridge": ("ridge", CLASSES), "logistic": ("logistic", CLASSES)}


FITS = [(one, some) for one in KINDS for some in SETS if one != "numbers" or "class_weight" not in some]


@pytest.mark.sampled
@pytest.mark.parametrize(("predictor", "options"), FITS)
def test_a_fit_is_that_of_scikit_learn_on_repeated_and_removed_rows(predictor, options):
    kind, label = KINDS[predictor]
    data, rows = with_options(label, options)
    task = "regression" if label is NUMBERS else "classification"
    given = {name: VALUES[name] for name in options}
    fm = kafeat.fit(config(kind, task=task), data, "y", jobs=1, **given)
    balanced = "balanced" if "class_weight" in options else None
    Z, y = fm.transform(X)[rows], label[rows]
    w = class_weight.compute_sample_weight(balanced, y)
    state, mean = fm.predictor.fitted.state, np.average(Z, axis=0, weights=w)
    spread = np.average((Z - mean) ** 2, axis=0, weights=w)
    assert float(state["lambda"]) == pytest.approx(0.01 * spread.mean() * w.sum(), rel=1e-9)
    strength = float(state["lambda"])
    if kind == "ridge":
        targets = y if label is NUMBERS else np.eye(3)[np.searchsorted([0, 1, 2], y)]
        theirs = linear.Ridge(alpha=strength, solver="cholesky").fit(Z, targets, w)
        np.testing.assert_allclose(state["weights"].T, np.atleast_2d(theirs.coef_), rtol=0, atol=1e-9)
    else:
        theirs = linear.LogisticRegression(
            C=1.0 / strength, tol=1e-10, max_iter=10_000, class_weight=balanced
        )
        expected = theirs.fit(Z, y).predict_proba(fm.transform(X))
        # Both stop at gradients of about 1e-9 a row, where the loss has a curvature of at least λ/n; those of
        # scikit-learn are not as small as that.
        near = max(len(rows) * 2e-9 / strength, 1e-5)
        np.testing.assert_allclose(fm.predict_proba(X), expected, rtol=0, atol=near)
    assert fm.provenance.rows_learned == len(set(rows.tolist()))
    assert fm.provenance.weight == given.get("weight")


@pytest.mark.sampled
@pytest.mark.parametrize("split_by", ["group:g", "time:t"])
@pytest.mark.parametrize(
    ("predictor", "balanced"),
    [(one, some) for one in KINDS for some in ("none", "balanced") if one != "numbers" or some == "none"],
)
def test_where_copies_share_a_fold_all_that_is_chosen_is_the_same(predictor, balanced, split_by):
    """Weights of 2 are every row twice: penalty, probabilities and errors of rows held out are the same."""
    kind, label = KINDS[predictor]
    task = "regression" if label is NUMBERS else "classification"
    recipe = config(kind, "auto", class_weight=balanced, task=task)
    weighted = kafeat.fit(recipe, table(label, w=np.full(N, 2)), "y", weight="w", split_by=split_by, jobs=1)
    twice = kafeat.fit(recipe, table(label, np.repeat(np.arange(N), 2)), "y", split_by=split_by, jobs=1)
    own, other = weighted.predictor, twice.predictor
    assert own.fitted.step.recipe() == other.fitted.step.recipe()
    # The calibration of ridge and the loss of logistic regression are minimized to a gradient, not to the last digit.
    near = {"rtol": 1e-4, "atol": 1e-5}
    of = "predict" if label is NUMBERS else "predict_proba"
    np.testing.assert_allclose(getattr(weighted, of)(X), getattr(twice, of)(X), **near)
    np.testing.assert_allclose(own.intervals.error[0], other.intervals.error[0], **near)
    if label is CLASSES:
        np.testing.assert_allclose(own.intervals.calibration_error, other.intervals.calibration_error, **near)


def test_a_class_without_weight_is_no_class():
    w = np.where(CLASSES == 2, 0, 1)
    for kind in ("ridge", "logistic"):
        for balanced in ("none", "balanced"):
            recipe = config(kind, class_weight=balanced)
            weighted = kafeat.fit(recipe, table(CLASSES, w=w), "y", weight="w", split_by="group:g", jobs=1)
            removed = kafeat.fit(recipe, table(CLASSES, np.flatnonzero(w)), "y", split_by="group:g", jobs=1)
            assert weighted.classes.tolist() == removed.classes.tolist() == [0, 1]
            weights = (fm.predictor.fitted.state["weights"] for fm in (weighted, removed))
            np.testing.assert_allclose(*weights, rtol=0, atol=1e-6)
    with pytest.raises(DataError, match="label: expected at least two classes, got only '1'"):
        kafeat.fit(config("ridge"), table(CLASSES, w=(CLASSES == 1).astype(int)), "y", weight="w", jobs=1)


def test_the_unit_of_weights_is_free():
    """Weights that are shares of a whole give the model of their counts, up to the two things that count as one row."""
    for kind in ("ridge", "logistic"):
        tables = (table(CLASSES, w=W * unit) for unit in (1.0, 1.0 / W.sum()))
        made = [kafeat.fit(config(kind), one, "y", weight="w", jobs=1).predict_proba(X) for one in tables]
        np.testing.assert_allclose(*made, rtol=0, atol=0.02 if kind == "ridge" else 1e-5)


@pytest.mark.parametrize("options", COMMANDS)
@pytest.mark.parametrize("kind", ["ridge", "logistic"])
def test_evaluate_scores_the_model_of_fit(kind, options):
    given = {name: VALUES[name] for name in options} | {"split": "part"}
    data, _ = with_options(CLASSES, {*options, "split"})
    balanced, recipe = given.pop("class_weight", "none"), config(kind, "auto", task="classification")
    recipe["steps"][-1]["class_weight"] = balanced
    found = kafeat.evaluate(config=recipe, data=data, label="y", jobs=1, rows=10, exact_rows=20, **given)
    fm = kafeat.fit(recipe, data, "y", jobs=1, **given)
    test = TEST & ~UNLABELLED if "drop_unlabelled" in options else TEST
    assert found["rows_test"] == test.sum()
    right = fm.predict_proba(X[test])[np.arange(test.sum()), np.searchsorted([0, 1, 2], CLASSES[test])]
    assert found["log_loss_model"] == pytest.approx(-np.log(right).mean(), rel=1e-6)


@pytest.mark.parametrize("options", COMMANDS)
def test_tune_chooses_as_without_the_rows_that_it_leaves_out(options):
    """The search counts every row once, whatever it weighs."""
    given = {name: VALUES[name] for name in options}
    data, _ = with_options(CLASSES, options)
    times = np.ones(N, bool)
    times &= ~TEST if "split" in options else True
    times &= ~UNLABELLED if "drop_unlabelled" in options else True
    alone = {name: given[name] for name in ("class_weight", "split_by") if name in given}
    same = {"columns": 8, "trials": 2, "jobs": 1, "predictor": "ridge", "task": "classification"}
    plain = table(CLASSES, np.flatnonzero(times))
    # The label of the first table may have gaps, and numbers that are no whole ones: classes have the same order.
    one, other = kafeat.tune(data, "y", **given, **same), kafeat.tune(plain, "y", **alone, **same)
    assert (one.config, one.score, one.error) == (other.config, other.score, other.error)


def test_weights_of_tune_are_no_feature():
    data = table(NUMBERS, w=W)
    # A fit of a map does not know the option, so its config names the column.
    for predictor, excluded in ((None, ("w",)), ("ridge", ())):
        tuned = kafeat.tune(data, "y", 8, trials=2, jobs=1, weight="w", predictor=predictor)
        assert tuned.config.columns.exclude == excluded
        assert "w" not in tuned.fit().columns.names
        without = kafeat.tune(table(NUMBERS), "y", 8, trials=2, jobs=1, predictor=predictor)
        assert (tuned.score, tuned.config.steps) == (without.score, without.config.steps)


def test_the_fit_of_tune_is_that_of_its_config():
    data, _ = with_options(CLASSES, ("weight", "split"))
    given = {"weight": "w", "split": "part", "jobs": 1}
    tuned = kafeat.tune(data, "y", 8, trials=2, predictor="ridge", class_weight="balanced", **given)
    assert tuned.fit().dumps() == kafeat.fit(tuned.config, data, "y", **given).dumps()


def test_values_of_validate_are_scored_by_the_task_of_the_predictor():
    whole = np.round(3.0 * NUMBERS)
    steps = [{**MAP, "gamma": {"validate": [0.1, 1.0]}}, {"kind": "ridge", "task": "regression"}]
    recipe = {**config("ridge"), "steps": steps, "search": {"scoring": "mae"}}
    [search, _] = kafeat.fit(recipe, table(whole), "y", jobs=1).provenance.searches
    assert -2.0 < max(search.scores) < 0.0
    recipe["steps"] = steps[:1]
    asked = {"label": "y", "task": "regression", "jobs": 1, "rows": 10, "exact_rows": 20}
    found = kafeat.evaluate(config=recipe, data=table(whole), **asked)
    assert found["task"] == "regression"
