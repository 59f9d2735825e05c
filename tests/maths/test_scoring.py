"""Names of scores, and the score of a constant prediction against scikit-learn's dummy learners."""

from typing import get_args

import numpy as np
import pytest

from kafeat.io.options import SCORES
from kafeat.maths.scoring import ScoringName, figure_names, score_of_constant
from kafeat.maths.task import task_of


def test_options_and_annotations_name_the_scores_that_have_a_formula():
    known = {*figure_names("classification"), *figure_names("regression")}
    assert set(SCORES) == known
    assert set(get_args(ScoringName)) == {"auto", *known}


dummy = pytest.importorskip("sklearn.dummy")
metrics = pytest.importorskip("sklearn.metrics")
RNG = np.random.default_rng(4)
CLASSES = RNG.choice(["a", "b", "c"], size=90, p=[0.2, 0.5, 0.3])
NUMBERS = RNG.exponential(size=90) * 1e3
TRAIN, TEST = slice(60), slice(60, None)


@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy", "log_loss", "auc"])
def test_classes_are_predicted_by_their_shares(name):
    prior = dummy.DummyClassifier(strategy="prior").fit(np.zeros((60, 1)), CLASSES[TRAIN])
    rows, true = np.zeros((30, 1)), CLASSES[TEST]
    expected = {
        "accuracy": lambda: metrics.accuracy_score(true, prior.predict(rows)),
        "balanced_accuracy": lambda: metrics.balanced_accuracy_score(true, prior.predict(rows)),
        "log_loss": lambda: -metrics.log_loss(true, prior.predict_proba(rows)),
        "auc": lambda: metrics.roc_auc_score(true, prior.predict_proba(rows), multi_class="ovr"),
    }[name]()
    found = score_of_constant(name, task_of(CLASSES), CLASSES[TRAIN], true)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["r2", "mse", "mae"])
def test_numbers_are_predicted_by_their_mean(name):
    mean, true = np.full(30, NUMBERS[TRAIN].mean()), NUMBERS[TEST]
    expected = {
        "r2": lambda: metrics.r2_score(true, mean),
        "mse": lambda: -metrics.mean_squared_error(true, mean),
        "mae": lambda: -metrics.mean_absolute_error(true, mean),
    }[name]()
    # the labels are scaled and back again: 1e3 roundings of 60 terms at most
    assert score_of_constant(name, task_of(NUMBERS), NUMBERS[TRAIN], true) == pytest.approx(
        expected, rel=1e-12
    )


def test_several_labels_have_the_mean_of_each():
    labels = np.column_stack([NUMBERS, -2.0 * NUMBERS])
    assert score_of_constant("auto", task_of(labels), labels, labels) == pytest.approx(0.0, abs=1e-14)
