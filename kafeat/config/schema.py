"""The JSON Schema (draft 2020-12) of configs, for editors, made from the same declarations as the check.

The schema describes single values. Conditions on two values (an even `n_components` for paired features) are only in
the check.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticOmit, core_schema

from kafeat.config.model import ColumnSelection, Config
from kafeat.contract.describe import headline
from kafeat.contract.step import ANY_STEP
from kafeat.registry import kinds, step_class

Schema = dict[str, Any]


def config_schema() -> Schema:
    """Return the schema of a config; the keys of a step depend on its `kind`."""
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
    """Pydantic's generator without callables, which no file can hold, and without titles that repeat the keys."""

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
    "validate": {"type": "array", "minItems": 1, "description": "the values to choose from, by the label"},
    "target_error": {
        "type": "number",
        "exclusiveMinimum": 0,
        "exclusiveMaximum": 1,
        "description": "the largest error; the least width that reaches it is taken",
    },
}


def _search(way: str, value: Schema) -> Schema:
    return {"type": "object", "properties": {way: value}, "required": [way], "additionalProperties": False}


def _searched(name: str, schema: Schema) -> Schema:
    """Add the searches to the schema of a parameter, which may be chosen from the data."""
    about: Schema = {key: schema[key] for key in ("default", "description") if key in schema}
    plain: Schema = {key: value for key, value in schema.items() if key not in about}
    searches: list[Schema] = [{"$ref": "#/$defs/validate"}]
    if name == "gamma":  # is chosen most often, so editors check the values too
        searches = [_search("validate", {**_SEARCHES["validate"], "items": plain})]
    if name == "n_components":
        searches.append({"$ref": "#/$defs/target_error"})
    return {"anyOf": [*plain.get("anyOf", [plain]), *searches], **about}


def _settled(schema: Any) -> Any:
    """Replace steps by references, and spell choices in the same way for every version of pydantic."""
    if isinstance(schema, list):
        return [_settled(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema == ANY_STEP:  # the definition itself has more keys
        return {"$ref": "#/$defs/step"}
    if "const" in schema:
        schema = {key: one for key, one in schema.items() if key not in ("enum", "type")}
    if "enum" in schema:
        schema = {key: one for key, one in schema.items() if key != "type"}
    return {key: _settled(one) for key, one in schema.items()}
