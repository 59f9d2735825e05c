"""What is to be predicted: classes or a number, and how well it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from kafeat.errors import DataError
from kafeat.types import Array, Floats

Kind = Literal["classification", "regression"]

# More different whole numbers than this are a quantity and no class.
_MOST_CLASSES = 100


@dataclass(frozen=True)
class Task:
    """Classes (their names) or a number (no names)."""

    kind: Kind
    classes: Array | None

    @property
    def score_name(self) -> str:
        """What `score` gives."""
        return "R²" if self.classes is None else "accuracy"

    def targets(self, labels: Array) -> Floats:
        """(n, k): the number, k = 1, or 1 in the column of the row's class and 0 in the others."""
        if self.classes is None:
            return labels.astype(np.float64)[:, None]
        return np.eye(len(self.classes))[self.numbers(labels)]

    def numbers(self, labels: Array) -> Array:
        """The number of each label's class."""
        if self.classes is None:
            raise TypeError("a regression has no classes")
        return np.searchsorted(self.classes, _plain(labels))

    def score(self, predicted: Floats, labels: Array) -> float:
        """Accuracy, or R² = 1 − Σ(y − ŷ)²/Σ(y − ȳ)², of predictions (n, k); for two classes k may be 1, a margin."""
        if self.classes is not None:
            chosen = (
                predicted.argmax(axis=1) if predicted.shape[1] > 1 else (predicted[:, 0] > 0.0).astype(int)
            )
            return float((chosen == self.numbers(labels)).mean())
        y = labels.astype(np.float64)
        spread = float(((y - y.mean()) ** 2).sum())
        missed = float(((y - predicted[:, 0]) ** 2).sum())
        return 1.0 - missed / spread if spread > 0.0 else float("nan")


def task_of(labels: Array, asked: Literal["auto", "classification", "regression"] = "auto") -> Task:
    """The task of all labels; auto: text, booleans and few different whole numbers are classes."""
    kind = _guess(labels) if asked == "auto" else asked
    if kind == "regression":
        if labels.dtype.kind not in "fiub":
            raise DataError("label: expected numbers for a regression, got text")
        return Task("regression", None)
    classes = np.unique(_plain(labels))
    if len(classes) < 2:
        raise DataError(f"label: expected at least two classes, got only {str(classes[0])!r}")
    return Task("classification", classes)


def _guess(labels: Array) -> Kind:
    if labels.dtype.kind not in "fiu":
        return "classification"
    if labels.dtype.kind == "f" and not (labels == np.round(labels)).all():
        return "regression"
    return "classification" if len(np.unique(labels)) <= _MOST_CLASSES else "regression"


def _plain(labels: Array) -> Array:
    return labels.astype(str) if labels.dtype.kind == "O" else labels
