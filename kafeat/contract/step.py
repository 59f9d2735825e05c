"""The contract of a step: a frozen recipe that learns plain numbers and turns rows into rows.

Parameters are declared once, as fields with bounds; the config, the model file, `kafeat kinds` and the
error messages all read that declaration.

**Row law**: row i of the output depends on row i of the input only. Chunks, threads and parts rely on this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    PrivateAttr,
    SerializationInfo,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from kafeat.contract.describe import Described
from kafeat.contract.folds import RowKeys, uneven_folds
from kafeat.contract.kernel_inputs import Coordinates, KernelInputs
from kafeat.contract.tile import Rows, SparseRows, dense
from kafeat.contract.traits import NumberTraits, Traits
from kafeat.types import Array, Floats, Scratch, Shapes, State

Names = tuple[str | None, ...]

DOUBLE = np.dtype(np.float64)


class RowStream(NamedTuple):
    """All training rows, block by block, for steps that learn from more than the sample.

    Each call of `blocks` reads the rows again, and yields blocks of rows (n, d), transformed by the previous steps, and
    their labels. `labels` is enough to see whether the task is classification or regression.
    """

    labels: Array
    blocks: Callable[[], Iterator[tuple[Any, Array]]]

    def changed(self, change: Callable[[Any], Any]) -> RowStream:
        """Return the stream with a function applied to the rows of each block."""
        return RowStream(self.labels, lambda: ((change(X), labels) for X, labels in self.blocks()))


@dataclass(frozen=True)
class Sample:
    """The rows that a step is fitted on.

    `X` (n, d) are the sampled rows in float64, transformed by the previous steps. `label` (n,) is the label column if
    there is one, and `n_rows` counts the rows of the whole input. `given` has the rows that a step requested by
    `given_rows`, under the same names, also transformed. `names` are the names of the features, with None for each that
    is not an input column. `n_categories` has the number of categories of each feature that is a code, and 0 for every
    other feature. `names` and `n_categories` are None after a step that does not keep its input columns. `times` are
    the names of the columns that were read as times. `dtype` is that of the map's features. `rows` (n,) are the row
    numbers in the input; None means 0, 1, …, n − 1. `keys` are the groups or times by which rows are held out; None
    holds them out at random. `stream` reads all rows; without it, steps can learn only from the sample. `jobs` is the
    number of threads, which never changes the result. `cache` stores fitted chains on the same sample, for reuse.
    """

    X: Floats
    label: Array | None
    n_rows: int
    given: Mapping[str, Floats] = field(default_factory=dict)
    names: Names | None = None
    n_categories: tuple[int, ...] | None = None
    times: frozenset[str] = frozenset()
    dtype: np.dtype[Any] = DOUBLE
    rows: Array | None = None
    keys: RowKeys | None = None
    stream: RowStream | None = None
    jobs: int = 1
    cache: Any = None

    @property
    def needed_label(self) -> Array:
        """The label, for a step that needs one."""
        if self.label is None:
            raise TypeError("expected a label: callers check that there is one before they fit")
        return self.label

    @property
    def all_rows(self) -> RowStream:
        """A stream of all training rows, or of the rows of the sample if only the sample is known."""
        label = self.needed_label
        return self.stream or RowStream(label, lambda: iter([(self.X, label)]))


class Transform(ABC):
    """A step prepared for one dtype. Its derived arrays are computed once and shared by all workers."""

    n_features_in: int
    n_features_out: int
    takes: tuple[type, ...] = ()
    """The forms of rows that `apply` accepts besides arrays: `SparseRows` and `TextRows`."""

    def reads(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype that input rows must have if the features of the map are in `dtype`."""
        return dtype

    @property
    def gives_sparse(self) -> bool:
        """True if sparse rows have mostly zero features, so that `to_sparse` saves time."""
        return False

    @property
    def widest(self) -> int:
        """The largest width of the arrays for a tile: input, output and intermediate results."""
        return max(self.n_features_in, self.n_features_out)

    def scratch(self, rows: int) -> Scratch:
        """Return the buffers that one worker needs for tiles of `rows` rows."""
        return None

    @abstractmethod
    def apply(self, X: Any, out: Floats, scratch: Scratch) -> Array | None:
        """Write the image of the tile `X` (rows, n_features_in; C order) into `out` (rows, n_features_out).

        `out` is in C or in Fortran order. An entry that the step does not accept raises `InvalidValueError`. Rows in
        a form of `takes` give the same image, up to rounding. A row's result must not depend on the other rows. Return
        how many values of each row were clipped, (rows,), or None if the step never clips.
        """

    def to_sparse(self, X: Rows) -> tuple[SparseRows, Array | None]:
        """Return the image of a tile X (n, n_features_in), and how many values of each row were clipped, (n,) or None.

        The image equals that of `apply`, up to rounding. Steps that can avoid computing the zeros override this.
        """
        out = np.empty((len(X), self.n_features_out), X.dtype)
        clipped = self.apply(dense(X), out, self.scratch(len(X)))
        return SparseRows.of(out), clipped


