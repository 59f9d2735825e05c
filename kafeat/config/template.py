"""Write configs as YAML with comments, and their JSON Schema for editors, from the fields that also validate configs.

A starting config has every key with its default and its accepted values. The schema (draft 2020-12) describes single
values. Only validation checks conditions on two values, such as an even `n_components` for paired features.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticOmit, core_schema

from kafeat.config.model import ColumnSelection, Config
from kafeat.config.yaml_reader import resolve
from kafeat.contract.describe import Declaration, expected, headline, purpose
from kafeat.contract.predictor import Predictor
from kafeat.contract.step import ANY_STEP, Step
from kafeat.errors import visible, visible_json
from kafeat.registry import accepted, build_step, kinds, step_class

SCHEMA_FILE = "kafeat.schema.json"
MODELINE = f"# yaml-language-server: $schema={SCHEMA_FILE}"

_WIDTH, _WIDTH_OF_SENTENCES = 100, 110
# The kind of the inner step in the example of a kind that contains other steps.
_INNER_KIND = "fourier"
# The scaler to show before a kind that needs columns of similar spread.
_EVENING = "standardize"

Schema = dict[str, Any]


def starting_config(kind: str) -> str:
    """Return the YAML of a valid config with one step of this kind."""
    step = step_class(kind)
    help_text = (
        f"Every key is shown with its default and may be omitted. `kafeat kinds {kind}` describes the parameters, "
        "`kafeat kinds` lists the kinds of steps, and `kafeat config --check FILE.yaml` checks the result. "
        f"`kafeat config --schema > {SCHEMA_FILE}` enables completion in editors."
    )
    lines = [MODELINE, *_comment(f"{kind}: {purpose(step)}"), "#", *_comment(help_text)]
    before = (build_step({"kind": _EVENING}),) if issubclass(step, Predictor) else ()
    plain = Config(steps=(*before, _example(step))).to_plain()
    for name, field in Config.model_fields.items():  # ends with `steps`, whose lines follow
        value = "" if name == "steps" else f" {flow(plain.get(name))}"
        lines += ["", *_described(field, expected(field)), f"{name}:{value}"]
    lines += [f"  {line}".rstrip() for line in (*_first(step), *_step(step))]
    return "\n".join(lines) + "\n"


def _example(step: type[Step]) -> Step:
    needed = {name: _needed(field) for name, field in step.model_fields.items() if field.is_required()}
    return build_step({"kind": step.kind, **needed})


def _first(step: type[Step]) -> Iterator[str]:
    """Yield a scaler before the step if the step needs columns of similar spread, and a map before a predictor."""
    if issubclass(step, Predictor):
        yield from _comment(
            "a scaler and a map with their defaults; the predictor learns from the features of the map"
        )
        yield from (f"- kind: {_EVENING}", f"- kind: {_INNER_KIND}", "")
    if _example(step).traits.numbers.spreads == "needs":
        yield from _comment(
            "gives columns of different units the same weight; omit it if all columns have the same unit (pixels), "
            "if rows are sparse, or if the kernel needs values of at least 0"
        )
        yield from (f"- kind: {_EVENING}", "")


def _needed(field: FieldInfo) -> list[Any]:
    """Return an example of a required parameter, which is always a list of models or steps."""
    item = Declaration.of(get_args(Declaration.of_field(field).annotation)[0]).annotation
    if issubclass(item, Step):
        return [{"kind": _EVENING}, {"kind": _INNER_KIND}]
    return [{name: _needed(one) for name, one in item.model_fields.items() if one.is_required()}]


def _step(step: type[Step]) -> Iterator[str]:
    """Yield the YAML lines of a step: each parameter with comments and its default."""
    yield f"- kind: {step.kind}"
    recipe = _example(step).recipe()
    for name, field in step.model_fields.items():
        yield from ("", *_indented(_described(field, accepted(name, field))))
        if field.is_required():
            yield from _indented(_block(name, recipe[name]))
        else:
            yield f"  {name}: {flow(recipe[name])}"


def _block(name: str, entries: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the YAML lines of a required list of mappings, one key per line."""
    yield f"{name}:"
    for entry in entries:
        dash = "  - "
        for key, value in entry.items():
            plain = [{"kind": one["kind"]} for one in value] if key == "steps" else value
            yield f"{dash}{key}: {flow(plain)}"
            dash = "    "


