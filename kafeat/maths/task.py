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
"""How the label is read. For `soft`, it is the probabilities (n, k) of k classes."""

# More distinct whole numbers than this are a quantity, and so are numbers if one of them is in fewer rows than both.
_MOST_CLASSES, _COMMON_ROWS, _COMMON_SHARE = 20, 20, 0.03


@dataclass(frozen=True)
class PredictionTask:
    """A classification with the names of its classes, or a regression of (y − centre)/unit.

    The labels of a classification are classes (n,), or rows of the probabilities (n, k) of all classes. For several
    numbers per row, centre and unit are arrays (k,).
    """

    kind: Kind
    classes: Array | None
    centre: float | Floats = 0.0
    unit: float | Floats = 1.0

    def targets(self, labels: Array) -> Floats:
        """Return the targets (n, k): scaled numbers, probabilities, or 1 in the column of the class and 0 elsewhere."""
        if self.classes is None:
            # Penalties and tolerances are absolute, so the units of a label are removed.
            scaled = (labels.astype(np.float64) / self.unit) - self.centre / self.unit
            return scaled[:, None] if scaled.ndim == 1 else scaled
        return labels if labels.ndim > 1 else np.eye(len(self.classes))[self.numbers(labels)]

    def outputs(self, labels: Array) -> Floats:
        """Return the targets (n, k), but for two classes only those of the second."""
        targets = self.targets(labels)
        return targets[:, 1:] if self.classes is not None and len(self.classes) == 2 else targets

    def numbers(self, labels: Array) -> Array:
        """Return the number of the class, or of the likeliest class, of each label."""
        if self.classes is None:
            raise TypeError("a regression has no classes")
        if labels.ndim > 1:
            return labels.argmax(axis=1)
        # Rows whose label is not a class are not learned from.
        if self.classes.dtype.kind != "O":
            places = np.searchsorted(self.classes, labels.astype(self.classes.dtype))
            return np.minimum(places, len(self.classes) - 1)
        number = {name: number for number, name in enumerate(self.classes.tolist())}
        return np.fromiter((number.get(one, 0) for one in labels.tolist()), np.intp, len(labels))

    def class_weights(self, labels: Array) -> Floats:
        """Return the weight of each row that gives every class the same total."""
        numbers = self.numbers(labels)
        counts = np.bincount(numbers)
        return len(labels) / (np.count_nonzero(counts) * counts[numbers])


def r2(predicted: Floats, Y: Floats) -> float:
    """Return R² of predictions of Y (n, k), the mean over its columns, or NaN if all values of one are equal."""
    spread = ((Y - Y.mean(axis=0)) ** 2).sum(axis=0)
    # By rounding, the mean of equal numbers may differ from them.
    if not (spread > 0.0).all() or (Y.min(axis=0) == Y.max(axis=0)).any():
        return float("nan")
    return float((1.0 - ((Y - predicted) ** 2).sum(axis=0) / spread).mean())


def classes_of_columns(names: Sequence[str]) -> list[str]:
    """Return the classes of columns of probabilities: `p_setosa` and `p_virginica` are those of setosa and virginica.

    A common prefix is left out up to its last sign that is neither a letter nor a digit.
    """
    ends = [sign.end() for sign in re.finditer(r"[\W_]", names[0])] if names else []
    alike = [end for end in ends if all(one[:end] == names[0][:end] and one[end:] for one in names)]
    return [name[max(alike, default=0) :] for name in names]


def task_of(labels: Array, kind: TaskKind = "auto", names: Sequence[str] = ()) -> PredictionTask:
    """Return the task of the labels. `kind_of` decides for auto. `names` are those of columns of probabilities."""
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
            f"label: expected one label of classes, got {labels.shape[1]}: only numbers can be several"
        )
    classes, _ = class_numbers(labels)
    if len(classes) < 2:
        raise DataError(f"label: expected at least two classes, got only {quoted(str(classes[0]))}")
    return PredictionTask("classification", classes)


