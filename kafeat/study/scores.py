"""The scores of an evaluation, of learners and of finished models: one decides, the others have their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from kafeat.errors import DataError, UsageError
from kafeat.maths.calibration import reliability
from kafeat.maths.scoring import check_scoring, figure_names, figure_of, rates, score_of, usual_scoring
from kafeat.maths.task import PredictionTask, class_numbers
from kafeat.model.predictor import PredictedLabels
from kafeat.pictures.figure_data import Curve, ModelFigures
from kafeat.types import Array, Floats

_RESAMPLES = 100
_MOST_POINTS = 400


@dataclass(frozen=True)
class Scoring:
    """The rule that scores predictions: the task, the score that decides, and true if predictions are probabilities."""

    task: PredictionTask
    first: str
    probabilities: bool

    @classmethod
    def of(cls, task: PredictionTask, names: Sequence[str], probabilities: bool, learner: str) -> Scoring:
        """Return the scoring by these names, or the usual one of the task."""
        for name in names:
            check_scoring(name, task.kind)
        if "log_loss" in names and not probabilities:
            raise UsageError(
                f"scoring: expected --learner logistic with log_loss, got {learner}, which predicts no probabilities"
            )
        return cls(task, names[0] if names else usual_scoring(task.kind), probabilities)

    def score(self, predicted: Floats, labels: Array) -> float:
        """Return the score that decides; a higher one is better, so an error counts as negative."""
        return score_of(self.first, self.task, predicted, labels)

    def figures(self, predicted: Floats, labels: Array) -> dict[str, float | None]:
        """Return every score and error of the task by its name; None without probabilities where it needs them."""
        return {
            name: None
            if name == "log_loss" and not self.probabilities
            else figure_of(name, self.task, predicted, labels)
            for name in figure_names(self.task.kind)
        }

    def uncertainty(self, predicted: Floats, labels: Array) -> float | None:
        """Return the standard error of the score, from resampled rows; None for scores that have a formula of it."""
        if self.first in ("accuracy", "error_rate", "r2"):
            return None
        rng = np.random.default_rng(0)
        draws = (rng.integers(len(labels), size=len(labels)) for _ in range(_RESAMPLES))
        scores = [score_of(self.first, self.task, predicted[rows], labels[rows]) for rows in draws]
        known = [one for one in scores if np.isfinite(one)]
        return float(np.std(known)) if len(known) > 1 else None

    def curve(self, predicted: Floats, labels: Array) -> Curve | None:
        """Return the receiver operating characteristic of two classes, at most 400 points of it."""
        classes = self.task.classes
        if classes is None or len(classes) != 2 or not np.isfinite(predicted).all():
            return None
        second = predicted[:, -1] - (predicted[:, 0] if predicted.shape[1] == 2 else 0.0)
        false, true = rates(second, self.task.numbers(labels) == 1)
        if len(false) > _MOST_POINTS:
            # evenly in both shares, so that steep parts keep their points
            way = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(false)) + np.abs(np.diff(true)))])
            some = np.unique(np.searchsorted(way, np.linspace(0.0, way[-1], _MOST_POINTS)))
            false, true = false[some], true[some]
        return false, true


@dataclass(frozen=True)
class ModelScoring:
    """The task of a model on labels: all classes that it knows and those that the labels have beside, or numbers.

    Classes are compared by their names, as another file may hold them in another type.
    """

    task: PredictionTask
    model: PredictedLabels
    places: Array
    """The number of each class of the model among all classes."""

    @classmethod
    def of(cls, task: PredictionTask, model: PredictedLabels) -> ModelScoring:
        """Return the scoring of a model on labels of this task; refuse a model of the other task."""
        predicts = "regression" if model.classes is None else "classification"
        if predicts != task.kind:
            told = {"regression": "numbers", "classification": "classes"}
            raise DataError(
                f"label: expected {told[predicts]}, which the model predicts, got {told[task.kind]}: say "
                f"--task {predicts}"
            )
        if task.classes is None:
            return cls(task, model, np.empty(0, dtype=np.intp))
        known, own = model.class_names, [model.name_of(one) for one in task.classes.tolist()]
        text = model.type == "text"
        if text != (task.classes.dtype.kind == "O") and not set(own) <= set(known):
            wanted, found = ("text", "numbers") if text else ("numbers", "text")
            raise DataError(
                f"label: expected {wanted}, as the classes of the model are, got {found}: "
                "give the column that the model was fitted with"
            )
        classes = sorted({*known, *own}, key=Decimal if model.type in ("integer", "number") else None)
        places = np.array([classes.index(one) for one in known])
        return cls(PredictionTask("classification", np.array(classes, dtype=object)), model, places)

    def predicted(self, outputs: Floats) -> Floats:
        """Return what the model predicts as the task has it: probabilities of all classes, or scaled numbers."""
        if self.task.classes is None:
            return (outputs - self.task.centre) / self.task.unit
        wide: Floats = np.zeros((len(outputs), len(self.task.classes)))
        wide[:, self.places] = outputs
        return wide

    def named(self, labels: Array) -> Array:
        """Return classes by their names, and numbers as they are."""
        if self.task.classes is None:
            return labels
        classes, numbers = class_numbers(labels)
        return np.array([self.model.name_of(one) for one in classes.tolist()], dtype=object)[numbers]

    def figures(self, outputs: Floats, labels: Array, deciding: str) -> dict[str, float | None]:
        """Return the score that decides, as `score`, every score by its name, and for classes `calibration_error`."""
        predicted, labels = self.predicted(outputs), self.named(labels)
        scoring = Scoring(self.task, deciding, probabilities=True)
        figures = {"score": scoring.score(predicted, labels), **scoring.figures(predicted, labels)}
        if self.task.classes is not None:
            figures["calibration_error"] = reliability(predicted, self.task.numbers(labels)).error
        return figures

    def drawn(self, outputs: Floats, labels: Array) -> ModelFigures:
        """Return the data of the figures."""
        predicted = self.predicted(outputs)
        if self.task.classes is None:
            unit, centre = (float(np.atleast_1d(one)[0]) for one in (self.task.unit, self.task.centre))
            near, true = predicted[:, 0] * unit + centre, self.task.targets(labels)[:, 0] * unit + centre
            return ModelFigures(residuals=(near, true - near))
        numbers, k = self.task.numbers(self.named(labels)), len(self.task.classes)
        counts = np.bincount(numbers * k + predicted.argmax(axis=1), minlength=k * k).reshape(k, k)
        return ModelFigures(reliability(predicted, numbers), (counts, tuple(map(str, self.task.classes))))
