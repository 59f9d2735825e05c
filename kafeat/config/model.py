"""The recipe of a feature map."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any, Literal, NoReturn, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticCustomError

from kafeat.chain.parallel import grouped
from kafeat.contract.name_patterns import ColumnNames
from kafeat.contract.predictor import Predictor
from kafeat.contract.step import AS_TUPLE, PositiveInt, Step, parameter, refuse_parameter
from kafeat.contract.traits import ColumnTraits, LabelTraits
from kafeat.maths.scoring import ScoringName
from kafeat.registry import AnyStep
from kafeat.types import DType

FROZEN = ConfigDict(defer_build=True, frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


def _predictor_last(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Refuse a predictor that is the first step, is not the last step, or has a search that it does not support."""
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        if isinstance(step, Predictor):
            if after is not None:
                _refuse(f"{step.kind} as the last step only", f"{after.kind} after it")
            if step is steps[0]:
                _refuse(f"a scaler or a sampler before {step.kind}", "none; standardize is one")
            step.check_searches()
    return steps


def _refuse(expected: str, got: str) -> NoReturn:
    text = f"expected {expected}, got {got}"
    raise PydanticCustomError("parameter", "{text}", {"expected": expected, "text": text})


GROUPS_BESIDE = "group:<groups>"
"""The `split_by` for groups that are not a column of the table. Steps cannot use them, as new rows have no groups."""


def _by_group(steps: tuple[Step, ...], info: ValidationInfo) -> tuple[Step, ...]:
    """Make steps with cross-fitting divide the training rows into folds by the groups of `split_by`."""
    split_by = info.data.get("split_by") or ""
    way, _, column = split_by.partition(":")
    reads = way == "group" and split_by != GROUPS_BESIDE
    return tuple(grouped(step, column) for step in steps) if reads else steps


def _way_and_column(split_by: str) -> str:
    """Return `split_by`, or raise an error if it is neither `group:COL` nor `time:COL`."""
    way, _, column = split_by.partition(":")
    if way not in ("group", "time") or not column:
        _refuse("group:COL or time:COL", repr(split_by))
    return split_by


class ColumnSelection(BaseModel):
    """The feature columns: those in `include`, or every numeric column except those in `exclude`.

    A name may be a shell pattern: `x*`, `pixel_??`, `[!i]*`. If a column has exactly this name, only that one matches.
    """

    model_config = FROZEN

    include: ColumnNames = Field(
        default=(), description="the feature columns, in this order, by name or pattern", min_length=1
    )
    exclude: ColumnNames = Field(
        default=(), description="the numeric columns that are not features, by name or pattern"
    )

    @model_validator(mode="after")
    def _one_list_without_repeats(self) -> Self:
        if {"include", "exclude"} <= self.model_fields_set:
            refuse_parameter("exclude", "no exclude with include", self.exclude)
        for field, names in (("include", self.include), ("exclude", self.exclude)):
            repeated = next((name for name, times in Counter(names).items() if times > 1), None)
            if repeated is not None:
                refuse_parameter(field, "every name once", repeated)
        return self

    def to_plain(self) -> dict[str, list[str]]:
        """Return `{"include": [...]}`. If `include` is None, return `{"exclude": [...]}`, whose list may be empty."""
        return {"include": list(self.include)} if self.include else {"exclude": list(self.exclude)}


class SearchOptions(BaseModel):
    """How to search the values that a parameter lists as `{validate: [values]}`."""

    model_config = FROZEN

    method: Literal["auto", "full", "coordinate"] = parameter(
        "auto",
        "full: try every combination; coordinate: one parameter after the other; auto: full up to 36 combinations",
    )
    folds: Annotated[int, Field(ge=2, le=20)] | None = parameter(
        None, "folds of a cross-validation; null: a quarter of the rows is held out once"
    )
    scoring: ScoringName = parameter("auto", "the score; auto: accuracy for classes, r2 for numbers")
    rows: Annotated[int, Field(ge=20)] = parameter(6000, "maximum number of rows to search on")


Steps = Annotated[tuple[AnyStep, ...], AS_TUPLE, AfterValidator(_predictor_last)]
"""A chain of steps. Only the last one may be a predictor."""