def task_to_score(labels: Array, kind: TaskKind, names: Sequence[str] = ()) -> PredictionTask:
    """Return the task of labels that score a finished model. They may be of one class, or equal numbers."""
    if kind == "classification" and labels.ndim == 1:
        return PredictionTask(kind, class_numbers(labels)[0])
    if kind == "regression" and labels.dtype.kind in "fiub" and len(labels):
        return _scaled_regression(labels.astype(np.float64))
    return task_of(labels, kind, names)


MOST_CLASSES = 1000
"""Steps that learn from a label hold a column for each class in every row."""


def count_classes(labels: Array) -> int | None:
    """Return the number of classes, None for a label of numbers that differ, or 1 if all labels are equal."""
    if kind_to_learn(labels) == "classification":
        return len(class_numbers(labels)[0])
    return None if (labels.min(axis=0) != labels.max(axis=0)).all() else 1


def task_to_learn(labels: Array) -> PredictionTask:
    """Return the task of the labels for a step that learns from them."""
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
    # divide by the largest first: squares of huge or tiny numbers overflow or underflow
    largest = np.abs(labels).max(axis=0)
    largest = np.where(largest > 0.0, largest, 1.0)
    relative = labels / largest
    spread = relative.std(axis=0)
    centre, unit = relative.mean(axis=0) * largest, np.where(spread > 0.0, spread, 1.0) * largest
    if labels.ndim == 1:
        return PredictionTask("regression", None, float(centre), float(unit))
    return PredictionTask("regression", None, centre, unit)


def kind_of(values: Array, counts: Array) -> Kind:
    """Return the task of labels with these distinct values, ascending, each in so many rows.

    Text and booleans are classes. Whole numbers are classes if there are two, or at most 20 consecutive ones that are
    each common.
    """
    if not _few_whole(values):
        return "classification" if values.dtype.kind not in "fiu" else "regression"
    return "classification" if len(values) <= 2 or not _not_classes(values, counts) else "regression"


def kind_of_labels(labels: Array) -> Kind:
    """Return the task of the labels of rows, (n,) or (n, k)."""
    if labels.ndim > 1:
        return "regression"
    if labels.dtype.kind not in "fiu":
        return "classification"
    return kind_of(*np.unique(labels, return_counts=True))


def reason_for_kind(values: Array, counts: Array, rows: int) -> str:
    """Return in a few words how `kind_of` treats a label with these distinct values, ascending."""
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
    """Return why few whole numbers, ascending, are probably a quantity; empty if they are probably classes."""
    if (np.diff(values) != 1).any():
        return ", not in steps of 1"
    least = int(counts.argmin())
    rare = counts[least] < min(_COMMON_ROWS, _COMMON_SHARE * counts.sum())
    return f", of which {values[least]:g} is in only {counts[least]:g}" if rare else ""


def kind_to_learn(labels: Array) -> Kind:
    """Return the task of a step, which must not depend on the rows that it sees."""
    if labels.ndim > 1:
        return "regression"
    return (
        "classification" if labels.dtype.kind not in "fiu" or _few_whole(np.unique(labels)) else "regression"
    )


def class_numbers(labels: Array) -> tuple[Array, Array]:
    """Return the distinct labels in ascending order, and the number of each label among them.

    Text is an array of objects: an array of fixed width needs four bytes for every letter of the longest text in every
    row, and drops NUL at its end.
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


# float64 holds all whole numbers up to here.
_MOST_WHOLE = 1 << 53


def joined(parts: Sequence[Array]) -> Array:
    """Return labels of several parts as one array, in a type that holds all of them, or raise an error.

    Whole numbers from 2⁶³ on are uint64, and others int64: NumPy would make float64 of both together.
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
            "expected whole numbers of at most 2^53 with others that are not whole, got larger ones: "
            "cast all to one type"
        )
    if "f" not in of_kind and "i" in of_kind and "u" in of_kind:
        if any(int(part.min()) < 0 for part in of_kind["i"]):
            raise DataError(
                "expected whole numbers of one type of 64 bits, got some below 0 and some from 2^63 on"
            )
        parts = [part.astype(np.uint64) for part in parts]
    return np.concatenate([part for part in parts if part.size] or parts)
