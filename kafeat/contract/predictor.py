"""The contract of a predictor: the last step of a config, a model of the label that is fitted on all rows.

A predictor never sees labels. It gets targets: scaled numbers, probabilities of classes, or one-hot classes.
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

# Limits of the sample on which probabilities are calibrated: fewest and most rows, and most numbers in all rows.
_LEAST_KEPT, _MOST_KEPT, _MOST_KEPT_NUMBERS = 256, 20_000, 1 << 24


@dataclass(frozen=True)
class Targets:
    """How labels become targets: `n` columns, which stand for classes if `classes` is true.

    If `classes` is false, label = target · unit + centre, with `unit` and `centre` (n,). `folds` are for
    cross-validation.
    """

    n: int
    classes: bool
    centre: Floats
    unit: Floats
    folds: Folds = RANDOM


@dataclass(frozen=True)
class TrainingRows:
    """Rows of features (n, D) with targets (n, k), the fold number `parts` (n,) of each row, and weights (n,) or None.

    `counts` (n,) are the weights before class weights are applied: how often each row occurs.
    """

    features: Floats
    targets: Floats
    parts: Array
    weights: Floats | None = None
    counts: Floats | None = None

    @property
    def classes(self) -> Array:
        """The class index (n,) of each row."""
        return self.targets.argmax(axis=1)

    @property
    def own_weights(self) -> Floats:
        """The weights, or 1 for each row if no weights were given."""
        return np.ones(len(self.targets)) if self.weights is None else self.weights

    def select(self, rows: Array | Mask) -> TrainingRows:
        """Return the rows with these numbers, or where a mask is true."""
        weights, counts = (None if one is None else one[rows] for one in (self.weights, self.counts))
        return TrainingRows(self.features[rows], self.targets[rows], self.parts[rows], weights, counts)


@dataclass(frozen=True)
class HeldOut:
    """Rows, and their predicted `outputs` (n, k) by models fitted without the row; NaN if there is no such model."""

    rows: TrainingRows
    outputs: Floats


@dataclass(frozen=True)
class Learned:
    """A fitted predictor: its recipe with the chosen penalty, its state, and the penalties tried with their scores."""

    step: Predictor
    state: State
    penalties: tuple[float, ...] = ()
    scores: tuple[float, ...] = ()
    rows: int | None = None
    """The number of rows that it learned from, or None if it learned from all rows."""
    held_out: Callable[[], HeldOut] | None = None
    """Returns some training rows with predictions of models that were fitted without these rows."""


class Learning(ABC):
    """A fit in progress. Rows are added in a fixed order, so that the result does not depend on threads."""

    @abstractmethod
    def add(self, rows: TrainingRows) -> None:
        """Add training rows."""

    @abstractmethod
    def learned(self, kept: TrainingRows) -> Learned:
        """Return the fitted predictor. `kept` are training rows drawn at random, to calibrate probabilities on."""


class Predictor(Step):
    """Base class of predictors: recipes that are fitted to the features and targets of all training rows."""

    always: ClassVar[Traits] = Traits(
        numbers=NumberTraits(spreads="ignores"), label=LabelTraits(all_rows=True)
    )
    classes_only: ClassVar[bool] = False
    """True if the kind predicts only classes, not numbers."""

    penalties: ClassVar[tuple[float, ...]]
    """The penalties that `penalty: auto` chooses from."""

    task: Literal["auto", "classification", "regression", "soft"] = parameter(
        "auto",
        "classes or numbers; auto: text, booleans and at most 20 frequent whole numbers are classes; soft: several "
        "label columns are the probabilities of classes",
    )
    class_weight: Literal["none", "balanced"] = parameter(
        "none", "every row counts as one; balanced: every class counts the same"
    )

    penalty: Annotated[float, Field(ge=0)] | Literal["auto"] = parameter(
        "auto",
        "λ as a multiple of the mean diagonal of the centred ZᵀZ; auto: the best of a grid, by cross-validation",
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
                text = f"{self.kind}: {name}: expected a value, got a search: search only numbers for the penalty"
                raise PydanticCustomError("parameter", "{text}", {"text": text})

    @property
    def multiples(self) -> tuple[float, ...]:
        """The penalties to choose from, or the only penalty."""
        if "penalty" in self._searches:
            return tuple(map(float, self._searches["penalty"]["validate"]))
        return self.penalties if self.penalty == "auto" else (self.penalty,)

    def with_penalty(self, chosen: float) -> Self:
        """Return the recipe with the penalty that was chosen."""
        return self.model_copy(update={"penalty": chosen}).searching({})

    def most_kept(self, width: int) -> int:
        """Return how many rows with `width` features to pass to `Learning.learned` as `kept`."""
        return min(_MOST_KEPT, max(_LEAST_KEPT, _MOST_KEPT_NUMBERS // width))

    @abstractmethod
    def begin(self, width: int, targets: Targets, jobs: int) -> Learning:
        """Start to fit the predictor to rows with `width` features, with `jobs` threads."""

    @abstractmethod
    def predicts_classes(self, state: State) -> bool:
        """Return True if the outputs are probabilities of classes, False if they are numbers."""