class Config(BaseModel):
    """A recipe for a map: its steps, and all options for fitting. It is validated when created, and immutable.

    Parameters
    ----------
    seed : int, default 0
        Seed of every random draw.
    dtype : {"float32", "float64"}, default "float32"
        Type of the features.
    columns : mapping, default {}
        `include` lists the feature columns, or `exclude` the numeric columns to leave out; by default every numeric
        column is a feature. A name may be a shell pattern, such as "x*".
    fit_rows : int or "all", default 100_000
        Number of rows that are sampled to fit on.
    chunk_rows : int, default 8192
        Number of rows that are transformed at once.
    search : mapping or None, default None
        How to search the values that a parameter lists as `{validate: [values]}`: `method`, `folds`, `scoring`, `rows`.
    split_by : str or None, default None
        Rows to hold out when parameters are chosen: whole groups for "group:COL", the latest rows for "time:COL", and
        random rows for None.
    steps : list of mappings or texts
        The chain of steps. Each is a mapping with a `kind` and parameters, or only the kind, such as "standardize".

    Raises
    ------
    pydantic.ValidationError
        A key or value is invalid. `kafeat.fit` and `kafeat.evaluate` raise `kafeat.errors.ConfigError` instead.

    Examples
    --------
    >>> import kafeat
    >>> config = kafeat.Config(steps=[{"kind": "fourier", "n_components": 64}], seed=1)
    >>> config.steps[0].kind, config.seed
    ('fourier', 1)
    """

    model_config = FROZEN

    seed: int = parameter(0, "seed of every random draw", ge=0, le=2**63 - 1)
    dtype: DType = parameter("float32", "precision of the features; leading scalers compute in float64")
    columns: ColumnSelection = parameter(
        ColumnSelection(), "the feature columns; default: every numeric column"
    )
    fit_rows: PositiveInt | Literal["all"] = parameter(100_000, "number of rows in the fit sample, or all")
    chunk_rows: int = parameter(8192, "number of rows transformed at once", ge=1, le=1_000_000)
    search: SearchOptions | None = Field(default=None, description="how values of validate are tried")
    split_by: Annotated[str, AfterValidator(_way_and_column)] | None = parameter(
        None, "group:COL or time:COL, by which rows are held out; null: at random"
    )
    steps: Annotated[Steps, AfterValidator(_by_group)] = Field(
        description="the chain, first step first", min_length=1
    )

    @property
    def predictor(self) -> Predictor | None:
        """The last step, if it is a predictor."""
        last = self.steps[-1]
        return last if isinstance(last, Predictor) else None

    @property
    def map_steps(self) -> tuple[Step, ...]:
        """The steps of the map, which are all steps except the predictor."""
        return self.steps if self.predictor is None else self.steps[:-1]

    @property
    def read(self) -> ColumnTraits:
        """The columns that the steps read as categories, times or texts, by name or pattern."""
        return ColumnTraits.merged([step.traits.columns for step in self.steps])

    @property
    def learn_all_rows(self) -> list[Step]:
        """The steps that learn from all rows, in a separate pass after the sample is read."""
        return [step for step in self.steps if step.traits.label.all_rows]

    @property
    def label_needs(self) -> Mapping[str, str]:
        """Return the places in the config that need a label, such as `steps[1].gamma`, and what each needs it for."""
        return LabelTraits.merged(
            {f"steps[{i}]": step.traits.label for i, step in enumerate(self.steps)}
        ).needs

    @property
    def needs_label(self) -> bool:
        """True if this config cannot be fitted without a label."""
        return bool(self.label_needs)

    def to_plain(self) -> dict[str, Any]:
        """Return the config with every default as builtins, for `load_config`. Equal configs give equal mappings."""
        own = self.model_dump(mode="json", include=Config.model_fields.keys() - {"steps"})
        own["columns"] = self.columns.to_plain()
        given = {name: value for name, value in own.items() if value is not None}
        return {**given, "steps": [step.recipe() for step in self.steps]}

    def digest(self) -> str:
        """Return the SHA-256 of the canonical JSON. Equal configs have the same digest, however they are written."""
        canonical = json.dumps(self.to_plain(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return sha256(canonical.encode()).hexdigest()
