"""The config that was chosen, as YAML with comments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from kafeat.config import Config
from kafeat.config.template import flow
from kafeat.registry import build_step

_WIDTH = 110
# Parameters that people look for, so they are written even if they have their defaults.
_ALWAYS = ("kind", "kernel", "gamma", "n_components")


def commented(config: Config, comments: Sequence[str]) -> str:
    """Return the YAML of a config after comments; parameters with their defaults are left out."""
    lines = [line for text in comments for line in _comment(text)]
    plain, defaults = config.to_plain(), Config(steps=config.steps).to_plain()
    for key, value in plain.items():
        if key != "steps" and value != defaults.get(key):
            lines.append(f"{key}: {flow(value)}")
    return "\n".join([*lines, "steps:", *_steps(plain["steps"], "  ")]) + "\n"


def _comment(text: str) -> list[str]:
    indent = "# " + " " * (len(text) - len(text.lstrip()))
    return wrap(text.strip(), _WIDTH, initial_indent=indent, subsequent_indent=indent + "  ",
                break_long_words=False, break_on_hyphens=False) or ["#"]  # fmt: skip


def _steps(recipes: Sequence[Mapping[str, Any]], indent: str) -> Iterator[str]:
    for recipe in recipes:
        yield f"{indent}- kind: {recipe['kind']}"
        for key, value in briefly(recipe).items():
            if key == "maps":
                yield f"{indent}  maps:"
                for part in value:
                    yield from _part(part, f"{indent}    ")
            elif key != "kind":
                yield f"{indent}  {key}: {flow(value)}"


def _part(part: Mapping[str, Any], indent: str) -> Iterator[str]:
    """Yield the lines of one map of a union."""
    sign = "- "
    for key in ("columns", "weight"):
        if key in part and part[key] not in (None, 1.0):
            yield f"{indent}{sign}{key}: {flow(part[key])}"
            sign = "  "
    yield f"{indent}{sign}steps:"
    yield from _steps(part["steps"], f"{indent}    ")


def briefly(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe without most of the parameters that have their defaults."""
    kind = recipe["kind"]
    try:
        defaults = build_step({"kind": kind}).recipe()
    except ValueError:  # a kind with parameters that are required
        defaults = {}
    return {
        key: value
        for key, value in recipe.items()
        if key in _ALWAYS or key not in defaults or json.dumps(defaults[key]) != json.dumps(value)
    }
