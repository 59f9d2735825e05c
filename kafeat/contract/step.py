"""The contract of a step: a frozen recipe that learns plain numbers and turns rows into rows.

Parameters are declared once, as fields with bounds; the config, the artifact, `kafeat kinds` and the
error messages all read that declaration.

**Row law**: row i of the output depends on row i of the input only. Chunks, threads and parts rest on it.
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
    """All rows to fit on, block by block, for steps that learn from more than the sample.

    `blocks` reads them anew at each call: rows (n, d), as the steps before hand them on, and their labels. `labels` are
    such that the task of all rows follows from them.
    """

    labels: Array
    blocks: Callable[[], Iterator[tuple[Any, Array]]]

    def changed(self, change: Callable[[Any], Any]) -> RowStream:
        """Return the stream with a function applied to the rows of each block."""
        return RowStream(self.labels, lambda: ((change(X), labels) for X, labels in self.blocks()))


@dataclass(frozen=True)
class Sample:
    """The rows that a step is fitted on.

    `X` (n, d) are the sampled rows in float64, as the steps before hand them on; `label` (n,) is the
    label column if there is one; `n_rows` counts the rows of the whole input. `given` holds the rows that a step
    asked for by `given_rows`, under the same names, as the steps before hand them on. `names` are those of the
    features, None for one that is no input column. `n_categories` says how many categories a feature is the code of,
    0 for a plain number. Both are None after a step that does not hand its input columns on. `times` are the names of
    the columns that were read as times. `dtype` is that of the map's features. `rows` (n,) are the numbers of the rows
    in the input; None counts them in the sample. `keys` are the groups or times by which rows are held out; None holds
    them out at random. `stream` reads all rows; without it, the sample is all that can be learned from. `jobs` is the
    number of threads that may share the work, which never changes what is learned. `cache` holds what other chains
    have learned from the same sample.
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
        """The label of a step that needs one."""
        if self.label is None:
            raise TypeError("a config without a label has to be refused before the fit")
        return self.label

    @property
    def all_rows(self) -> RowStream:
        """All rows to fit on; those of the sample if there is no stream."""
        label = self.needed_label
        return self.stream or RowStream(label, lambda: iter([(self.X, label)]))


