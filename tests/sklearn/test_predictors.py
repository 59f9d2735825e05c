"""Classifier and regressor: scikit-learn's own checks, and that they are what kafeat fits."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.datasets import load_digits
from sklearn.metrics import make_scorer, r2_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import kafeat
from kafeat.errors import KafeatError, UsageError
from kafeat.sklearn import FeatureMap, FeatureMapClassifier, FeatureMapRegressor

SMALL = {"kind": "fourier", "n_components": 32, "frequencies": "orthogonal", "weights": "uniform"}


# Their map learns nothing from the rows, so it does not change when rows are repeated.
REGRESSOR = FeatureMapRegressor([{**SMALL, "gamma": 0.02}, {"kind": "ridge", "penalty": 0.01}])
REPEATED = "the map counts every row once, and copies of a row are in several folds"


def failing(estimator):
    """scikit-learn repeats rows; weights stand for them as docs/predict.md says."""
    names = [f"check_sample_weight_equivalence_on_{rows}_data" for rows in ("dense", "sparse")]
    return {} if estimator is REGRESSOR else dict.fromkeys(names, REPEATED)


@pytest.mark.sampled
@parametrize_with_checks(
    [FeatureMapClassifier(["standardize", SMALL]), REGRESSOR], expected_failed_checks=failing
)
@pytest.mark.usefixtures("one_limit")
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_they_are_what_kafeat_fits(digits):
    y = load_digits().target
    steps = [{"kind": "standardize"}, SMALL, {"kind": "ridge", "task": "classification"}]
    ours = FeatureMapClassifier(["standardize", SMALL]).fit(digits, y)
    plain = kafeat.fit({"dtype": "float64", "steps": steps}, digits, y, intervals=False)
    assert ours.feature_map_.dumps() == plain.dumps()
    assert np.array_equal(ours.predict(digits), plain.predict(digits))
    assert np.array_equal(ours.predict_proba(digits), plain.predict_proba(digits))
    assert np.array_equal(pickle.loads(pickle.dumps(ours)).predict(digits), ours.predict(digits))
    # Over seeds R² is 0.61 with a deviation of 0.03; with 32 columns it is 0.4.
    numbers = FeatureMapRegressor(["standardize", {**SMALL, "n_components": 64}]).fit(digits, y)
    assert numbers.feature_map_.classes is None
    assert numbers.score(digits, y) > 0.5


RNG = np.random.default_rng(0)
ROWS, GROUPS = RNG.standard_normal((200, 3)), RNG.integers(0, 9, 200)
WEIGHTS, Y = RNG.integers(0, 4, 200).astype(float), ROWS[:, 0] * ROWS[:, 1] + GROUPS
TABLE = pd.DataFrame(ROWS, columns=["c0", "c1", "c2"])
STEPS = [{"kind": "pca"}, {"kind": "trees", "n_trees": 20}, {"kind": "ridge", "task": "regression"}]


@pytest.mark.parametrize("rows", [ROWS, csr_array(ROWS), TABLE], ids=["array", "sparse", "frame"])
def test_weights_and_groups_are_those_of_columns(rows):
    whole = TABLE.assign(weight=WEIGHTS, who=GROUPS, y=Y)
    config = {"dtype": "float64", "steps": [*STEPS[:1], SMALL, *STEPS[2:]]}
    plain = kafeat.fit(config, whole, "y", weight="weight", split_by="group:who")
    ours = FeatureMapRegressor(config["steps"], intervals=True).fit(rows, Y, WEIGHTS.tolist(), GROUPS)
    # products of sparse rows are rounded otherwise
    np.testing.assert_allclose(ours.predict(rows), plain.predict(TABLE), rtol=1e-7)
    np.testing.assert_allclose(ours.predict_interval(rows), plain.predict_interval(TABLE), rtol=1e-7)
    assert ours.feature_map_.config.split_by is None  # other tables have no such column


def test_metadata_are_routed_to_where_they_are_requested():
    with config_context(enable_metadata_routing=True):
        model = FeatureMapRegressor(STEPS).set_fit_request(sample_weight=True, groups=True)
        scored = {"scoring": make_scorer(r2_score).set_score_request(sample_weight=True), "cv": GroupKFold(3)}
        pipe = make_pipeline(FeatureMap("standardize").set_fit_request(groups=True), model)
        given = {"sample_weight": WEIGHTS, "groups": GROUPS}
        found = cross_validate(pipe, ROWS, Y, params=given, return_estimator=True, **scored)
        search = GridSearchCV(pipe, {"featuremapregressor__seed": [0]}, **scored).fit(ROWS, Y, **given)
        assert search.best_score_ == pytest.approx(found["test_score"].mean(), rel=1e-12)
    train, test = next(GroupKFold(3).split(ROWS, Y, GROUPS))
    scaled = StandardScaler().fit(ROWS[train]).transform(ROWS)
    alone = FeatureMapRegressor(STEPS).fit(scaled[train], Y[train], WEIGHTS[train], GROUPS[train])
    expected = alone.predict(scaled[test])
    np.testing.assert_allclose(found["estimator"][0].predict(ROWS[test]), expected, rtol=1e-9)
    assert found["test_score"][0] == pytest.approx(r2_score(Y[test], expected, sample_weight=WEIGHTS[test]))


def test_a_class_without_weight_is_absent():
    y = GROUPS % 3
    model = FeatureMapClassifier([SMALL]).fit(ROWS, y, sample_weight=1.0 * (y > 0))
    assert model.predict_proba(ROWS).shape == (200, len(model.classes_)) == (200, 2)
    assert set(model.predict(ROWS)) <= {1, 2} == set(model.classes_)


@pytest.mark.parametrize(("given", "told"), [
    ({"sample_weight": np.zeros(200)}, "sample_weight: expected a weight above 0, got only zeros"),
    ({"sample_weight": [-1.0] * 200}, "row 1 .*weight '<sample_weight>': expected 0 or a number from 1e-100"),
    ({"groups": GROUPS[1:]}, "groups: expected one for each of 200 rows, got 199"),
    ({"sample_weight": [np.nan] * 200}, "^Input sample_weight contains NaN"),
    ({"y": [0.5, np.nan] * 100}, r"^Input y contains NaN: label: row 2 .*; leave out rows without"),
    ({"X": np.where(ROWS > 0, ROWS, np.inf)}, r"^Input X contains infinity: row \d.*, column \d: expected"),
    ({"X": np.array([["1.5", "x"]] * 200, object)}, "row 1 .*, column 1: expected .*, got 'x'; text needs a data"),
])  # fmt: skip
def test_what_a_regressor_cannot_learn_from_is_placed(given, told):
    with pytest.raises(KafeatError, match=told) as caught:
        FeatureMapRegressor(["standardize", "ridge"]).fit(**{"X": ROWS, "y": Y, **given})
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(("y", "told"), [
    (Y + 0.5, r"^y: expected classes, got numbers \(.*: continuous\): use FeatureMapRegressor"),
    (np.array(["a", None] * 100, dtype=object), "label: row 2 .*: expected text, got None; leave out rows"),
    (np.column_stack([Y > 0, Y > 1]), "^y: y should be a 1d array"),
])  # fmt: skip
def test_what_a_classifier_cannot_learn_is_placed(y, told):
    with pytest.raises(KafeatError, match=told) as caught:
        FeatureMapClassifier(["standardize", "ridge"]).fit(ROWS, y)
    assert isinstance(caught.value, ValueError)


def test_steps_of_another_task_are_refused(digits):
    y = load_digits().target
    with pytest.raises(UsageError, match="ridge: task: expected auto or regression, got classification"):
        FeatureMapRegressor([SMALL, {"kind": "ridge", "task": "classification"}]).fit(digits, y)
    told = "steps: expected ridge, which predicts numbers, got logistic for classes"
    for config in (["pca", "logistic"], ["pca", {"kind": "logistic", "task": "classification"}]):
        with pytest.raises(UsageError, match=told):
            FeatureMapRegressor(config=config).fit(digits, y)
    with pytest.raises(UsageError, match="expected the steps of a map, got the predictor ridge: use"):
        FeatureMap([SMALL, "ridge"]).fit(digits, y)


def test_intervals_are_those_of_the_map():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 2)), rng.standard_normal(400)
    classes = FeatureMapClassifier(intervals=True, steps=["standardize", "ridge"]).fit(X, y > 0.0)
    assert classes.predict_interval(X).dtype == bool
    plain = FeatureMapRegressor(steps=["standardize", "ridge"]).fit(X, y)
    with pytest.raises(ValueError, match="fit it again .without --no-intervals"):
        plain.predict_interval(X)