def total_clipped(counts: Iterable[Array | None]) -> Array | None:
    """Add up, for each row of a tile, the values that transforms clipped. Return None if no transform counts them."""
    counted = [count for count in counts if count is not None]
    return np.sum(counted, axis=0) if counted else None


class Step(BaseModel, ABC):
    """A recipe: validated, frozen parameters. Its `kind` is the name of its file."""

    # Pydantic builds the schema of a kind on first use, because a command uses few kinds.
    model_config = ConfigDict(
        defer_build=True, frozen=True, strict=True, extra="forbid", allow_inf_nan=False, validate_default=True
    )

    kind: ClassVar[str]
    always: ClassVar[Traits] = Traits()
    """The traits of every recipe of the kind."""

    def check_parameters(self) -> None:
        """Raise an error for an invalid combination of parameters, by calling `refuse_parameter`."""

    @model_validator(mode="after")
    def _checked(self) -> Self:
        self.check_parameters()
        return self

    @property
    def traits(self) -> Traits:
        """The traits of this recipe. Kinds whose traits depend on parameters override this."""
        searched = {
            f"{name}: validate": "to score by" for name, one in self._searches.items() if "validate" in one
        }
        return replace(self.always, label=self.always.label.needing(searched))

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        cls.kind = cls.__module__.rpartition(".")[2]

    def width_warning(self, n_features_in: int) -> str | None:
        """Return a warning about an output width that is valid for this input but may be a mistake, or None."""
        return None

    def fit_warnings(self, state: State) -> Iterator[str]:
        """Yield warnings about learned values that are valid but may not be intended."""
        crossed = "fold_rows" in state and not knows_own_labels(state)
        uneven = uneven_folds(state["fold_rows"]) if crossed else None
        if uneven is not None:
            yield f"{self.kind}: {uneven}"

    def names_out(self, names: Names, state: State) -> Names | None:
        """Return the names of the outputs, or None for a step whose outputs are not input columns.

        An output that is an unchanged input column has the name of that column. The name of any other output is None.
        """
        return None

    def sources(self, state: State, n_features_in: int) -> Array | None:
        """Return the index of the one input that each output depends on, or None if outputs depend on several."""
        return np.arange(n_features_in) if self.always.columns.apart else None

    @property
    def inner_chains(self) -> Sequence[tuple[Sequence[str] | None, Sequence[Step]]]:
        """Chains inside the step, each with the names of the columns that it sees (None: all)."""
        return ()

    _searches: dict[str, dict[str, Any]] = PrivateAttr(default_factory=dict)

    def searching(self, searches: Mapping[str, dict[str, Any]]) -> Self:
        """Return a copy with searches, such as {"gamma": {"validate": [0.1, 1.0]}}, for parameters yet to be chosen."""
        step = self.model_copy()
        step._searches = dict(searches)
        return step

    @property
    def searches(self) -> bool:
        """True if a parameter is yet to be chosen from the data. Until then, the step cannot be fitted."""
        return bool(self._searches)

    def settled(self, sample: Sample) -> Self:
        """Return the recipe to fit and to store. The sample may decide parameters, such as `landmarks: auto`."""
        return self

    def recipe(self, live: bool = False) -> dict[str, Any]:
        """The kind and every parameter, defaults included, as builtins.

        With `live`, Python functions and arrays stay objects. A step can be built from these, but they cannot be saved.
        """
        mode = "python" if live else "json"
        return {"kind": self.kind, **self.model_dump(mode=mode, warnings=False), **self._searches}

    @abstractmethod
    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        """Learn from the sample; all randomness comes from `rng`."""

    @abstractmethod
    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        """Return the name and the shape of every array in a state, and the dtype of those that do not hold floats.

        Sizes that come from the data may be read from `state`. Everything else must follow from the recipe and from
        `n_features_in`, so that a state that disagrees with them is rejected.
        """

    def check_state(self, state: State, n_features_in: int) -> None:
        """Raise ValueError for values that no fit produces, if using them would do harm, such as wrong indices."""
        if "gamma" in state and not state["gamma"] > 0.0:
            raise ValueError(f"state.gamma: expected a number above 0, got {float(state['gamma']):g}")

    def n_features_out(self, state: State, n_features_in: int) -> int:
        """Return the width of the output without computing it: `n_components`, or the number of inputs."""
        return getattr(self, "n_components", n_features_in)

    @abstractmethod
    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        """Return the fitted step as a transform for features in `dtype`."""

    @abstractmethod
    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        """Return what the transform approximates: new coordinates (a scaler) or the kernel (a sampler)."""


def knows_own_labels(state: State) -> bool:
    """Return True if outputs for some training rows depend on their own labels, in spite of cross-fitting."""
    return any(value.any() for name, value in state.items() if name.rpartition(".")[2] == "own")