class Transform(ABC):
    """A step made ready for one dtype: derived arrays are computed once, and shared by all workers."""

    n_features_in: int
    n_features_out: int
    takes: tuple[type, ...] = ()
    """The forms of rows that `apply` takes besides arrays: `SparseRows`, of few entries, and `TextRows`."""

    def reads(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The dtype that rows are to come in, for features in `dtype`."""
        return dtype

    @property
    def gives_sparse(self) -> bool:
        """True if most features are 0 where most inputs are, so that `to_sparse` is worth its while."""
        return False

    @property
    def widest(self) -> int:
        """The width of the widest array that a tile goes through."""
        return max(self.n_features_in, self.n_features_out)

    def scratch(self, rows: int) -> Scratch:
        """Buffers that one worker needs for tiles of `rows` rows."""
        return None

    @abstractmethod
    def apply(self, X: Any, out: Floats, scratch: Scratch) -> Array | None:
        """Write the image of the tile `X` (rows, n_features_in; C order) into `out` (rows, n_features_out).

        `out` is in C or in Fortran order. An entry that the step does not accept raises `InvalidValueError`. Of rows of
        another form the image is the same, up to rounding; a row's result must not depend on the others of the tile.
        Return of each row how many values were clipped, (rows,); None if never.
        """

    def to_sparse(self, X: Rows) -> tuple[SparseRows, Array | None]:
        """Return the image of a tile X (n, n_features_in), and of each row how many values were clipped, (n,), or None.

        It is the same as by `apply`, up to rounding. A step that need not make the zeros first has a way of its own.
        """
        out = np.empty((len(X), self.n_features_out), X.dtype)
        clipped = self.apply(dense(X), out, self.scratch(len(X)))
        return SparseRows.of(out), clipped


def total_clipped(counts: Iterable[Array | None]) -> Array | None:
    """Sum the clipped values of several transforms of one tile."""
    counted = [count for count in counts if count is not None]
    return np.sum(counted, axis=0) if counted else None


class Step(BaseModel, ABC):
    """A recipe: validated, frozen parameters. Its `kind` is the name of its file."""

    # A command uses few kinds, so schemas are built on first use.
    model_config = ConfigDict(
        defer_build=True, frozen=True, strict=True, extra="forbid", allow_inf_nan=False, validate_default=True
    )

    kind: ClassVar[str]
    always: ClassVar[Traits] = Traits()
    """The traits of every recipe of the kind."""

    def check_parameters(self) -> None:
        """Refuse parameters for their relation to each other, by `refuse_parameter`."""

    @model_validator(mode="after")
    def _checked(self) -> Self:
        self.check_parameters()
        return self

    @property
    def traits(self) -> Traits:
        """The traits of this recipe; a kind whose traits depend on parameters replaces some here."""
        searched = {
            f"{name}: validate": "to score by" for name, one in self._searches.items() if "validate" in one
        }
        return replace(self.always, label=self.always.label.needing(searched))

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        cls.kind = cls.__module__.rpartition(".")[2]

    def width_warning(self, n_features_in: int) -> str | None:
        """Return a sentence about a width of the output that is valid for this input but may be a mistake, or None."""
        return None

    def fit_warnings(self, state: State) -> Iterator[str]:
        """Yield sentences about what was learned that is valid but may not be what was meant."""
        crossed = "fold_rows" in state and not knows_own_labels(state)
        uneven = uneven_folds(state["fold_rows"]) if crossed else None
        if uneven is not None:
            yield f"{self.kind}: {uneven}"

    def names_out(self, names: Names, state: State) -> Names | None:
        """Return the names of the outputs, or None for a step whose outputs are not input columns.

        An output that is an unchanged input column has the name of that column. Others have none.
        """
        return None

    def sources(self, state: State, n_features_in: int) -> Array | None:
        """Return the number of the input that each output belongs to, or None if outputs belong to several."""
        return np.arange(n_features_in) if self.always.columns.apart else None

    @property
    def inner_chains(self) -> Sequence[tuple[Sequence[str] | None, Sequence[Step]]]:
        """Chains that stand in the step, each with the names of the columns that it sees; None: all."""
        return ()

    _searches: dict[str, dict[str, Any]] = PrivateAttr(default_factory=dict)

    def searching(self, searches: Mapping[str, dict[str, Any]]) -> Self:
        """The same recipe with parameters that are yet to be chosen from the data, by name."""
        step = self.model_copy()
        step._searches = dict(searches)
        return step

    @property
    def searches(self) -> bool:
        """True if a parameter is yet to be chosen from the data; before that, the step cannot be fitted."""
        return bool(self._searches)

    def settled(self, sample: Sample) -> Self:
        """The recipe to fit and to keep, with choices that depend on the sample made."""
        return self

    def recipe(self, live: bool = False) -> dict[str, Any]:
        """The kind and every parameter, defaults included, as builtins.

        With `live`, Python functions and arrays are as they are: no file holds them, and a step can be built from them.
        """
        mode = "python" if live else "json"
        return {"kind": self.kind, **self.model_dump(mode=mode, warnings=False), **self._searches}

    @abstractmethod
    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        """Learn from the sample; all randomness comes from `rng`."""

    @abstractmethod
    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        """The name and the shape of every array that a state of this recipe has, and its dtype if it holds no floats.

        Sizes that come from the data may be read off `state`; everything else must follow from the recipe
        and from `n_features_in`, so that a state that disagrees with them is refused.
        """

    def check_state(self, state: State, n_features_in: int) -> None:
        """Raise ValueError for values that no fit gives, where using them would do harm: indices, for example."""
        if "gamma" in state and not state["gamma"] > 0.0:
            raise ValueError(f"state.gamma: expected a number above 0, got {float(state['gamma']):g}")

    def n_features_out(self, state: State, n_features_in: int) -> int:
        """The width of the output, told without computing anything: `n_components`, or as many as came in."""
        return getattr(self, "n_components", n_features_in)

    @abstractmethod
    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        """The transform in `dtype`."""

    @abstractmethod
    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        """The truth that the transform stands for: new coordinates (a scaler) or the kernel (a sampler)."""


def knows_own_labels(state: State) -> bool:
    """True if the outputs for rows of the fit depend on their own labels: only others are held out."""
    return any(value.any() for name, value in state.items() if name.rpartition(".")[2] == "own")


class InTwos(Step):
    """A step whose outputs come in twos, as cosine and sine do, where a parameter says so."""

    twos: ClassVar[tuple[str, object, str]]
    """The parameter, its value with which they do, and how a message says so."""

    if TYPE_CHECKING:
        n_components: int  # which each kind declares, in an order of its own

    @property
    def n_drawn(self) -> int:
        """The number of draws that the outputs are made of: half of them where they come in twos."""
        in_twos = getattr(self, self.twos[0]) == self.twos[1]
        return self.n_components // 2 if in_twos else self.n_components

    def check_parameters(self) -> None:
        super().check_parameters()
        n = self.n_components
        if n % 2 and self.n_drawn != n:
            neighbours = f"{n - 1} or {n + 1}" if n > 1 else "2"
            refuse_parameter("n_components", f"an even number {self.twos[2]} ({neighbours})", n)


def _build_nested(recipe: object, info: ValidationInfo) -> Step:
    # Handed down by whoever builds the outer step: the registry of kinds stands above the kinds.
    build: Callable[[object], Step] = (info.context or {})["build_step"]
    return build(recipe)


def dump_step(step: Step, info: SerializationInfo) -> dict[str, Any]:
    """The recipe of a step that stands in another model: live unless builtins are asked for."""
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
"""A field of a step that holds a step of any kind."""


class Scaler(Step):
    """A step whose output is itself the truth: coordinates in, coordinates out."""

    always: ClassVar[Traits] = Traits(numbers=NumberTraits(spreads="keeps"))

    @abstractmethod
    def scale(self, state: State, X: Floats) -> Floats:
        """The image of `X` (n, d), in its own precision."""

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return ScalerTransform(self, state, n_features_in, dtype)

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        if not isinstance(pair, Coordinates):
            raise TypeError(f"{self.kind} needs coordinates")
        return Coordinates(self.scale(state, pair.x), self.scale(state, pair.y))


class ScalerTransform(Transform):
    """A scaler as a transform, its state cast to the map's dtype."""

    def __init__(self, scaler: Scaler, state: State, n_features: int, dtype: np.dtype[Any]) -> None:
        self.n_features_in, self.n_features_out = n_features, scaler.n_features_out(state, n_features)
        self._scaler = scaler
        self._state = {
            name: value.astype(dtype) if value.dtype.kind == "f" else value for name, value in state.items()
        }

    @cached_property
    def gives_sparse(self) -> bool:
        # outputs belong to one input each, and those of a row of zeros are 0
        if self._scaler.sources(self._state, self.n_features_in) is None:
            return False
        return not self._scaler.scale(self._state, np.zeros((1, self.n_features_in))).any()

    def apply(self, X: Floats, out: Floats, scratch: Scratch) -> None:
        out[...] = self._scaler.scale(self._state, X)


def refuse_parameter(name: str, expected: str, got: object) -> NoReturn:
    """Refuse a parameter for its relation to another one: call it from `check_parameters`."""
    raise PydanticCustomError(
        "parameter", "expected {expected}, got {got}", {"field": name, "expected": expected, "got": got}
    )


def refuse_beside(step: Step, names: Iterable[str], what: str) -> None:
    """Refuse parameters that would do nothing beside another one, unless they have their defaults."""
    for name in names:
        if getattr(step, name) != type(step).model_fields[name].default:
            refuse_parameter(name, f"none beside {what}", getattr(step, name))


def parameter(default: Any, description: str, **bounds: Any) -> Any:
    """Declare a parameter: its default, what it means, and its bounds (gt, ge, lt, le)."""
    return Field(default=default, description=description, **bounds)


N_COMPONENTS = parameter(512, "D, the number of outputs")
"""The field of a number of outputs: one default for all maps, the width that `tune` searches at."""
GROUP = Field(
    default=None,
    min_length=1,
    description="column that decides the fold of a row, no feature; null: its content",
)
"""The field of the group by which a step with folds of its own is cross-fitted."""
AS_TUPLE = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
"""A list becomes a tuple, and nothing else does: a set has no order."""
PositiveFloat = Annotated[float, Field(gt=0)]
PositiveInt = Annotated[int, Field(ge=1)]
MOST_FEATURES = 10_000_000
"""Inputs of a map, or outputs of a step: a tile of more would not fit into any machine."""
Width = Annotated[int, Field(ge=1, le=1_000_000)]
"""A number of outputs: more than this is a slip of the finger, and no machine could hold it."""
