"""Names of steps, and of their parameters as in a scikit-learn pipeline: `fourier__n_components`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kafeat.errors import UsageError
from kafeat.registry import kinds, step_class

Recipe = dict[str, Any]


def named(steps: object) -> dict[str, Recipe]:
    """Return the recipe of every step by its name, or an empty dict if `steps` is invalid, which `fit` reports.

    A step is a kind, a recipe, or a pair of a name and one of these. The default name is the kind. Repeated names get
    numbers, `fourier-1` and `fourier-2`, as in `make_pipeline`.
    """
    if isinstance(steps, str | Mapping):
        steps = [steps]
    if not isinstance(steps, list | tuple):
        return {}
    entries = [_pair(entry) for entry in steps]
    pairs = [pair for pair in entries if pair is not None]
    counts, met = Counter(name for name, _ in pairs), Counter[str]()
    result: dict[str, Recipe] = {}
    for name, recipe in pairs:
        met[name] += 1
        result[name if counts[name] == 1 else f"{name}-{met[name]}"] = recipe
    return result if len(pairs) == len(entries) else {}


def _pair(entry: object) -> tuple[str, Recipe] | None:
    if isinstance(entry, str):
        return entry, {"kind": entry}
    if isinstance(entry, Mapping):
        return str(entry.get("kind")), dict(entry)
    if isinstance(entry, list | tuple) and len(entry) == 2 and isinstance(entry[0], str):
        inner = _pair(entry[1]) if isinstance(entry[1], str | Mapping) else None
        return None if inner is None else (entry[0], inner[1])
    return None


def parameters(steps: object) -> dict[str, Any]:
    """Return `name` → recipe and `name__parameter` → value of every step, with defaults."""
    parameters: dict[str, Any] = {}
    for name, recipe in named(steps).items():
        parameters[name] = recipe
        kind = recipe.get("kind")
        fields = step_class(kind).model_fields if kind in kinds() else {}
        defaults = {key: field.get_default(call_default_factory=True) for key, field in fields.items()}
        own = {key: value for key, value in recipe.items() if key != "kind"}
        parameters |= {f"{name}__{key}": value for key, value in (defaults | own).items()}
    return parameters


def changed(steps: object, changes: Mapping[str, Any]) -> list[tuple[str, Recipe]]:
    """Return the steps with some recipes (`name`) and parameters (`name__parameter`) replaced."""
    recipes = named(steps)
    for key in sorted(changes, key=lambda key: "__" in key):
        name, _, parameter = key.partition("__")
        if parameter:
            recipes[name] = {**recipes[name], parameter: changes[key]}
        else:
            recipes[name] = changes[key]
    return list(recipes.items())


def recipes_of(steps: object, taken: Sequence[str]) -> list[Any]:
    """Return the steps as in a config; refuse a name in `taken` or with two underscores."""
    recipes = named(steps)
    if not recipes:
        raise UsageError(f"steps: expected a kind, a recipe, or a list of them, got {steps!r:.100}")
    for name in recipes:
        if name in taken or "__" in name:
            raise UsageError(
                f"steps: expected names that are not parameters and do not contain '__', got {name!r:.100}: "
                "give the step another name, as in [('name', {'kind': …})]"
            )
    return list(recipes.values())


def plain(value: Any) -> Any:
    """Convert NumPy numbers and arrays, which are common in parameter grids, to builtins."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def seed_of(random_state: Any) -> Any:
    """Return the seed that scikit-learn's parameter stands for. A RandomState is not advanced, so it gives it again."""
    if not isinstance(random_state, np.random.RandomState):
        return plain(random_state)
    copy = np.random.RandomState()
    copy.set_state(random_state.get_state())
    return int(copy.randint(2**31 - 1))
