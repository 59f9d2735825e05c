"""Type, classes and spread of the labels of all rows, counted while rows are read."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kafeat.errors import DataError
from kafeat.maths.task import MOST_CLASSES, PredictionTask, TaskKind, class_numbers, joined, task_of
from kafeat.maths.units import power_of_two
from kafeat.model.predictor import LabelType, PredictedLabels
from kafeat.types import Array, Floats

_NONE: Array = np.empty(0)


@dataclass
class LabelSummary:
    """The labels of rows that are added block by block: (n,), or (n, k) for k labels of numbers."""

    rows: int = 0
    columns: int = 1
    type: LabelType = "number"
    distinct: Array = field(default_factory=lambda: _NONE)
    """The different values in ascending order, and `counts` of each; some of them only if there are too many."""
    counts: Array = field(default_factory=lambda: _NONE)
    _whole: bool = True
    _unit: float = 0.0
    _mean: Floats = field(default_factory=lambda: _NONE)
    _squares: Floats = field(default_factory=lambda: _NONE)

    def add(self, labels: Array) -> None:
        """Add the labels of some rows."""
        if not len(labels):
            return
        self.type = _type_of(labels.dtype) if not self.rows else _common(self.type, _type_of(labels.dtype))
        self.columns = 1 if labels.ndim == 1 else labels.shape[1]
        if labels.ndim == 1 and not self.too_many:
            self._count(labels)
        if self.type != "text":
            self._measure((labels if labels.ndim > 1 else labels[:, None]).astype(np.float64))
        self.rows += len(labels)

    @property
    def too_many(self) -> bool:
        """True if there are more different values than classes can be learned."""
        return len(self.distinct) > MOST_CLASSES

    def _count(self, labels: Array) -> None:
        found, numbers = class_numbers(labels)
        self.distinct, places = class_numbers(joined([self.distinct, found]))
        counts = np.append(self.counts, np.bincount(numbers))
        self.counts = np.bincount(places, counts).astype(np.int64)

    def _measure(self, labels: Floats) -> None:
        """Add to mean and squared deviations: Chan, Golub & LeVeque 1983. The unit keeps squares in range."""
        self._whole = self._whole and bool((labels == np.round(labels)).all())
        if not self.rows:
            self._unit = float(power_of_two(np.abs(labels).max()))
        labels = labels / self._unit
        n, m = self.rows, len(labels)
        mean = labels.mean(axis=0)
        squares = ((labels - mean) ** 2).sum(axis=0)
        if n:
            apart = mean - self._mean
            mean = self._mean + apart * (m / (n + m))
            squares = self._squares + squares + apart**2 * (n * m / (n + m))
        self._mean, self._squares = mean, squares

    def task(self, kind: TaskKind) -> PredictionTask:
        """Return the task of all labels; `auto` decides by their type, as `maths.task` does for labels in memory."""
        if self.columns > 1:
            return self._numbers() if kind != "classification" else task_of(np.zeros((1, self.columns)), kind)
        many_numbers = self.too_many and self.type != "text"
        if kind != "regression" and self.too_many and (kind == "classification" or not many_numbers):
            raise DataError(f"label: expected at most {MOST_CLASSES:,} classes to learn from, got more")
        if kind == "auto" and (many_numbers or not (self._whole or self.type == "text")):
            kind = "regression"
        if kind == "regression" and self.type != "text":
            return self._numbers()
        task = task_of(self.distinct, kind)
        return task if task.classes is not None else self._numbers()

    def _numbers(self) -> PredictionTask:
        spread = np.sqrt(self._squares / self.rows)
        equal = ~(spread > 0.0)
        if equal.any():
            value = self._mean[int(equal.argmax())] * self._unit
            raise DataError(f"label: expected numbers that differ, got only {value:g}")
        return PredictionTask("regression", None, self._mean * self._unit, spread * self._unit)

    def labels(self, task: PredictionTask, names: tuple[str, ...]) -> PredictedLabels:
        """Return the labels as the model keeps them."""
        classes = None if task.classes is None else tuple(task.classes.tolist())
        return PredictedLabels(names, self.type, classes)


def _type_of(dtype: np.dtype[np.generic]) -> LabelType:
    types: dict[str, LabelType] = {"b": "boolean", "i": "integer", "u": "integer", "f": "number"}
    return types.get(dtype.kind, "text")


def _common(one: LabelType, other: LabelType) -> LabelType:
    """Return the type of labels of both types; booleans among numbers are 0 and 1."""
    if one == other:
        return one
    return "integer" if {one, other} == {"integer", "boolean"} else "number"
