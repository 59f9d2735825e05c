"""Scores of predicted targets, by name. A higher score is better."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from kafeat.errors import DataError
from kafeat.maths.task import PredictionTask, r2
from kafeat.types import Array, Floats

ScoringName = Literal["auto", "accuracy", "balanced_accuracy", "f1", "auc", "r2", "mae", "mse"]


def score_of(scoring: ScoringName, task: PredictionTask, predicted: Floats, labels: Array) -> float:
    """Return the score of predicted targets (n, k); errors are negative. NaN if it is not defined.

    `f1` and `auc` are means over the classes, each against the others (Hand & Till 2001, without weights).
    """
    if scoring == "auto":
        return task.score(predicted, labels)
    if not np.isfinite(predicted).all():
        return float("nan")
    if task.classes is None:
        if scoring not in _OF_NUMBERS:
            raise DataError(f"scoring: expected {_named(_OF_NUMBERS)} for a label of numbers, got {scoring}")
        return _OF_NUMBERS[scoring](predicted * task.unit, task.targets(labels) * task.unit)
    if scoring not in _OF_CLASSES:
        raise DataError(f"scoring: expected {_named(_OF_CLASSES)} for a label of classes, got {scoring}")
    if predicted.shape[1] == 1:
        predicted = np.hstack([-predicted, predicted])
    return _OF_CLASSES[scoring](predicted, task.numbers(labels))


def highest_score(scoring: ScoringName) -> float:
    """Return the score of perfect predictions."""
    return 0.0 if scoring in ("mae", "mse") else 1.0


def _named(scores: dict[str, Callable[[Floats, Array], float]]) -> str:
    return " or ".join(scores)


def _accuracy(predicted: Floats, classes: Array) -> float:
    return float((predicted.argmax(axis=1) == classes).mean())


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


def _mae(predicted: Floats, Y: Floats) -> float:
    return -float(np.abs(Y - predicted).mean())


def _mse(predicted: Floats, Y: Floats) -> float:
    return -float(((Y - predicted) ** 2).mean())


_OF_CLASSES: dict[str, Callable[[Floats, Array], float]] = {
    "accuracy": _accuracy,
    "balanced_accuracy": _balanced_accuracy,
    "f1": _f1,
    "auc": _auc,
}
_OF_NUMBERS: dict[str, Callable[[Floats, Array], float]] = {"r2": r2, "mae": _mae, "mse": _mse}
