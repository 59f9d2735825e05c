"""The predictor that the chosen config ends in."""

import typing

import numpy as np
import pytest

import kafeat
from kafeat.errors import DataError, UsageError
from kafeat.registry import predictors
from kafeat.study.tune.space import PredictorKind

X = np.random.default_rng(0).normal(size=(200, 3))
CLASSES = np.random.default_rng(1).integers(2, size=200)
Y = np.sin(2.0 * X[:, 0])


def quick(label, **options):
    """Two trials of a few columns."""
    return kafeat.tune(X, label, 16, trials=2, jobs=1, **options)


def test_the_config_ends_in_the_predictor_and_is_else_the_same():
    plain, tuned = quick(Y), quick(Y, predictor="ridge")
    assert tuned.config.steps[:-1] == plain.config.steps
    assert tuned.yaml.endswith("\n  - kind: ridge\n")
    assert (tuned.score, tuned.columns) == (plain.score, 16)
    fm = tuned.fit()
    assert fm.predict(X).shape == (200,)
    assert fm.predictor is not None
    assert plain.fit().predictor is None


def test_a_predictor_of_the_base_is_kept():
    base = {"steps": [{"kind": "standardize"}, {"kind": "ridge", "penalty": 0.5}]}
    assert quick(Y > 0, base=base, predictor="logistic").config.predictor.recipe()["penalty"] == 0.5


def test_the_predictor_has_the_task_of_the_search():
    many = np.arange(200) % 110  # more different whole numbers than are taken for classes
    assert quick(many, predictor="ridge").config.predictor.task == "auto"
    assert quick(CLASSES, predictor="ridge", task="regression").config.predictor.task == "regression"
    assert quick(CLASSES, predictor="logistic", task="classification").fit().classes.tolist() == [0, 1]


def test_a_predictor_of_classes_is_refused_for_numbers_before_the_search():
    trials = []
    with pytest.raises(DataError, match="logistic: expected a label of classes, got numbers: ridge predicts"):
        quick(Y, predictor="logistic", progress=lambda *trial: trials.append(trial))
    assert not trials


def test_only_kinds_of_predictors_are_taken():
    assert set(typing.get_args(PredictorKind)) == set(predictors())
    with pytest.raises(UsageError, match="predictor: expected one of ridge, logistic, got 'nystroem'"):
        quick(Y, predictor="nystroem")


def test_balanced_classes_are_chosen_by_balanced_accuracy_with_weighted_rows():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(600, 3))
    labels = np.where(rows[:, 0] + rng.normal(size=600) > 2.0, "rare", "usual")
    plain, balanced = (
        kafeat.tune(rows, labels, 16, trials=3, jobs=1, predictor="ridge", class_weight=weight)
        for weight in (None, "balanced")
    )
    assert balanced.score_name == "balanced_accuracy"
    assert balanced.constant_score == 0.5
    assert balanced.score > plain.figures["balanced_accuracy"] + 0.1
    assert balanced.config.predictor.class_weight == "balanced"
    assert plain.config.predictor.class_weight == "none"
    assert balanced.notes[-1].endswith("--predictor ridge --class-weight balanced")
    found = [tuning.fit().predict(rows) == "rare" for tuning in (plain, balanced)]
    assert found[0].sum() < found[1].sum()


def test_class_weights_need_a_predictor_and_classes():
    told = "class_weight: expected a config that ends in a predictor, such as ridge"
    with pytest.raises(UsageError, match=told):
        quick(CLASSES, class_weight="balanced")
    with pytest.raises(UsageError, match=told):
        kafeat.fit({"steps": ["standardize"]}, X, CLASSES, class_weight="balanced")
    with pytest.raises(DataError, match="class_weight: balanced: expected a label of classes, got numbers"):
        quick(Y, predictor="ridge", class_weight="balanced")
