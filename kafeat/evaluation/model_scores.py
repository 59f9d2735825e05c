"""Scores of the predictions of a model that ends in a predictor, as users of it get them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from kafeat.errors import DataError
from kafeat.maths.calibration import Reliability, reliability
from kafeat.maths.scoring import figure_names, figure_of, score_of
from kafeat.maths.task import PredictionTask, class_numbers
from kafeat.model.predictor import PredictedLabels
from kafeat.types import Array, Floats


@dataclass(frozen=True)
class ModelFigures:
    """The data of the figures of a model: how honest its probabilities are, and where it errs."""

    reliability: Reliability | None = None
    """Only of classes."""
    confusion: Array | None = None
    """Number of rows (k, k) of each true class that were predicted as each; None for numbers."""
    classes: tuple[str, ...] = ()
    residuals: tuple[Floats, Floats] | None = None
    """The predicted numbers and y − ŷ, of the first label; None for classes."""


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

    def figures(self, outputs: Floats, labels: Array, deciding: str) -> dict[str, float]:
        """Return the score that decides, as `score`, every score by its name, and for classes `calibration_error`."""
        predicted, labels = self.predicted(outputs), self.named(labels)
        figures: Mapping[str, float] = {
            name: figure_of(name, self.task, predicted, labels) for name in figure_names(self.task.kind)
        }
        figures = {"score": score_of(deciding, self.task, predicted, labels), **figures}
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
        return ModelFigures(reliability(predicted, numbers), counts, tuple(map(str, self.task.classes)))
