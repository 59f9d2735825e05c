"""The contract of a predictor: the last step of a config, a model of the label that is fitted on all rows.

A predictor never sees labels. It gets targets: scaled numbers, probabilities of classes, or 1 in the column of a row's
class and 0 elsewhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field
from pydantic_core import PydanticCustomError

from kafeat.contract.folds import RANDOM, Folds
from kafeat.contract.kernel_inputs import KernelInputs
from kafeat.contract.step import Sample, Step, parameter, refuse_parameter
from kafeat.contract.traits import ExactTraits, LabelTraits, NumberTraits, Traits
from kafeat.types import Array, Floats, Mask, State

# Rows that are kept to choose the temperature of probabilities, and the most numbers in them.
_LEAST_KEPT, _MOST_KEPT, _MOST_KEPT_NUMBERS = 256, 20_000, 1 << 24


@dataclass(frozen=True)
class Targets:
    """The targets of a fit: `n` columns. Without `classes`, a label is target · unit + centre, both (n,).

    `folds` are the folds of the cross-validation.
    """

    n: int
    classes: bool
    centre: Floats
    unit: Floats
    folds: Folds = RANDOM


@dataclass(frozen=True)
class TrainingRows:
    """Rows of features (n, D) with targets (n, k), the number (n,) of the fold of each, and weights (n,) or None.

    `counts` (n,) are the weights without class weights: how often each row occurs.
    """

    features: Floats
    targets: Floats
    parts: Array
    weights: Floats | None = None
    counts: Floats | None = None

    @property
    def classes(self) -> Array:
        """The number of the class of each row."""
        return self.targets.argmax(axis=1)

    @property
    def own_weights(self) -> Floats:
        """The weights; 1 for each row if there are none."""
        return np.ones(len(self.targets)) if self.weights is None else self.weights

    def select(self, rows: Array | Mask) -> TrainingRows:
        """Return these rows."""
        weights, counts = (None if one is None else one[rows] for one in (self.weights, self.counts))
        return TrainingRows(self.features[rows], self.targets[rows], self.parts[rows], weights, counts)


@dataclass(frozen=True)
class HeldOut:
    """Rows, and the targets or probabilities (n, k) from models that have not seen them; NaN where there is none."""

    rows: TrainingRows
    outputs: Floats


@dataclass(frozen=True)
class Learned:
    """The result of a fit: the recipe with its choices made, the state, and the scores of penalties tried."""

    step: Predictor
    state: State
    penalties: tuple[float, ...] = ()
    scores: tuple[float, ...] = ()
    rows: int | None = None
    """The number of training rows, or None if it is the number of all rows."""
    held_out: Callable[[], HeldOut] | None = None
    """Predicts rows that were kept, with models that have not seen them."""


class Learning(ABC):
    """A fit in progress. Rows are added in a fixed order, so that the result does not depend on threads."""

    @abstractmethod
    def add(self, rows: TrainingRows) -> None:
        """Add rows."""

    @abstractmethod
    def learned(self, kept: TrainingRows) -> Learned:
        """Return the result. `kept` are some of the rows, drawn at random."""


class Predictor(Step):
    """A recipe of a predictor."""

    always: ClassVar[Traits] = Traits(
        numbers=NumberTraits(spreads="ignores"), label=LabelTraits(all_rows=True)
    )
    classes_only: ClassVar[bool] = False
    """True if it predicts classes only, not numbers."""

    penalties: ClassVar[tuple[float, ...]]
    """The multiples that `auto` chooses from."""

    task: Literal["auto", "classification", "regression", "soft"] = parameter(
        "auto",
        "classes or numbers; auto: text, booleans and few common whole numbers are classes; soft: several label "
        "columns are the probabilities of classes",
    )
    class_weight: Literal["none", "balanced"] = parameter(
        "none", "every row counts as one; balanced: every class counts the same"
    )

    penalty: Annotated[float, Field(ge=0)] | Literal["auto"] = parameter(
        "auto", "λ as a multiple of the mean diagonal of the centred ZᵀZ; auto: the best of a grid, by folds"
    )

    @property
    def traits(self) -> Traits:
        return replace(
            self.always,
            label=self.always.label.needing({f"kind: {self.kind}": "to predict"}),
            exact=ExactTraits(none=f"{self.kind} is a predictor and has no kernel"),
        )

    def check_parameters(self) -> None:
        if self.task == "soft" and self.class_weight != "none":
            refuse_parameter(
                "class_weight", "none with `task: soft`, whose rows have no true class", self.class_weight
            )

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        raise TypeError(f"{self.kind} is fitted on all rows: call `begin`")

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        raise TypeError(self.traits.exact.none)

    def check_searches(self) -> None:
        """Raise pydantic's error for any search except a search over numbers for the penalty."""
        for name, search in self._searches.items():
            values = search.get("validate", ())
            if name != "penalty" or not all(isinstance(value, int | float) for value in values):
                text = f"{self.kind}: {name}: expected a value, got a search: only numbers of a penalty can be chosen"
                raise PydanticCustomError("parameter", "{text}", {"text": text})

    @property
    def multiples(self) -> tuple[float, ...]:
        """The penalties to choose from."""
        if "penalty" in self._searches:
            return tuple(map(float, self._searches["penalty"]["validate"]))
        return self.penalties if self.penalty == "auto" else (self.penalty,)

    def with_penalty(self, chosen: float) -> Self:
        """Return the recipe with the penalty that was chosen."""
        return self.model_copy(update={"penalty": chosen}).searching({})

    def most_kept(self, width: int) -> int:
        """Return how many rows of features of this width to keep until the end of a fit."""
        return min(_MOST_KEPT, max(_LEAST_KEPT, _MOST_KEPT_NUMBERS // width))

    @abstractmethod
    def begin(self, width: int, targets: Targets, jobs: int) -> Learning:
        """Begin a fit on rows with features of this width, with `jobs` threads."""

    @abstractmethod
    def predicts_classes(self, state: State) -> bool:
        """Return True if the outputs are probabilities of classes, False if they are numbers."""
