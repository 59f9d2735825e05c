"""A step made of steps, two levels further down."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from kafeat.contract.step import Step
from kafeat.registry import AnyStep


class Chain(BaseModel):
    """One of the maps."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    steps: tuple[AnyStep, ...] = Field(strict=False, min_length=1)


class ToyUnion(Step):
    """Not for use."""

    maps: tuple[Chain, ...] = Field(strict=False, min_length=1)

    def fit(self, *_: Any) -> Any: ...
    def state_shapes(self, *_: Any) -> Any: ...
    def n_features_out(self, *_: Any) -> Any: ...
    def bind(self, *_: Any) -> Any: ...
    def exact(self, *_: Any) -> Any: ...