def _described(field: FieldInfo, accepts: str) -> list[str]:
    """Return comments on the meaning and accepted values of a key, and of the keys inside its value."""
    lines = [*_comment(str(field.description)), *_comment(accepts)]
    for member in _models(Declaration.of_field(field)):
        for name, inner in member.model_fields.items():
            lines += _comment(f"{name}: {inner.description}: {expected(inner)}", "#   ")
    return lines


def _models(declaration: Declaration) -> Iterator[type[BaseModel]]:
    """Yield the pydantic models of a value or of the entries of a list, except steps, which have their own comments."""
    for member in declaration.members:
        for candidate in (member.annotation, *get_args(member.annotation)):
            inner = Declaration.of(candidate).annotation
            if isinstance(inner, type) and issubclass(inner, BaseModel) and not issubclass(inner, Step):
                yield inner


def _comment(text: str, sign: str = "# ") -> list[str]:
    return wrap(text, _WIDTH, initial_indent=sign, subsequent_indent=sign, break_long_words=False,
                break_on_hyphens=False)  # fmt: skip


def _indented(lines: Any) -> Iterator[str]:
    yield from (f"  {line}" for line in lines)


def flow(value: Any) -> str:
    """Return the YAML of a value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, str) and value.replace("_", "").isalnum() and resolve(value) == value:
        return value
    return visible_json(json.dumps(value, ensure_ascii=False))


# Parameters that people look for, so they are written even if they have their defaults.
_ALWAYS = ("kind", "kernel", "gamma", "n_components")


def commented(config: Config, comments: Sequence[str]) -> str:
    """Return comments, then the YAML of a config without most parameters that have their defaults."""
    lines = [line for text in comments for line in _hanging(text)]
    plain, defaults = config.to_plain(), Config(steps=config.steps).to_plain()
    for key, value in plain.items():
        if key != "steps" and value != defaults.get(key):
            lines.append(f"{key}: {flow(value)}")
    return "\n".join([*lines, "steps:", *_entries(plain["steps"], "  ")]) + "\n"


def _hanging(text: str) -> list[str]:
    """Wrap `text` into comment lines. They keep the indent of `text`, and lines after the first get two spaces more."""
    indent = "# " + " " * (len(text) - len(text.lstrip()))
    return wrap(visible(text.strip()), _WIDTH_OF_SENTENCES, initial_indent=indent, subsequent_indent=indent + "  ",
                break_long_words=False, break_on_hyphens=False) or ["#"]  # fmt: skip


def _entries(entries: Sequence[Mapping[str, Any]], indent: str) -> Iterator[str]:
    """Yield the YAML lines of steps, or of the maps of a union."""
    for entry in entries:
        sign = "- "
        for key, value in _briefly(entry).items():
            if key in ("maps", "steps"):
                yield f"{indent}{sign}{key}:"
                yield from _entries(value, f"{indent}    ")
            else:
                yield f"{indent}{sign}{key}: {flow(value)}"
            sign = "  "


def _briefly(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a step, or a map of a union, without most of the parameters that have their defaults."""
    if "kind" not in entry:
        return {key: value for key, value in entry.items() if value not in (None, 1.0)}
    try:
        defaults = build_step({"kind": entry["kind"]}).recipe()
    except ValueError:  # the kind has required parameters
        defaults = {}
    return {
        key: value
        for key, value in entry.items()
        if key in _ALWAYS or key not in defaults or json.dumps(defaults[key]) != json.dumps(value)
    }


