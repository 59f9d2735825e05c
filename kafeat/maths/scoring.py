"""Scores of predicted targets, by name. A higher score is better, so an error counts as negative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from kafeat.errors import DataError
from kafeat.maths.task import Kind, PredictionTask, r2
from kafeat.types import Array, Floats

ScoringName = Literal[
    "auto", "accuracy", "error_rate", "balanced_accuracy", "f1", "auc", "log_loss", "r2", "mae", "mse"
]

SQUARED_ERROR = "squared_error"
"""The mean squared error of the targets, of classes too: a proper score that needs no probabilities."""


def score_of(scoring: str, task: PredictionTask, predicted: Floats, labels: Array) -> float:
    """Return the score of predicted targets (n, k); errors are negative. NaN if it is not defined.

    `f1` and `auc` are means over the classes, each against the others (Hand & Till 2001, without weights). `log_loss`
    takes the predictions as probabilities.
    """
    if scoring == "auto":
        scoring = usual_scoring(task.kind)
    if scoring == SQUARED_ERROR:
        return -_mse(predicted, task.targets(labels))
    check_scoring(scoring, task.kind)
    measure = figure_of(scoring, task, predicted, labels)
    return -measure if lower_is_better(scoring) else measure


def score_of_constant(scoring: str, task: PredictionTask, known: Array, labels: Array) -> float:
    """Return the score on `labels` of one prediction for all rows: the mean of `known`, or its shares of the classes.

    The class with the largest share is predicted. A map is worth what it gains over this.
    """
    return score_of(scoring, task, constant_predictions(task, known, len(labels)), labels)


def constant_predictions(task: PredictionTask, known: Array, n: int) -> Floats:
    """Return that prediction for n rows, (n, k)."""
    if task.classes is None:
        constant = task.targets(known).mean(axis=0)
    else:
        constant = np.bincount(task.numbers(known), minlength=len(task.classes)) / len(known)
    return np.broadcast_to(constant, (n, len(constant)))


def figure_of(name: str, task: PredictionTask, predicted: Floats, labels: Array) -> float:
    """Return a score or an error by its name, as it is usually stated: an error is positive."""
    if not np.isfinite(predicted).all():
        return float("nan")
    if task.classes is None:
        unit = 1.0 if name == "r2" else task.unit  # squares in the unit of the label may overflow
        return _OF_NUMBERS[name](predicted * unit, task.targets(labels) * unit)
    if predicted.shape[1] == 1:
        predicted = np.hstack([-predicted, predicted])
    return _OF_CLASSES[name](predicted, task.numbers(labels))


def figure_names(kind: Kind) -> tuple[str, ...]:
    """Return the names of the scores and errors of a task."""
    return tuple(_OF_NUMBERS if kind == "regression" else _OF_CLASSES)


def usual_scoring(kind: Kind) -> str:
    """Return the score that counts if none is asked for."""
    return "r2" if kind == "regression" else "accuracy"


def proper_scoring(kind: Kind) -> str:
    """Return the score to choose a map by if none is asked for.

    It is proper: accuracy prefers constants where one class is common.
    """
    return "r2" if kind == "regression" else "log_loss"


def check_scoring(scoring: str, kind: Kind) -> None:
    """Refuse a score of the other task."""
    if scoring not in figure_names(kind):
        label = "numbers" if kind == "regression" else "classes"
        raise DataError(
            f"scoring: expected {' or '.join(figure_names(kind))} for a label of {label}, got {scoring}"
        )


def lower_is_better(name: str) -> bool:
    """Return True for errors."""
    return name in ("error_rate", "log_loss", "mae", "mse", SQUARED_ERROR)


def stated(name: str, score: float) -> float:
    """Return a score as it is usually stated: an error is positive."""
    return -score if lower_is_better(name) else score


def spell_score(name: str) -> str:
    """Return the name of a score for people."""
    known = {"auc": "AUC", "f1": "F1", "r2": "R²", "mae": "MAE", "mse": "MSE"}
    return known.get(name, name.replace("_", " "))


def highest_score(scoring: str) -> float:
    """Return the score of perfect predictions."""
    return 0.0 if lower_is_better(scoring) else 1.0


def _accuracy(predicted: Floats, classes: Array) -> float:
    return float((predicted.argmax(axis=1) == classes).mean())


def _error_rate(predicted: Floats, classes: Array) -> float:
    return float((predicted.argmax(axis=1) != classes).mean())


def _balanced_accuracy(predicted: Floats, classes: Array) -> float:
    right = predicted.argmax(axis=1) == classes
    return float(np.mean([right[classes == one].mean() for one in np.unique(classes)]))


def _f1(predicted: Floats, classes: Array) -> float:
    chosen = predicted.argmax(axis=1)
    each = []
    for one in np.union1d(classes, chosen):
        hits = np.sum((chosen == one) & (classes == one))
        each.append(2.0 * hits / (np.sum(chosen == one) + np.sum(classes == one)))
    return float(np.mean(each))


def _auc(predicted: Floats, classes: Array) -> float:
    from scipy.stats import rankdata

    each = []
    for one in np.unique(classes):
        own = classes == one
        positives, negatives = int(own.sum()), int((~own).sum())
        if not negatives:
            return float("nan")
        ranks = rankdata(predicted[:, one])[own].sum()
        each.append((ranks - positives * (positives + 1) / 2) / (positives * negatives))
    return float(np.mean(each))


def _log_loss(predicted: Floats, classes: Array) -> float:
    """Return the mean of −log p of the true class; p is at least the machine epsilon."""
    of_class = predicted[np.arange(len(classes)), classes]
    return -float(np.log(np.maximum(of_class, np.finfo(np.float64).eps)).mean())


def _mae(predicted: Floats, Y: Floats) -> float:
    return float(np.abs(Y - predicted).mean())


def _mse(predicted: Floats, Y: Floats) -> float:
    return float(((Y - predicted) ** 2).mean())


_OF_CLASSES: dict[str, Callable[[Floats, Array], float]] = {
    "accuracy": _accuracy,
    "error_rate": _error_rate,
    "balanced_accuracy": _balanced_accuracy,
    "f1": _f1,
    "auc": _auc,
    "log_loss": _log_loss,
}
_OF_NUMBERS: dict[str, Callable[[Floats, Array], float]] = {"r2": r2, "mae": _mae, "mse": _mse}
