"""A config to start from: every key with its default and what it may be, made from the declarations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from kafeat.config.model import Config
from kafeat.config.yaml_reader import resolve
from kafeat.contract.describe import Declaration, expected, headline
from kafeat.contract.step import Step
from kafeat.registry import accepted, step_class

SCHEMA_FILE = "kafeat.schema.json"
MODELINE = f"# yaml-language-server: $schema={SCHEMA_FILE}"

_WIDTH = 100
# Stands where a kind asks for steps of its own.
_INNER_KIND = "fourier"
# Stands before a kind that needs columns of like spreads.
_EVENING = "standardize"


def starting_config(kind: str) -> str:
    """The YAML of a config with one step of that kind; it is valid as it is."""
    step, about = step_class(kind), []
    about += _comment(f"{kind}: {headline(step)}")
    about += ["#"]
    about += _comment(
        f"Every key has its default here, and may be left out. `kafeat kinds {kind}` tells more, `kafeat kinds` "
        "lists the kinds that steps before and behind it may have, and `kafeat config --check FILE.yaml` checks what "
        f"you make of it. Editors complete what you type with `kafeat config --schema > {SCHEMA_FILE}`."
    )
    plain = Config(steps=(_example(step),)).to_plain()
    lines = [MODELINE, *about]
    for name, field in Config.model_fields.items():
        if name != "steps":
            lines += ["", *_described(field, expected(field)), f"{name}: {_flow(plain.get(name))}"]
    lines += ["", *_described(Config.model_fields["steps"], expected(Config.model_fields["steps"])), "steps:"]
    lines += [f"  {line}".rstrip() for line in (*_first(step), *_step(step))]
    return "\n".join(lines) + "\n"


def _example(step: type[Step]) -> Step:
    needed = {name: _needed(field) for name, field in step.model_fields.items() if field.is_required()}
    config = Config.model_validate({"steps": [{"kind": step.kind, **needed}]})
    return config.steps[0]


def _first(step: type[Step]) -> Iterator[str]:
    """The entry before it, where columns of different units are to weigh alike."""
    if _example(step).spreads == "needs":
        yield from _comment(
            "gives columns of different units the same weight; leave it out if all columns have one unit, as pixels "
            "have, if rows are sparse, or if the kernel needs values of at least 0"
        )
        yield from (f"- kind: {_EVENING}", "")


def _needed(field: FieldInfo) -> list[Any]:
    """A list of one entry for a required list of models or steps: the only required parameters that kinds have."""
    item = Declaration.of(get_args(Declaration.of_field(field).annotation)[0]).annotation
    if issubclass(item, Step):
        return [{"kind": _EVENING}, {"kind": _INNER_KIND}]
    return [{name: _needed(one) for name, one in item.model_fields.items() if one.is_required()}]


def _step(step: type[Step]) -> Iterator[str]:
    """The entry of a list."""
    yield f"- kind: {step.kind}"
    recipe = _example(step).recipe()
    for name, field in step.model_fields.items():
        yield from ("", *_indented(_described(field, accepted(name, field))))
        if field.is_required():
            yield from _indented(_block(name, recipe[name]))
        else:
            yield f"  {name}: {_flow(recipe[name])}"


def _block(name: str, entries: list[dict[str, Any]]) -> Iterator[str]:
    """A required list, one key a line."""
    yield f"{name}:"
    for entry in entries:
        dash = "  - "
        for key, value in entry.items():
            plain = [{"kind": one["kind"]} for one in value] if key == "steps" else value
            yield f"{dash}{key}: {_flow(plain)}"
            dash = "    "


def _described(field: FieldInfo, accepts: str) -> list[str]:
    """What a key means and accepts, and the same of the keys of a mapping there."""
    lines = [*_comment(str(field.description)), *_comment(accepts)]
    for member in _models(Declaration.of_field(field)):
        for name, inner in member.model_fields.items():
            lines += _comment(f"{name}: {inner.description}: {expected(inner)}", "#   ")
    return lines


def _models(declaration: Declaration) -> Iterator[type[BaseModel]]:
    """The mappings that may stand there, or be the entries of a list there; steps have comments of their own."""
    for member in declaration.members:
        for found in (member.annotation, *get_args(member.annotation)):
            inner = Declaration.of(found).annotation
            if isinstance(inner, type) and issubclass(inner, BaseModel) and not issubclass(inner, Step):
                yield inner


def _comment(text: str, sign: str = "# ") -> list[str]:
    return wrap(text, _WIDTH, initial_indent=sign, subsequent_indent=sign, break_long_words=False,
                break_on_hyphens=False)  # fmt: skip


def _indented(lines: Any) -> Iterator[str]:
    yield from (f"  {line}" for line in lines)


def _flow(value: Any) -> str:
    """Builtins as YAML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str) and value.replace("_", "").isalnum() and resolve(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False)