def config_schema() -> Schema:
    """Return the JSON Schema of a config, in which the `kind` of a step decides its other keys."""
    definitions: Schema = {}
    whole = _schema_of(Config, definitions)
    whole["properties"]["columns"]["default"] = ColumnSelection().to_plain()
    for kind in kinds():
        definitions[kind] = _of_kind(kind, definitions)
    definitions["step"] = {
        **ANY_STEP,
        "if": {"type": "string"},
        "then": {"enum": list(kinds())},
        "else": {"required": ["kind"], "properties": {"kind": {"enum": list(kinds())}}},
        "allOf": [
            {
                "if": {"type": "object", "properties": {"kind": {"const": kind}}, "required": ["kind"]},
                "then": {"$ref": f"#/$defs/{kind}"},
            }
            for kind in kinds()
        ],
    }
    definitions |= {way: _search(way, value) for way, value in _SEARCHES.items()}
    schema: Schema = _settled({**whole, "$defs": dict(sorted(definitions.items()))})
    return {"$schema": GenerateJsonSchema.schema_dialect, "title": "kafeat config", **schema}


class _Generator(GenerateJsonSchema):
    """Pydantic's schema generator. It omits callables, which YAML cannot express, and titles, which repeat keys."""

    def callable_schema(self, schema: core_schema.CallableSchema) -> Schema:
        raise PydanticOmit

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _schema_of(model: type[BaseModel], definitions: Schema) -> Schema:
    schema = model.model_json_schema(schema_generator=_Generator)
    for name, inner in schema.pop("$defs", {}).items():
        if definitions.setdefault(name, inner) != inner:
            raise TypeError(f"two models are named {name}")
    del schema["title"]
    return {**schema, "description": headline(model)}


def _of_kind(kind: str, definitions: Schema) -> Schema:
    schema = _schema_of(step_class(kind), definitions)
    properties = {name: _searched(name, one) for name, one in schema.get("properties", {}).items()}
    return {
        **schema,
        "properties": {"kind": {"const": kind}, **properties},
        "required": ["kind", *schema.get("required", ())],
    }


_SEARCHES: dict[str, Schema] = {
    "validate": {"type": "array", "minItems": 1, "description": "the values to try; the best score wins"},
    "target_error": {
        "type": "number",
        "exclusiveMinimum": 0,
        "exclusiveMaximum": 1,
        "description": "the largest error of the kernel; the smallest width that reaches it is chosen",
    },
}


def _search(way: str, value: Schema) -> Schema:
    return {"type": "object", "properties": {way: value}, "required": [way], "additionalProperties": False}


def _searched(name: str, schema: Schema) -> Schema:
    """Return the schema of a parameter that also allows a search in place of a value."""
    about: Schema = {key: schema[key] for key in ("default", "description") if key in schema}
    plain: Schema = {key: value for key, value in schema.items() if key not in about}
    searches: list[Schema] = [{"$ref": "#/$defs/validate"}]
    if name == "gamma":  # is searched most often, so editors check the values too
        searches = [_search("validate", {**_SEARCHES["validate"], "items": plain})]
    if name == "n_components":
        searches.append({"$ref": "#/$defs/target_error"})
    return {"anyOf": [*plain.get("anyOf", [plain]), *searches], **about}


def _settled(schema: Any) -> Any:
    """Replace the schemas of steps by references, and write enums in the same way for every version of pydantic."""
    if isinstance(schema, list):
        return [_settled(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema == ANY_STEP:  # any use of a step; the definition of `step` has more keys
        return {"$ref": "#/$defs/step"}
    if "const" in schema:
        schema = {key: one for key, one in schema.items() if key not in ("enum", "type")}
    if "enum" in schema:
        schema = {key: one for key, one in schema.items() if key != "type"}
    return {key: _settled(one) for key, one in schema.items()}
