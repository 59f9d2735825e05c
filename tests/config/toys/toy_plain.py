"""A step with a parameter of every sort, so that the texts tested do not hang on the real kinds."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from kafeat.contract.step import PositiveFloat, PositiveInt, Step, parameter, refuse_parameter


class ToyPlain(Step):
    """Not for use."""

    n_components: PositiveInt = Field(description="no default: it must be there")
    gamma: PositiveFloat | Literal["scale", "median"] = parameter("median", "a union")
    law: Literal["iid", "orthogonal"] = parameter("iid", "a choice")
    clip: bool = parameter(False, "a switch")
    density: Annotated[float, Field(gt=0, le=1)] | None = parameter(None, "may be absent")
    weights: Annotated[tuple[PositiveFloat, ...], Field(strict=False)] | Literal["equal"] = parameter(
        "equal", "a union with a list in it"
    )
    label: str = parameter("x", "checked by hand")

    @field_validator("label")
    @classmethod
    def _short(cls, label: str) -> str:
        if len(label) > 3:
            raise ValueError("expected at most 3 letters")
        return label

    @model_validator(mode="after")
    def _even(self) -> Self:
        if self.law == "orthogonal" and self.n_components % 2:
            refuse_parameter("n_components", "an even number if law is orthogonal", self.n_components)
        if self.clip and self.density is None:
            refuse_parameter("density", "a number if clip is true", self.density)
        return self

    def fit(self, *_: Any) -> Any: ...
    def state_shapes(self, *_: Any) -> Any: ...
    def n_features_out(self, *_: Any) -> Any: ...
    def bind(self, *_: Any) -> Any: ...
    def exact(self, *_: Any) -> Any: ...