class InTwos(Step):
    """A step that can make its outputs in pairs, such as cosine and sine, if a parameter says so."""

    twos: ClassVar[tuple[str, object, str]]
    """The parameter, its value for pairs, and words for messages: ("features", "paired", "for paired features")."""

    if TYPE_CHECKING:
        n_components: int  # each kind declares it, at its place among the parameters

    @property
    def n_drawn(self) -> int:
        """The number of random draws, such as frequencies: one per output, or one per pair if outputs come in pairs."""
        in_twos = getattr(self, self.twos[0]) == self.twos[1]
        return self.n_components // 2 if in_twos else self.n_components

    def check_parameters(self) -> None:
        super().check_parameters()
        n = self.n_components
        if n % 2 and self.n_drawn != n:
            neighbours = f"{n - 1} or {n + 1}" if n > 1 else "2"
            refuse_parameter("n_components", f"an even number {self.twos[2]} ({neighbours})", n)


class Grouped(Step):
    """A step that divides training rows into folds, by a column of groups or, without one, by a hash of each row."""

    if TYPE_CHECKING:
        group: str | None  # each kind declares it with `GROUP`

    @property
    def group_columns(self) -> tuple[str, ...]:
        """The name of the column of groups, if there is one, as a tuple."""
        return () if self.group is None else (self.group,)


def _build_nested(recipe: object, info: ValidationInfo) -> Step:
    # The context has the function `build_step` of the registry, which this module cannot import.
    build: Callable[[object], Step] = (info.context or {})["build_step"]
    return build(recipe)


def dump_step(step: Step, info: SerializationInfo) -> dict[str, Any]:
    """Return the recipe of a step inside another model: as builtins for JSON, otherwise with live Python objects."""
    return step.recipe(live=info.mode != "json")


ANY_STEP = {
    "type": ["object", "string"],
    "description": "a step: its kind, and parameters of that kind; or the kind alone",
}
"""The JSON Schema of a step before its kind is known."""
STEP = Described("a step (a kind, or a mapping with a kind)", "steps")

NestedStep = Annotated[
    Step,
    PlainValidator(_build_nested),
    PlainSerializer(dump_step, return_type=dict[str, Any]),
    STEP,
    WithJsonSchema(ANY_STEP),
]
"""The type of a parameter, such as `steps` of a union, that holds another step of any kind."""


class Scaler(Step):
    """A step that turns coordinates into coordinates, and approximates no kernel."""

    always: ClassVar[Traits] = Traits(numbers=NumberTraits(spreads="keeps"))

    @abstractmethod
    def scale(self, state: State, X: Floats) -> Floats:
        """Return the scaled rows for `X` (n, d), in the dtype of `X`."""

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return ScalerTransform(self, state, n_features_in, dtype)

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        if not isinstance(pair, Coordinates):
            raise TypeError(f"{self.kind} needs coordinates")
        return Coordinates(self.scale(state, pair.x), self.scale(state, pair.y))


class ScalerTransform(Transform):
    """A scaler as a transform, with its state cast to the map's dtype."""

    def __init__(self, scaler: Scaler, state: State, n_features: int, dtype: np.dtype[Any]) -> None:
        self.n_features_in, self.n_features_out = n_features, scaler.n_features_out(state, n_features)
        self._scaler = scaler
        self._state = {
            name: value.astype(dtype) if value.dtype.kind == "f" else value for name, value in state.items()
        }

    @cached_property
    def gives_sparse(self) -> bool:
        # True if each output depends on only one input, and a row of zeros gives zeros.
        if self._scaler.sources(self._state, self.n_features_in) is None:
            return False
        return not self._scaler.scale(self._state, np.zeros((1, self.n_features_in))).any()

    def apply(self, X: Floats, out: Floats, scratch: Scratch) -> None:
        out[...] = self._scaler.scale(self._state, X)


def refuse_parameter(name: str, expected: str, got: object) -> NoReturn:
    """Raise pydantic's error for a parameter that contradicts another. For calls from `check_parameters`."""
    raise PydanticCustomError(
        "parameter", "expected {expected}, got {got}", {"field": name, "expected": expected, "got": got}
    )


def refuse_beside(step: Step, names: Iterable[str], what: str) -> None:
    """Raise an error if a parameter in `names` is set, because it has no effect together with `what`."""
    for name in names:
        if getattr(step, name) != type(step).model_fields[name].default:
            refuse_parameter(name, f"none with {what}", getattr(step, name))


def parameter(default: Any, description: str, **bounds: Any) -> Any:
    """Declare a parameter with its default, its meaning, and its bounds (gt, ge, lt, le)."""
    return Field(default=default, description=description, **bounds)


N_COMPONENTS = parameter(512, "D, the number of outputs")
"""The field for the number of outputs, with one default for all maps: the width at which `tune` searches."""
GROUP = Field(
    default=None,
    min_length=1,
    description="column of groups, not a feature; rows of a group share a fold; null: equal rows share a fold",
)
"""The field for the column of groups by which a `Grouped` step divides training rows into folds."""
AS_TUPLE = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
"""A validator that turns a list into a tuple. It does not convert sets, because these have no order."""
PositiveFloat = Annotated[float, Field(gt=0)]
PositiveInt = Annotated[int, Field(ge=1)]
MOST_FEATURES = 10_000_000
"""Largest number of inputs of a map or of outputs of a step: no machine has memory for a tile with more."""
Width = Annotated[int, Field(ge=1, le=1_000_000)]
"""The type of parameters for the number of outputs, with a limit: a larger number must be a typo."""
