"""A fitted predictor: the last step of a model, and the labels that it predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Self, get_args

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.contract.checks import whole_numbers
from kafeat.contract.describe import spell
from kafeat.contract.predictor import Predictor
from kafeat.maths.intervals import Intervals
from kafeat.model.provenance import printable
from kafeat.registry import build_step
from kafeat.types import Array, Floats

LabelType = Literal["text", "integer", "number", "boolean"]
Class = str | int | float | bool
PREDICTION, PROBABILITY = "prediction", "probability"
"""The name of a column of predictions, and the prefix of columns of probabilities."""
_TYPES: dict[str, type] = {"text": str, "integer": int, "number": float, "boolean": bool}


@dataclass(frozen=True)
class PredictedLabels:
    """The labels of a predictor.

    Attributes:
        names: Names of the label columns; empty if the labels were given in memory.
        type: Type of the label, such as "integer" or "text". It is not used if numbers are predicted.
        classes: The classes in ascending order; None if numbers are predicted.
    """

    names: tuple[str, ...]
    type: LabelType
    classes: tuple[Class, ...] | None

    @property
    def soft(self) -> bool:
        """True if the columns of the label hold the probabilities of the classes."""
        return self.classes is not None and len(self.names) > 1

    @property
    def class_array(self) -> Array | None:
        """The classes as an array of the type of the label; None if numbers are predicted."""
        if self.classes is None:
            return None
        if self.type == "integer":
            return whole_numbers([int(one) for one in self.classes])
        return np.array(self.classes, dtype=None if self.type != "text" else object)

    @property
    def class_names(self) -> list[str]:
        """The names of the classes as text; no two are the same."""
        return [self.name_of(one) for one in self.classes or ()]

    def name_of(self, label: Class) -> str:
        """Return the class name for a label, which may have another type than the classes: the label 1.0 gives "1".

        CSV files contain booleans as text, and text that looks like a number is read from them as a number.
        """
        name = str(int(label)) if isinstance(label, float) and label.is_integer() else _spelled(label)
        if self.type == "boolean":
            return {"0": "false", "1": "true"}.get(name, name.lower())
        if self.type != "text":
            return {"false": "0", "true": "1"}.get(name.lower(), name)
        return name

    def to_plain(self) -> dict[str, Any]:
        """Return builtins for the model file."""
        classes = None if self.classes is None else list(self.classes)
        return {"names": list(self.names), "type": self.type, "classes": classes}

    @classmethod
    def from_plain(cls, plain: object) -> Self:
        """Read the labels of an untrusted model file; raise `ValueError` if they are invalid."""
        if not isinstance(plain, dict) or set(plain) != {"names", "type", "classes"}:
            raise ValueError("labels: expected names, type and classes")
        names, kind, classes = plain["names"], plain["type"], plain["classes"]
        if not isinstance(names, list) or not all(type(name) is str for name in names):
            raise ValueError("labels.names: expected a list of text")
        if any(name != printable(name) for name in names) or len(set(names)) < len(names):
            raise ValueError("labels.names: expected printable names, each once")
        if type(kind) is not str or kind not in get_args(LabelType):
            raise ValueError(f"labels.type: expected one of {', '.join(_TYPES)}, got {spell(kind)}")
        if classes is None:
            return cls(tuple(names), kind, None)  # type: ignore[arg-type]
        if not isinstance(classes, list) or len(classes) < 2:
            raise ValueError("labels.classes: expected a list of at least two classes")
        if any(type(one) is not _TYPES[kind] for one in classes):
            raise ValueError(f"labels.classes: expected classes of the type {kind}")
        if kind == "integer" and np.array(classes).dtype.kind == "O":
            raise ValueError("labels.classes: expected whole numbers that fit 64 bits")
        if kind == "text" and any("\ud800" <= sign <= "\udfff" for one in classes for sign in one):
            raise ValueError("labels.classes: expected text that UTF-8 can hold")
        if not all(one < other for one, other in pairwise(classes)):
            raise ValueError("labels.classes: expected classes in ascending order, each once")
        return cls(tuple(names), kind, tuple(classes))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class FittedPredictor:
    """A fitted predictor, its labels, and its intervals from errors of held-out rows (None: no intervals)."""

    fitted: FittedStep
    labels: PredictedLabels
    intervals: Intervals | None = None

    @property
    def n_outputs(self) -> int:
        """The number of predicted numbers per row: one for each class, or for each numeric label."""
        return self.fitted.n_features_out

    @property
    def output_names(self) -> list[str]:
        """The names of the predicted numbers: a probability for each class, or a prediction for each label."""
        if self.labels.classes is not None:
            return [f"{PROBABILITY}_{_spelled(one)}" for one in self.labels.classes]
        if self.n_outputs == 1:
            return [PREDICTION]
        return [f"{PREDICTION}_{name}" for name in self.labels.names or range(self.n_outputs)]

    def order_of(self, labels: Sequence[str]) -> list[int] | None:
        """Return the index of the output for each of these labels, or None if the predictor has other labels."""
        names = self.labels.names
        if not names:  # the labels were given in memory
            outputs = 1 if self.labels.classes is not None else self.n_outputs
            return list(range(len(labels))) if outputs == len(labels) else None
        asked = [printable(label) for label in labels]
        if self.labels.soft and len(asked) == 1:  # a column of true classes, not probabilities
            return [0]
        return [names.index(one) for one in asked] if set(asked) == set(names) else None

    def has_interval(self, level: float) -> bool:
        """Return true if enough errors of held-out rows are stored for intervals of this level."""
        known = 0 if self.intervals is None else len(self.intervals.scores)
        return level * (known + 1) <= known

    def predicted(self, outputs: Floats) -> Array:
        """Return the likeliest classes (n,) from outputs (n, n_outputs). For numeric labels, return (n,) or (n, k)."""
        classes = self.labels.class_array
        if classes is not None:
            return np.asarray(classes[outputs.argmax(axis=1)])
        return outputs[:, 0] if self.n_outputs == 1 else outputs

    def interval_cautions(self, split_by: str | None) -> list[str]:
        """Return warnings if intervals may cover fewer labels than their level promises, for this `split_by`."""
        by_time = split_by is not None and split_by.startswith("time:")
        return [] if self.intervals is None else self.intervals.cautions(by_time)

    def to_plain(self) -> dict[str, Any]:
        """Return builtins and arrays for the model file."""
        return {
            "recipe": self.fitted.step.recipe(),
            "state": {name: np.asarray(value) for name, value in self.fitted.state.items()},
            "labels": self.labels.to_plain(),
            **({} if self.intervals is None else {"intervals": self.intervals.to_plain()}),
        }

    @classmethod
    def from_plain(cls, plain: object, width: int, with_intervals: bool) -> Self:
        """Read the predictor of an untrusted model file, for `width` features. Raise `ValueError` if it is invalid."""
        expected = ["recipe", "state", "labels", *(["intervals"] if with_intervals else [])]
        if not isinstance(plain, dict) or set(plain) != set(expected):
            raise ValueError(f"recipe: expected {', '.join(expected[:-1])} and {expected[-1]}")
        step, state = build_step(plain["recipe"]), plain["state"]
        if not isinstance(step, Predictor) or step.searches:
            raise ValueError(f"recipe: expected a predictor, got {step.kind}")
        fitted = FittedStep.checked(step, state, width)
        labels = PredictedLabels.from_plain(plain["labels"])
        n, classes = fitted.n_features_out, labels.classes
        if step.predicts_classes(state) != (classes is not None):
            raise ValueError("labels.classes: expected classes for probabilities, and none for numbers")
        if n != len(classes) if classes is not None else n != max(1, len(labels.names)) and labels.names:
            raise ValueError(f"labels: expected {n} classes or names, one per output of the predictor")
        intervals = None
        if with_intervals:
            intervals = Intervals.from_plain(plain["intervals"], width, n, classes is not None)
        return cls(fitted, labels, intervals)


def _spelled(value: object) -> str:
    """Return a class as text: lower case for true and false, and the shortest form of a number."""
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return str(value).lower() if isinstance(value, bool) else str(value)
