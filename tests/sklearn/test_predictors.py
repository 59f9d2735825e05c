"""Classifier and regressor: scikit-learn's own checks, and that they are what kafeat fits."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import kafeat
from kafeat.errors import UsageError
from kafeat.sklearn import FeatureMap, FeatureMapClassifier, FeatureMapRegressor

SMALL = {"kind": "fourier", "n_components": 32, "frequencies": "orthogonal", "weights": "uniform"}


REGRESSOR = FeatureMapRegressor(["standardize", SMALL, {"kind": "ridge", "penalty": 0.01}])


@pytest.mark.sampled
@parametrize_with_checks([FeatureMapClassifier(["standardize", SMALL]), REGRESSOR])
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


def test_a_search_sets_the_penalty(digits):
    y = load_digits().target
    model = FeatureMapClassifier(["standardize", SMALL, "ridge"])
    search = GridSearchCV(model, {"ridge__penalty": [1e-3, 1e6]}, cv=2)
    assert search.fit(digits[:400], y[:400]).best_params_ == {"ridge__penalty": 1e-3}


def test_steps_of_another_task_are_refused(digits):
    y = load_digits().target
    with pytest.raises(UsageError, match="ridge: task: expected auto or regression, got classification"):
        FeatureMapRegressor([SMALL, {"kind": "ridge", "task": "classification"}]).fit(digits, y)
    with pytest.raises(UsageError, match="expected the steps of a map, got the predictor ridge: take"):
        FeatureMap([SMALL, "ridge"]).fit(digits, y)


def test_intervals_are_those_of_the_map():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 2)), rng.standard_normal(400)
    numbers = FeatureMapRegressor(intervals=True, steps=["standardize", "ridge"]).fit(X, y)
    own = numbers.feature_map_.predict_interval(X, 0.8)
    np.testing.assert_array_equal(numbers.predict_interval(X, 0.8), own)
    assert numbers.predict_interval(X).shape == (400, 2)
    classes = FeatureMapClassifier(intervals=True, steps=["standardize", "ridge"]).fit(X, y > 0.0)
    assert classes.predict_interval(X).dtype == bool
    plain = FeatureMapRegressor(steps=["standardize", "ridge"]).fit(X, y)
    with pytest.raises(ValueError, match="fit it again .without --no-intervals"):
        plain.predict_interval(X)
