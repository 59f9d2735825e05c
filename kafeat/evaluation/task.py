"""The prediction task, classes or a number, and its score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from kafeat.errors import DataError
from kafeat.types import Array, Floats

Kind = Literal["classification", "regression"]

# More different whole numbers than this are a quantity, not classes.
_MOST_CLASSES = 100


@dataclass(frozen=True)
class PredictionTask:
    """A classification with the names of its classes, or a regression of (y − centre)/unit."""

    kind: Kind
    classes: Array | None
    centre: float = 0.0
    unit: float = 1.0

    def targets(self, labels: Array) -> Floats:
        """Return the targets (n, k): the scaled number (k = 1), or 1 in the column of the class and 0 elsewhere."""
        if self.classes is None:
            return self._scaled(labels)[:, None]
        return np.eye(len(self.classes))[self.numbers(labels)]

    def _scaled(self, labels: Array) -> Floats:
        # Penalties and tolerances are absolute, so the units of a label are removed.
        scaled: Floats = (labels.astype(np.float64) / self.unit) - self.centre / self.unit
        return scaled

    def numbers(self, labels: Array) -> Array:
        """Return the class number of each label."""
        if self.classes is None:
            raise TypeError("a regression has no classes")
        return np.searchsorted(self.classes, _plain(labels))

    def score(self, predicted: Floats, labels: Array) -> float:
        """Return the accuracy, or R² = 1 − Σ(y − ŷ)²/Σ(y − ȳ)², of predicted targets (n, k).

        For two classes k may be 1. The score is NaN if a prediction is not finite or all y are equal.
        """
        if not np.isfinite(predicted).all():
            return float("nan")
        if self.classes is not None:
            chosen = (
                predicted.argmax(axis=1) if predicted.shape[1] > 1 else (predicted[:, 0] > 0.0).astype(int)
            )
            return float((chosen == self.numbers(labels)).mean())
        y = self._scaled(labels)
        spread = float(((y - y.mean()) ** 2).sum())
        missed = float(((y - predicted[:, 0]) ** 2).sum())
        return 1.0 - missed / spread if spread > 0.0 else float("nan")


def task_of(labels: Array, asked: Literal["auto", "classification", "regression"] = "auto") -> PredictionTask:
    """Return the task of the labels. With auto, text, booleans and few different whole numbers are classes."""
    kind = _guess(labels) if asked == "auto" else asked
    if kind == "regression":
        if labels.dtype.kind not in "fiub":
            raise DataError("label: expected numbers for a regression, got text")
        return _regression(labels.astype(np.float64))
    classes = np.unique(_plain(labels))
    if len(classes) < 2:
        raise DataError(f"label: expected at least two classes, got only {str(classes[0])!r}")
    return PredictionTask("classification", classes)


def _regression(labels: Floats) -> PredictionTask:
    largest = float(np.abs(labels).max(initial=0.0))
    if not len(labels) or labels.min() == labels.max():
        raise DataError(
            f"label: expected numbers that differ, got only {labels[0] if len(labels) else 'no rows'}"
        )
    # divide by the largest first: squares of huge or tiny numbers overflow or underflow
    relative = labels / largest
    return PredictionTask(
        "regression", None, float(relative.mean()) * largest, float(relative.std()) * largest
    )


def _guess(labels: Array) -> Kind:
    if labels.dtype.kind not in "fiu":
        return "classification"
    if labels.dtype.kind == "f" and not (labels == np.round(labels)).all():
        return "regression"
    return "classification" if len(np.unique(labels)) <= _MOST_CLASSES else "regression"


def _plain(labels: Array) -> Array:
    return labels.astype(str) if labels.dtype.kind == "O" else labels
