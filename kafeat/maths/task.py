"""The prediction task: classes or numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kafeat.errors import DataError, quoted
from kafeat.types import Array, Floats

Kind = Literal["classification", "regression"]
TaskKind = Literal["auto", "classification", "regression", "soft"]
"""How to interpret a label. For `soft`, it consists of the probabilities (n, k) of k classes."""

# Whole numbers are classes if at most this many differ, and each is in at least this many rows or this share of rows.
_MOST_CLASSES, _COMMON_ROWS, _COMMON_SHARE = 20, 20, 0.03


@dataclass(frozen=True)
class PredictionTask:
    """A classification with the names of its classes, or a regression of (y − centre)/unit.

    The labels of a classification are classes (n,), or the probabilities (n, k) of all classes. For several numbers per
    row, centre and unit are arrays (k,).
    """

    kind: Kind
    classes: Array | None
    centre: float | Floats = 0.0
    unit: float | Floats = 1.0

    def targets(self, labels: Array) -> Floats:
        """Return the targets (n, k): scaled numbers, probabilities, or one-hot classes."""
        if self.classes is None:
            # Penalties and tolerances are absolute, so targets must not depend on the unit of the label.
            scaled = (labels.astype(np.float64) / self.unit) - self.centre / self.unit
            return scaled[:, None] if scaled.ndim == 1 else scaled
        return labels if labels.ndim > 1 else np.eye(len(self.classes))[self.numbers(labels)]

    def outputs(self, labels: Array) -> Floats:
        """Return the targets (n, k). For two classes, return only the targets of the second class, (n, 1)."""
        targets = self.targets(labels)
        return targets[:, 1:] if self.classes is not None and len(self.classes) == 2 else targets

    def numbers(self, labels: Array) -> Array:
        """Return the class number of each label. For probabilities, it is that of the likeliest class."""
        if self.classes is None:
            raise TypeError("a regression has no classes")
        if labels.ndim > 1:
            return labels.argmax(axis=1)
        # A label that is not one of the classes gets an arbitrary number, because nothing is learned from its row.
        if self.classes.dtype.kind != "O":
            places = np.searchsorted(self.classes, labels.astype(self.classes.dtype))
            return np.minimum(places, len(self.classes) - 1)
        number = {name: number for number, name in enumerate(self.classes.tolist())}
        return np.fromiter((number.get(one, 0) for one in labels.tolist()), np.intp, len(labels))

    def class_weights(self, labels: Array) -> Floats:
        """Return a weight for each row, so that all classes have the same total weight."""
        numbers = self.numbers(labels)
        counts = np.bincount(numbers)
        return len(labels) / (np.count_nonzero(counts) * counts[numbers])


def r2(predicted: Floats, Y: Floats) -> float:
    """Return R² for true values Y (n, k), averaged over the columns, or NaN if a column of Y is constant."""
    spread = ((Y - Y.mean(axis=0)) ** 2).sum(axis=0)
    # The spread of equal numbers may be above 0 by rounding.
    if not (spread > 0.0).all() or (Y.min(axis=0) == Y.max(axis=0)).any():
        return float("nan")
    return float((1.0 - ((Y - predicted) ** 2).sum(axis=0) / spread).mean())


def classes_of_columns(names: Sequence[str]) -> list[str]:
    """Return the classes for names of probability columns: `setosa` and `virginica` for `p_setosa` and `p_virginica`.

    A common prefix is removed up to its last character that is not a letter or digit.
    """
    ends = [sign.end() for sign in re.finditer(r"[\W_]", names[0])] if names else []
    alike = [end for end in ends if all(one[:end] == names[0][:end] and one[end:] for one in names)]
    return [name[max(alike, default=0) :] for name in names]


def task_of(labels: Array, kind: TaskKind = "auto", names: Sequence[str] = ()) -> PredictionTask:
    """Return the task of the labels. For auto, `kind_of` decides. `names` are the columns of probabilities."""
    if kind == "soft":
        named = np.array(classes_of_columns(names), dtype=object)
        return PredictionTask("classification", named if names else np.arange(labels.shape[1]))
    kind = kind_of_labels(labels) if kind == "auto" else kind
    if kind == "regression":
        if labels.dtype.kind not in "fiub":
            raise DataError("label: expected numbers for a regression, got text")
        return _regression(labels.astype(np.float64))
    if labels.ndim > 1:
        raise DataError(
            f"label: expected one label if it has classes, got {labels.shape[1]}: several labels must be numbers"
        )
    classes, _ = class_numbers(labels)
    if len(classes) < 2:
        raise DataError(f"label: expected at least two classes, got only {quoted(str(classes[0]))}")
    return PredictionTask("classification", classes)


def task_to_score(labels: Array, kind: TaskKind, names: Sequence[str] = ()) -> PredictionTask:
    """Return the task for scoring a finished model. All labels may be of one class, or equal numbers."""
    if kind == "classification" and labels.ndim == 1:
        return PredictionTask(kind, class_numbers(labels)[0])
    if kind == "regression" and labels.dtype.kind in "fiub" and len(labels):
        return _scaled_regression(labels.astype(np.float64))
    return task_of(labels, kind, names)


MOST_CLASSES = 1000
"""The most classes for steps that learn from a label, because they hold a column for each class."""


def count_classes(labels: Array) -> int | None:
    """Return the number of classes, 1 if all labels are equal, or None for a numeric label."""
    if kind_to_learn(labels) == "classification":
        return len(class_numbers(labels)[0])
    return None if (labels.min(axis=0) != labels.max(axis=0)).all() else 1


def task_to_learn(labels: Array) -> PredictionTask:
    """Return the task for a step that learns from these labels. Too many classes are an error."""
    task = task_of(labels, kind_to_learn(labels))
    if task.classes is not None and len(task.classes) > MOST_CLASSES:
        raise DataError(
            f"label: expected at most {MOST_CLASSES:,} classes to learn from, got {len(task.classes):,}"
        )
    return task


def targets_to_learn(labels: Array) -> Floats:
    """Return the targets (n, k) for a step that learns from them."""
    return task_to_learn(labels).targets(labels)


def _regression(labels: Floats) -> PredictionTask:
    if not len(labels):
        raise DataError("label: expected numbers that differ, got no rows")
    equal = np.atleast_1d(labels.min(axis=0) == labels.max(axis=0))
    if equal.any():
        raise DataError(
            f"label: expected numbers that differ, got only {labels[0].flat[int(equal.argmax())]}"
        )
    return _scaled_regression(labels)


def _scaled_regression(labels: Floats) -> PredictionTask:
    # divide by the largest first, because squares of huge or tiny numbers overflow or underflow
    largest = np.abs(labels).max(axis=0)
    largest = np.where(largest > 0.0, largest, 1.0)
    relative = labels / largest
    spread = relative.std(axis=0)
    centre, unit = relative.mean(axis=0) * largest, np.where(spread > 0.0, spread, 1.0) * largest
    if labels.ndim == 1:
        return PredictionTask("regression", None, float(centre), float(unit))
    return PredictionTask("regression", None, centre, unit)


def kind_of(values: Array, counts: Array) -> Kind:
    """Return the task of a label by its distinct values, in ascending order, and the number of rows with each.

    Text and booleans are classes. Whole numbers are classes if there are only two of them, or at most 20 that are
    consecutive and all common.
    """
    if not _few_whole(values):
        return "classification" if values.dtype.kind not in "fiu" else "regression"
    return "classification" if len(values) <= 2 or not _not_classes(values, counts) else "regression"


def kind_of_labels(labels: Array) -> Kind:
    """Return the task of the labels (n,) or (n, k), which is a regression for several columns."""
    if labels.ndim > 1:
        return "regression"
    if labels.dtype.kind not in "fiu":
        return "classification"
    return kind_of(*np.unique(labels, return_counts=True))


def reason_for_kind(values: Array, counts: Array, rows: int) -> str:
    """Return the reason of `kind_of` in a few words, such as "3 different texts in 150 rows"."""
    what = "texts" if values.dtype.kind in "OU" else "values" if values.dtype.kind == "b" else "numbers"
    if what == "numbers" and (values.dtype.kind != "f" or (values == np.round(values)).all()):
        what = "whole numbers"
    more = ""
    if len(values) > 2 and _few_whole(values):
        more = _not_classes(values, counts) or ", in steps of 1, each common"
    return f"{len(values):,} different {what} in {rows:,} rows{more}"


def _few_whole(values: Array) -> bool:
    return (
        values.dtype.kind in "fiu"
        and len(values) <= _MOST_CLASSES
        and bool((values == np.round(values)).all())
    )


def _not_classes(values: Array, counts: Array) -> str:
    """Return why a few whole numbers, in ascending order, are probably a quantity; empty if they seem to be classes."""
    if (np.diff(values) != 1).any():
        return ", not in steps of 1"
    least = int(counts.argmin())
    rare = counts[least] < min(_COMMON_ROWS, _COMMON_SHARE * counts.sum())
    return f", of which {values[least]:g} is in only {counts[least]:g}" if rare else ""


def kind_to_learn(labels: Array) -> Kind:
    """Return the kind of task for a step that learns. It does not depend on how many rows of a class are sampled."""
    if labels.ndim > 1:
        return "regression"
    return (
        "classification" if labels.dtype.kind not in "fiu" or _few_whole(np.unique(labels)) else "regression"
    )


def class_numbers(labels: Array) -> tuple[Array, Array]:
    """Return the distinct labels in ascending order, and for each label its position among them.

    Text is an array of objects, because an array of fixed width needs four bytes per row for each letter of the longest
    text, and drops NUL at the end of texts.
    """
    if labels.dtype.kind not in "OU":
        classes, numbers = np.unique(labels, return_inverse=True)
        return classes, numbers
    found: dict[str, int] = {}
    codes = np.fromiter((found.setdefault(one, len(found)) for one in labels.tolist()), np.intp, len(labels))
    words = sorted(found)
    places = np.empty(len(words), np.intp)
    places[[found[word] for word in words]] = np.arange(len(words))
    return np.array(words, dtype=object), places[codes]


# float64 can represent all whole numbers up to here.
_MOST_WHOLE = 1 << 53


def joined(parts: Sequence[Array]) -> Array:
    """Return the labels of several parts as one array, in a dtype that can represent all of them, or raise an error.

    Whole numbers from 2⁶³ on are uint64, and others int64. NumPy would convert a mixture of both to float64.
    """
    of_kind: dict[str, list[Array]] = {}
    for part in parts:
        if part.size:
            of_kind.setdefault(part.dtype.kind, []).append(part)
    whole = of_kind.get("i", []) + of_kind.get("u", [])
    if "f" in of_kind and any(
        int(part.max()) > _MOST_WHOLE or int(part.min()) < -_MOST_WHOLE for part in whole
    ):
        raise DataError(
            "expected whole numbers of at most 2^53 next to fractions, got larger ones: cast all to one type"
        )
    if "f" not in of_kind and "i" in of_kind and "u" in of_kind:
        if any(int(part.min()) < 0 for part in of_kind["i"]):
            raise DataError(
                "expected whole numbers that fit one 64-bit type, got some below 0 and some from 2^63 on"
            )
        parts = [part.astype(np.uint64) for part in parts]
    return np.concatenate([part for part in parts if part.size] or parts)
