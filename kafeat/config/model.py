"""The recipe of a whole feature map."""

from __future__ import annotations

import json
from collections import Counter
from hashlib import sha256
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from kafeat.contract.describe import Described
from kafeat.contract.step import PositiveInt, parameter, refuse_parameter
from kafeat.registry import AnyStep
from kafeat.types import DType

T = TypeVar("T")


def _as_tuple(value: object) -> object:
    """Only lists: a set has no order, so the map would not be the same twice."""
    return tuple(value) if isinstance(value, list) else value


Name = Annotated[str, Field(min_length=1), Described("a name (text, not empty)", "names")]
Listed = Annotated[tuple[T, ...], BeforeValidator(_as_tuple)]
FROZEN = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class ColumnSelection(BaseModel):
    """Which columns are features: those of `include`, or every numeric one but those of `exclude`."""

    model_config = FROZEN

    include: Listed[Name] = Field(default=(), description="the features, in this order", min_length=1)
    exclude: Listed[Name] = Field(default=(), description="the numeric columns that are no features")

    @model_validator(mode="after")
    def _one_list_without_repeats(self) -> Self:
        if {"include", "exclude"} <= self.model_fields_set:
            refuse_parameter("exclude", "no exclude beside include", self.exclude)
        for field, names in (("include", self.include), ("exclude", self.exclude)):
            repeated = next((name for name, times in Counter(names).items() if times > 1), None)
            if repeated is not None:
                refuse_parameter(field, "every name once", repeated)
        return self

    def to_plain(self) -> dict[str, list[str]]:
        """The one list that counts; no list at all is nothing excluded."""
        return {"include": list(self.include)} if self.include else {"exclude": list(self.exclude)}


class Prune(BaseModel):
    """Which outputs are kept: those that a sparse linear model of the label uses."""

    model_config = FROZEN

    penalty: Literal["l1"] = parameter("l1", "what makes the model sparse")
    keep: PositiveInt = Field(description="outputs to keep, at most")


class Config(BaseModel):
    """A recipe for a map: its steps, and all options of the fit. It is checked when it is made, and cannot be changed.

    Parameters
    ----------
    seed : int, default 0
        Seed of every random draw.
    dtype : {"float32", "float64"}, default "float32"
        Type of the features.
    columns : mapping, default {}
        `include` names the features, `exclude` columns that are none; by default every numeric column is one.
    fit_rows : int or "all", default 100_000
        Number of rows that are sampled to fit on.
    chunk_rows : int, default 8192
        Number of rows that are transformed at once.
    prune : mapping or None, default None
        `keep` is the number of outputs to keep, chosen by a sparse linear model of the label.
    steps : list of mappings
        The chain; each step has a `kind` and its parameters.

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
    dtype: DType = parameter(
        "float32", "the precision of the features; scalers that come first compute in float64"
    )
    columns: ColumnSelection = parameter(ColumnSelection(), "the features; default: every numeric column")
    fit_rows: PositiveInt | Literal["all"] = parameter(100_000, "rows sampled to fit on, or all")
    chunk_rows: int = parameter(8192, "rows that are transformed at once", ge=1, le=1_000_000)
    prune: Prune | None = Field(default=None, description="keep the outputs that a sparse linear model uses")
    steps: Listed[AnyStep] = Field(description="the chain, first step first", min_length=1)

    @property
    def label_needs(self) -> dict[str, str]:
        """The places in the config that make a fit need a label, and what each needs it for."""
        own = {} if self.prune is None else {"prune": "to predict"}
        return own | {
            f"steps[{i}].{place}": purpose
            for i, step in enumerate(self.steps)
            for place, purpose in step.label_needs.items()
        }

    @property
    def needs_label(self) -> bool:
        """Whether a fit needs a label."""
        return bool(self.label_needs)

    def to_plain(self) -> dict[str, Any]:
        """Builtins, every default written out; the same for equal configs, and read by `load_config`."""
        return {
            "seed": self.seed,
            "dtype": self.dtype,
            "columns": self.columns.to_plain(),
            "fit_rows": self.fit_rows,
            "chunk_rows": self.chunk_rows,
            **({} if self.prune is None else {"prune": self.prune.model_dump(mode="json")}),
            "steps": [step.recipe() for step in self.steps],
        }

    def digest(self) -> str:
        """SHA-256 of the canonical JSON: the same for every spelling of the same config."""
        canonical = json.dumps(self.to_plain(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return sha256(canonical.encode()).hexdigest()
