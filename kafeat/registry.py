"""The kinds of steps, found by the names of their files, and imported one at a time when needed.

One kind, one name: the file `tensor_sketch.py` holds the class `TensorSketch`, and YAML uses `kind: tensor_sketch`.
There is no list to keep up to date.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from itertools import product
from math import prod
from pkgutil import iter_modules
from traceback import extract_tb
from types import ModuleType
from typing import Annotated, Any, TypeAlias

from pydantic import PlainSerializer, PlainValidator, ValidationError, WithJsonSchema
from pydantic.fields import FieldInfo
from pydantic_core import InitErrorDetails, PydanticCustomError

import kafeat.predictors
import kafeat.samplers
import kafeat.scalers
from kafeat.contract.describe import LONGEST_TEXT, expected, nearest, one_of, spell
from kafeat.contract.predictor import Predictor
from kafeat.contract.step import ANY_STEP, STEP, Step, dump_step
from kafeat.errors import UsageError, first_line


def names_in(package: ModuleType) -> tuple[str, ...]:
    """Return the names of the modules of `package` in alphabetical order, without those that begin with `_`."""
    return _names_in(tuple(package.__path__))


@cache  # called for every step of a config
def _names_in(folders: tuple[str, ...]) -> tuple[str, ...]:
    names = (module.name for module in iter_modules(folders) if not module.ispkg)
    return tuple(sorted(name for name in names if not name.startswith("_")))


def load_class(package: ModuleType, name: str, base: type) -> type[Any]:
    """Import the module `name` of `package` and return the class named after it, a subclass of `base`.

    If the import fails, the error names the file and the line.
    """
    class_name = "".join(word.capitalize() for word in name.split("_"))
    try:
        module = import_module(f"{package.__name__}.{name}")
    except (MemoryError, OSError):
        raise
    except Exception as error:  # importing a third-party module may raise anything
        raise UsageError(
            f"{_place(error, package, name)}: expected a module that Python imports, got "
            f"{type(error).__name__}: {first_line(error)}"
        ) from error
    cls = getattr(module, class_name, None)
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise UsageError(f"{module.__file__}: expected a class {class_name}({base.__name__}), got none")
    return cls


def _place(error: Exception, package: ModuleType, name: str) -> str:
    """Return the file and the line of an import error: the last line of the module itself in the traceback."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    lines = [one for one in extract_tb(error.__traceback__) if one.filename.endswith(f"{os.sep}{name}.py")]
    return f"{lines[-1].filename}:{lines[-1].lineno}" if lines else f"{package.__name__}.{name}"


def check_kind(kind: str) -> None:
    """Raise UsageError for an unknown kind."""
    if kind not in kinds():
        raise UsageError(f"{kind}: expected one of {', '.join(kinds())}{nearest(kind, kinds())}")


def step_class(kind: str) -> type[Step]:
    """Return the class of a kind, and import no other module of steps."""
    packages = (kafeat.samplers, samplers()), (kafeat.scalers, scalers()), (kafeat.predictors, predictors())
    for package, known in packages:
        if kind in known:
            return load_class(package, kind, Step)
    raise KeyError(kind)


def build_step(recipe: object) -> Step:
    """Return the step for a recipe (`kind` and parameters, or only the kind). A step is returned as it is.

    A mistake raises pydantic's `ValidationError`. For a step inside another model, pydantic prepends the place of the
    step, so that the error has the complete place.
    """
    if isinstance(recipe, Step):
        return recipe
    if isinstance(recipe, str):
        recipe = {"kind": recipe}
    if not isinstance(recipe, Mapping):
        raise _refusal((), recipe, STEP.one, spell(recipe))
    if "kind" not in recipe:
        raise _refusal(("kind",), recipe, one_of(kinds()), "nothing")
    kind = recipe["kind"]
    if not isinstance(kind, str) or kind not in kinds():
        raise _refusal(("kind",), kind, one_of(kinds()), f"{spell(kind)}{nearest(kind, kinds())}")
    found = step_class(kind)
    parameters = {name: value for name, value in recipe.items() if name != "kind"}
    searches = {
        name: _search(name, value)
        for name, value in parameters.items()
        if name in found.model_fields and _is_search(name, value)
    }
    if not searches:
        return _validated(found, parameters)
    settled = {name: value for name, value in parameters.items() if name not in searches}
    step = _check_combinations(found, settled, searches)
    return step.searching(searches)


