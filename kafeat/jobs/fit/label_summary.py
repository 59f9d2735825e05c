"""Summarize the labels of all rows: their values, mean and spread, and the task that follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kafeat.errors import DataError, shell_word
from kafeat.io.columns.dialect import NULLS
from kafeat.maths.kernel_error import power_of_two
from kafeat.maths.task import (
    MOST_CLASSES,
    Kind,
    PredictionTask,
    TaskKind,
    class_numbers,
    joined,
    kind_of,
    reason_for_kind,
    task_of,
)
from kafeat.model.predictor import LabelType, PredictedLabels
from kafeat.types import Array, Floats

_NONE: Array = np.empty(0)


@dataclass
class LabelSummary:
    """A summary of labels that are added block by block: (n,), or (n, k) for k numeric labels."""

    rows: int = 0
    total: float = 0.0
    """The sum of the weights of the rows, or their number without weights."""
    columns: int = 1
    distinct: Array = field(default_factory=lambda: _NONE)
    """The distinct values in ascending order, with sums of weights in `counts`; incomplete if they are `too_many`."""
    counts: Array = field(default_factory=lambda: _NONE)
    _kinds: set[str] = field(default_factory=set)
    _unit: float = 0.0
    _mean: Floats = field(default_factory=lambda: _NONE)
    _squares: Floats = field(default_factory=lambda: _NONE)

    def add(self, labels: Array, weights: Floats | None = None) -> None:
        """Add the labels of some rows, each as often as its weight (n,). A row with weight 0 counts as absent."""
        if weights is not None:
            labels, weights = labels[weights > 0.0], weights[weights > 0.0]
        if not len(labels):
            return
        self._kinds.add(labels.dtype.kind)
        self.columns = 1 if labels.ndim == 1 else labels.shape[1]
        if labels.ndim == 1 and not self.too_many:
            self._count(labels, weights)
        added = float(len(labels) if weights is None else weights.sum())
        if self.type != "text":
            numbers = (labels if labels.ndim > 1 else labels[:, None]).astype(np.float64)
            self._measure(numbers, weights, added)
        self.rows += len(labels)
        self.total += added

    @property
    def type(self) -> LabelType:
        """The type of all labels. Booleans among numbers are 0 and 1."""
        if self._kinds - set("biuf"):
            return "text"
        if "f" in self._kinds:
            return "number"
        return "boolean" if self._kinds == {"b"} else "integer"

    def seen_with(self, labels: Array) -> Array:
        """Return labels of some rows with all distinct values appended, so that they imply the task of all rows."""
        return labels if labels.ndim > 1 else joined([labels, self.distinct])

    @property
    def too_many(self) -> bool:
        """True if there are more distinct values than a classifier may have classes."""
        return len(self.distinct) > MOST_CLASSES

    def _count(self, labels: Array, weights: Floats | None) -> None:
        found, numbers = class_numbers(labels)
        self.distinct, places = class_numbers(joined([self.distinct, found]))
        self.counts = np.bincount(places, np.append(self.counts, np.bincount(numbers, weights)))

    def _measure(self, labels: Floats, weights: Floats | None, m: float) -> None:
        """Update the mean and the sum of squared deviations, as in Chan, Golub & LeVeque 1983.

        `m` is the sum of the weights. Labels are divided by a power of 2, so that their squares stay finite.
        """
        if not self.rows:
            self._unit = float(power_of_two(np.abs(labels).max()))
        labels = labels / self._unit
        n = self.total
        mean = labels.mean(axis=0) if weights is None else weights @ labels / m
        deviations = (labels - mean) ** 2
        squares = deviations.sum(axis=0) if weights is None else weights @ deviations
        if n:
            apart = mean - self._mean
            mean = self._mean + apart * (m / (n + m))
            squares = self._squares + squares + apart**2 * (n * m / (n + m))
        self._mean, self._squares = mean, squares

    @property
    def kind(self) -> Kind:
        """The task of the label without --task, by the rule of `maths.task`."""
        if self.columns > 1 or (self.too_many and self.type != "text"):
            return "regression"
        return kind_of(self.distinct, self._rows_of_each)

    @property
    def _rows_of_each(self) -> Array:
        """The number of rows with each distinct value. With weights: the value's share of the weight, times `rows`."""
        return self.counts * (self.rows / self.total) if self.total else self.counts

    def taken_for(self, kind: TaskKind, way: str) -> str:
        """Return a sentence on how and why the label is treated. `way` is how to change that, such as `--task {}`."""
        found = self.kind if kind == "auto" else kind
        classes = found != "regression"
        if self.columns > 1:
            why = f"{self.columns} columns, in {self.rows:,} rows"
        elif self.too_many:
            why = f"more than {MOST_CLASSES:,} different values in {self.rows:,} rows"
        else:
            why = reason_for_kind(self.distinct, self._rows_of_each, self.rows)
        other = "regression" if classes else "classification"
        other = f"{way.format(other)} predicts {'numbers' if classes else 'classes'}"
        if (self.type == "text" and classes) or (self.columns > 1 and not classes):
            other = "text is no number" if self.columns == 1 else f"{other}, of one column"
        why += "" if kind == "auto" else f", {way.format(kind)}"
        what = "probabilities of classes" if found == "soft" else "classes" if classes else "numbers"
        return f"label: {what} ({why}); {other}{self._alike if classes else ''}"

    @property
    def _alike(self) -> str:
        """A note on a class that may mean "missing", or on two classes that differ only in case and blanks; else ''."""
        known = dict[str, str]()
        for word in self.distinct.tolist() if self.type == "text" and self.columns == 1 else ():
            if word in NULLS:
                told = f"--drop-unlabelled --null-values {shell_word(word)} leaves such rows out, if it means missing"
                return f"; {word!r} is a class: {told}"
            first = known.setdefault(" ".join(word.split()).casefold(), word)
            if first != word:
                return f"; {first[:40]!r} and {word[:40]!r} are two classes: write them alike if they mean the same"
        return ""

    def task(self, kind: TaskKind, names: Sequence[str] = ()) -> PredictionTask:
        """Return the prediction task of all labels. `names` are the label columns if they hold probabilities."""
        if self.columns > 1:
            numbers = kind in ("auto", "regression")
            return self._numbers() if numbers else task_of(np.zeros((1, self.columns)), kind, names)
        kind = self.kind if kind == "auto" else kind
        if kind == "classification" and self.too_many:
            raise DataError(f"label: expected at most {MOST_CLASSES:,} classes to learn from, got more")
        if kind == "regression" and self.type != "text":
            return self._numbers()
        return task_of(self.distinct, kind)

    def _numbers(self) -> PredictionTask:
        spread = np.sqrt(self._squares / self.total)
        equal = ~(spread > 0.0)
        if equal.any():
            value = self._mean[int(equal.argmax())] * self._unit
            raise DataError(f"label: expected numbers that differ, got only {value:g}")
        return PredictionTask("regression", None, self._mean * self._unit, spread * self._unit)

    def labels(self, task: PredictionTask, names: tuple[str, ...]) -> PredictedLabels:
        """Return the description of the labels (names, type, classes) that a model keeps."""
        classes = None if task.classes is None else tuple(task.classes.tolist())
        soft: LabelType = "text" if names else "integer"
        return PredictedLabels(names, soft if classes and self.columns > 1 else self.type, classes)
