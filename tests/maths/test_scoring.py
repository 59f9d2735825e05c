"""Every score against scikit-learn, of predictions and of a constant, and what it judges."""

from __future__ import annotations

import numpy as np
import pytest

from kafeat.errors import DataError, UsageError
from kafeat.maths.scoring import SCORES, score_for
from kafeat.maths.task import task_of
from tests.zygote import ROOT

dummy = pytest.importorskip("sklearn.dummy")
metrics = pytest.importorskip("sklearn.metrics")
RNG = np.random.default_rng(4)
CLASSES = RNG.choice(["a", "b", "c"], size=90, p=[0.2, 0.5, 0.3])
NUMBERS = RNG.exponential(size=90) * 1e3
TRAIN, TEST = slice(60), slice(60, None)
ORACLES = {
    "accuracy": lambda y, p: metrics.accuracy_score(y, p.argmax(axis=1)),
    "error_rate": lambda y, p: metrics.zero_one_loss(y, p.argmax(axis=1)),
    "balanced_accuracy": lambda y, p: metrics.balanced_accuracy_score(y, p.argmax(axis=1)),
    "f1": lambda y, p: metrics.f1_score(y, p.argmax(axis=1), average="macro", zero_division=0.0),
    "auc": lambda y, p: metrics.roc_auc_score(y, p, multi_class="ovr"),
    "log_loss": metrics.log_loss,
    "brier": lambda y, p: sum(metrics.brier_score_loss(y == c, p[:, c]) for c in range(p.shape[1])),
    "r2": metrics.r2_score,
    "mae": metrics.mean_absolute_error,
    "mse": metrics.mean_squared_error,
    "rmse": lambda y, p: metrics.mean_squared_error(y, p) ** 0.5,
    "pinball": lambda y, p: np.mean([
        metrics.mean_pinball_loss(y, end, alpha=q) for end, q in zip(p, (0.05, 0.95), strict=True)
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", SCORES)
def test_every_score_has_an_oracle_and_is_documented(name):
    assert name in ORACLES
    docs = ROOT / "docs"
    assert f"`{name}_…`" in (docs / "reference/json.md").read_text()
    assert f"`{name}`" in (docs / "evaluate.md").read_text()


@pytest.mark.parametrize(
    "name", [one.name for one in SCORES.values() if one.kind == "classification" and one.judges == "numbers"]
)
def test_a_score_of_classes_that_does_not_say_that_it_judges_probabilities_judges_their_order_alone(name):
    """Ridge predicts numbers of any size, which such a score takes; `judges="probabilities"` keeps them from it."""
    task = task_of(CLASSES)
    numbers = task.targets(CLASSES) + RNG.normal(size=(90, 3))
    found = [SCORES[name].of(task, 3.0 * numbers + shift, CLASSES) for shift in (0.0, -7.0)]
    assert found == [SCORES[name].of(task, numbers, CLASSES)] * 2


@pytest.mark.parametrize(("name", "judges"), [("brier", "probabilities"), ("pinball", "intervals")])
def test_one_sentence_refuses_what_a_score_cannot_judge(name, judges):
    said = f"scoring: expected a score of what ridge predicts, got {name}, which needs {judges}: "
    with pytest.raises(UsageError, match=said):
        score_for(name, SCORES[name].kind, "ridge", ())
    assert score_for(name, SCORES[name].kind, "m", (judges,)) == SCORES[name]


@pytest.mark.parametrize("name", ORACLES)
def test_scores_are_those_of_scikit_learn(name):
    score = SCORES[name]
    if score.kind == "classification":
        task, labels = task_of(CLASSES), CLASSES
        predicted = RNG.dirichlet(np.ones(3), size=90) + 0.5 * task.targets(CLASSES)
        predicted /= predicted.sum(axis=1, keepdims=True)
        expected = ORACLES[name](task.numbers(labels), predicted)
    else:
        task, labels = task_of(NUMBERS), NUMBERS
        near = NUMBERS + RNG.normal(size=(2, 90) if name == "pinball" else 90) * 100.0
        expected = ORACLES[name](labels, near)
        predicted = task.targets(near.T)[:, :, None] if name == "pinball" else task.targets(near)
    # The labels are scaled and back again: 1e3 roundings of 90 terms at most.
    assert score.figure(task, predicted, labels) == pytest.approx(expected, rel=1e-12)
    sign = -1.0 if score.is_error else 1.0
    assert score.of(task, predicted, labels) == pytest.approx(sign * expected, rel=1e-12)
    perfect = task.targets(labels) if name != "pinball" else task.targets(labels)[:, [0, 0], None]
    assert score.of(task, perfect, labels) == pytest.approx(score.best, abs=1e-12)


@pytest.mark.parametrize("name", [name for name in ORACLES if name != "f1"])
def test_a_constant_is_the_mean_or_the_shares_of_the_classes(name):
    score, rows = SCORES[name], np.zeros((30, 1))
    labels = CLASSES if score.kind == "classification" else NUMBERS
    task = task_of(labels)
    if score.kind == "classification":
        prior = dummy.DummyClassifier(strategy="prior").fit(np.zeros((60, 1)), CLASSES[TRAIN])
        expected = ORACLES[name](task.numbers(CLASSES[TEST]), prior.predict_proba(rows))
    elif name == "pinball":
        expected = ORACLES[name](NUMBERS[TEST], np.tile(np.quantile(NUMBERS[TRAIN], [[0.05], [0.95]]), 30))
    else:
        expected = ORACLES[name](NUMBERS[TEST], np.full(30, NUMBERS[TRAIN].mean()))
    found = score.stated(score.of_constant(task, labels[TRAIN], labels[TEST]))
    assert found == pytest.approx(expected, rel=1e-12)


def test_errors_of_large_numbers_do_not_overflow():
    labels = np.array([1e300, -1e300, 3e300])
    task = task_of(labels, "regression")
    found = SCORES["rmse"].figure(task, task.targets(labels[[1, 0, 2]]), labels)
    assert found == pytest.approx(2e300 * (2 / 3) ** 0.5)


@pytest.mark.parametrize(("name", "kind"), [("brier", "regression"), ("rmse", "classification")])
def test_a_score_of_the_other_task_is_refused(name, kind):
    with pytest.raises(DataError, match=rf"scoring: expected .* for a label of .*, got {name}"):
        score_for(name, kind)
    assert score_for("auto", "regression") == SCORES["r2"]


def test_predictions_that_are_no_numbers_and_equal_numbers_have_no_score():
    labels = np.array([0, 1, 1])
    assert np.isnan(SCORES["accuracy"].of(task_of(labels), np.full((3, 2), np.nan), labels))
    assert np.isnan(SCORES["r2"].of(task_of(np.array([0.5, 1.0])), np.zeros((2, 1)), np.ones(2)))