def _validated(found: type[Step], parameters: Mapping[str, Any]) -> Step:
    return found.model_validate(dict(parameters), context={"build_step": _build_inner})


def _build_inner(recipe: object) -> Step:
    """Return the step for a recipe inside another step. Raise an error for a predictor."""
    step = build_step(recipe)
    if isinstance(step, Predictor):
        raise _refusal((), recipe, "a scaler or a sampler, since predictors come last", step.kind)
    return step


def _check_combinations(
    found: type[Step], settled: Mapping[str, Any], searches: Mapping[str, dict[str, Any]]
) -> Step:
    """Build the step with every combination of the searched values, to check them all, and return the first step."""
    choices = {name: search["validate"] for name, search in searches.items() if "validate" in search}
    if prod(map(len, choices.values())) > MOST_COMBINATIONS:
        most = f"at most {MOST_COMBINATIONS:,} combinations of values in a step"
        raise _refusal((next(iter(choices)),), None, most, "more")
    steps = [
        _validated(found, {**settled, **dict(zip(choices, values, strict=True))})
        for values in product(*choices.values())
    ]
    return steps[0]


MOST_COMBINATIONS = 10_000
"""The largest number of combinations of values that a search may try in one step."""

VALIDATE = "{validate: [values]}"
"""The form of a search in a config: `fit` chooses the value that predicts the label best."""

_READ_BY = ("columns", "maps")
"""Parameters that decide which columns are read. They cannot be searched, because a search needs those columns."""

SEARCHES = {
    "gamma": VALIDATE,
    "n_components": "{target_error: a number above 0 and below 1}",
}
"""The parameters that are searched most often, and how a config writes the search."""


def accepted(name: str, field: FieldInfo) -> str:
    """Describe the values that a step's parameter accepts, including a search for gamma and n_components."""
    return expected(field) + (f", or {SEARCHES[name]}" if name in SEARCHES else "")


def _is_search(name: str, value: object) -> bool:
    """Return True if `value` is a mapping with the key `validate`, or any mapping for gamma or n_components."""
    return isinstance(value, Mapping) and ("validate" in value or name in SEARCHES)


def _search(name: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return a valid search as builtins, or raise an error. `wanted` is the mapping from the recipe."""
    if name in _READ_BY:
        raise _refusal((name,), wanted, "a value: it selects the columns", "a search")
    if list(wanted) == ["validate"] and isinstance(wanted["validate"], list | tuple) and wanted["validate"]:
        return {"validate": [float(v) if isinstance(v, float) else v for v in wanted["validate"]]}
    if name == "n_components" and list(wanted) == ["target_error"]:
        target = wanted["target_error"]
        if type(target) in (int, float) and 0 < target < 1:
            return {"target_error": target}
    text = ", ".join(f"{key}: {spell(value)}" for key, value in wanted.items())
    plain = text.isprintable() and len(text) <= LONGEST_TEXT
    raise _refusal((name,), wanted, SEARCHES.get(name, VALIDATE), f"{{{text}}}" if plain else spell(text))


AnyStep: TypeAlias = Annotated[
    Step,
    PlainValidator(build_step),
    PlainSerializer(dump_step, return_type=dict[str, Any]),
    STEP,
    WithJsonSchema(ANY_STEP),
]
"""The type of a field that holds a step of any kind. Pydantic reads it from a recipe and writes it as one."""


def _refusal(loc: tuple[str, ...], value: object, expected: str, got: str) -> ValidationError:
    # passed as a variable of a template, because pydantic would read braces in the text as variables
    mistake = PydanticCustomError("step", "{text}", {"text": f"expected {expected}, got {got}"})
    return ValidationError.from_exception_data("step", [InitErrorDetails(type=mistake, loc=loc, input=value)])


def samplers() -> tuple[str, ...]:
    """Return the kinds of samplers, in alphabetical order."""
    return names_in(kafeat.samplers)


def scalers() -> tuple[str, ...]:
    """Return the kinds of scalers, in alphabetical order."""
    return names_in(kafeat.scalers)


def predictors() -> tuple[str, ...]:
    """Return the kinds of predictors, in alphabetical order."""
    return names_in(kafeat.predictors)


def map_kinds() -> tuple[str, ...]:
    """Return the kinds of the steps of a map: scalers first, because they come first in a chain."""
    return scalers() + samplers()


def kinds() -> tuple[str, ...]:
    """Return every kind, predictors last."""
    return map_kinds() + predictors()
