"""The kinds of steps: found by the names of their files, imported one at a time when they are asked for.

One kind, one name: the file `tensor_sketch.py` holds the class `TensorSketch`, and YAML says
`kind: tensor_sketch`. There is no list to keep up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import PlainSerializer, PlainValidator, ValidationError, WithJsonSchema
from pydantic.fields import FieldInfo
from pydantic_core import InitErrorDetails, PydanticCustomError

import kafeat.samplers
import kafeat.scalers
from kafeat.contract.describe import Described, expected, nearest, one_of, spell
from kafeat.contract.discovery import load_class, names_in
from kafeat.contract.step import ANY_STEP, Step, dump_step
from kafeat.errors import UsageError

__all__ = [
    "SEARCHES",
    "SEARCH_SCHEMAS",
    "STEP",
    "AnyStep",
    "accepted",
    "build_step",
    "check_kind",
    "kinds",
    "samplers",
    "scalers",
    "step_class",
]

STEP = Described("a step (a mapping with a kind)", "steps")


def check_kind(kind: str) -> None:
    """Refuse an unknown kind."""
    if kind not in kinds():
        raise UsageError(f"{kind}: expected one of {', '.join(kinds())}{nearest(kind, kinds())}")


def step_class(kind: str) -> type[Step]:
    """The class of a kind; only its own module is imported."""
    for package, known in ((kafeat.samplers, samplers()), (kafeat.scalers, scalers())):
        if kind in known:
            cls = load_class(package, kind)
            if not issubclass(cls, Step):
                raise TypeError(f"{cls} is no step")
            return cls
    raise KeyError(kind)


def build_step(recipe: object) -> Step:
    """The step that a recipe (`kind` and parameters) stands for; a step is handed back as it is.

    A mistake raises pydantic's `ValidationError`. Inside of another model, pydantic takes such errors over
    and puts its own place in front, so that their places are whole at any depth.
    """
    if isinstance(recipe, Step):
        return recipe
    if not isinstance(recipe, Mapping):
        raise _refusal((), recipe, {"expected": STEP.one, "got": recipe})
    known = {"expected": one_of(kinds()), "choices": kinds()}
    if "kind" not in recipe:
        raise _refusal(("kind",), recipe, known)
    kind = recipe["kind"]
    if not isinstance(kind, str) or kind not in kinds():
        raise _refusal(("kind",), kind, {**known, "got": kind})
    found = step_class(kind)
    searches = {
        name: _search(name, recipe[name])
        for name in SEARCHES
        if name in found.model_fields and isinstance(recipe.get(name), Mapping)
    }
    parameters = {name: value for name, value in recipe.items() if name != "kind" and name not in searches}
    step = found.model_validate(parameters, context={"build_step": build_step})
    return step.searching(searches) if searches else step


SEARCHES = {
    "gamma": "{validate: [numbers above 0]}",
    "n_components": "{target_error: a number above 0 and below 1}",
}
"""Parameters that can be chosen from the data, and how that is written."""

_ABOVE_0 = {"type": "number", "exclusiveMinimum": 0}
SEARCH_SCHEMAS: dict[str, dict[str, Any]] = {
    "gamma": {
        "type": "object",
        "properties": {"validate": {"type": "array", "items": _ABOVE_0, "minItems": 1}},
        "required": ["validate"],
        "additionalProperties": False,
    },
    "n_components": {
        "type": "object",
        "properties": {"target_error": {**_ABOVE_0, "exclusiveMaximum": 1}},
        "required": ["target_error"],
        "additionalProperties": False,
    },
}
"""The same as JSON Schema."""


def accepted(name: str, field: FieldInfo) -> str:
    """Describe the values of a parameter of a step, with the search where there is one."""
    return expected(field) + (f", or {SEARCHES[name]}" if name in SEARCHES else "")


def _search(name: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """A search as builtins, or a refusal."""
    if name == "gamma" and list(wanted) == ["validate"] and isinstance(wanted["validate"], list | tuple):
        values = list(wanted["validate"])
        if values and all(_is_number(value) and value > 0 for value in values):
            return {"validate": values}
    if name == "n_components" and list(wanted) == ["target_error"]:
        target = wanted["target_error"]
        if _is_number(target) and 0 < target < 1:
            return {"target_error": target}
    text = ", ".join(f"{key}: {spell(value)}" for key, value in wanted.items())
    raise _refusal((name,), wanted, {"expected": SEARCHES[name], "got": f"{{{text}}}"})


def _is_number(value: object) -> bool:
    """Return True for a plain number that float64 can hold."""
    if not isinstance(value, int | float) or type(value) not in (int, float):
        return False
    return abs(value) <= sys.float_info.max


AnyStep: TypeAlias = Annotated[
    Step,
    PlainValidator(build_step),
    PlainSerializer(dump_step, return_type=dict[str, Any]),
    STEP,
    WithJsonSchema(ANY_STEP),
]
"""A field that holds a step of any kind; it reads and writes recipes."""


def _refusal(loc: tuple[str, ...], value: object, ctx: dict[str, Any]) -> ValidationError:
    got = f"{spell(ctx['got'])}{nearest(ctx['got'], ctx.get('choices', ()))}" if "got" in ctx else "nothing"
    text = f"expected {ctx['expected']}, got {got}"
    # braces would be taken for the names of more context
    mistake = PydanticCustomError("step", "{text}", {**ctx, "text": text})
    return ValidationError.from_exception_data("step", [InitErrorDetails(type=mistake, loc=loc, input=value)])


def samplers() -> tuple[str, ...]:
    """The kinds of samplers, in alphabetical order."""
    return names_in(kafeat.samplers)


def scalers() -> tuple[str, ...]:
    """The kinds of scalers, in alphabetical order."""
    return names_in(kafeat.scalers)


def kinds() -> tuple[str, ...]:
    """Every kind: scalers first, as they come first in a chain."""
    return scalers() + samplers()
