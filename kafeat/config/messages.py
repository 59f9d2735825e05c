"""Convert the errors of pydantic to mistakes with paths and places, one for each place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ValidationError

from kafeat.config.places import Mistake, Node, Path
from kafeat.contract.describe import Declaration, describe, nearest, one_of, spell
from kafeat.contract.step import Step
from kafeat.registry import SEARCHES, kinds, step_class

OURS = ("step", "parameter")


def explain(error: ValidationError, root: type[BaseModel], plain: Any, node: Node | None) -> list[Mistake]:
    """Return the mistakes in `plain`, which `root` refused; they have places if it was read from `node`."""
    first: dict[Path, Mistake] = {}
    for detail in error.errors(include_url=False):
        mistake = _mistake(detail, root, plain, node)
        first.setdefault(mistake.path, mistake)
    # in a union, a mistake inside of a member says more than that other members do not match
    outer = {path[:end] for path in first for end in range(len(path))}
    return [mistake for path, mistake in first.items() if path not in outer]


def _mistake(detail: Mapping[str, Any], root: type[BaseModel], plain: Any, node: Node | None) -> Mistake:
    kind, loc = detail["type"], detail["loc"]
    if kind in ("extra_forbidden", "invalid_key"):
        return _unknown_key(follow(loc[:-1], root, plain), loc[-1], node)
    spot = follow(loc, root, plain)
    if kind in OURS:
        return _ours(detail["ctx"], spot, node)
    at = node.place(spot.path) if node else None
    got = "nothing" if kind == "missing" else spell(detail["input"])
    if kind in ("value_error", "assertion_error") or not spot.declarations:
        message = str(detail["msg"]).partition(", ")[2] or detail["msg"]
        return Mistake(f"{message}, got {got}", spot.path, at)
    choices = [choice for declaration in spot.declarations for choice in declaration.choices]
    hint = nearest(detail["input"], choices) if kind != "missing" else ""
    search = SEARCHES.get(str(spot.path[-1])) if spot.path else None
    accepted = describe(*spot.declarations) + (f", or {search}" if search else "")
    return Mistake(f"expected {accepted}, got {got}{hint}", spot.path, at)


def _unknown_key(owner: DeclaredValue, key: object, node: Node | None) -> Mistake:
    path = (*owner.path, str(key))
    keys = owner.keys()
    problem = f"expected {one_of(keys, 'key')}, got {spell(key)}"
    return Mistake(problem + nearest(key, keys), path, node.key_place(path) if node else None)


def _ours(ctx: Mapping[str, Any], spot: DeclaredValue, node: Node | None) -> Mistake:
    """Return a mistake that a step or the registry has described itself."""
    path = (*spot.path, ctx["field"]) if "field" in ctx else spot.path
    problem = ctx.get("text") or f"expected {ctx['expected']}, got {spell(ctx['got'])}"
    return Mistake(problem, path, node.place(path) if node else None)


class DeclaredValue(NamedTuple):
    """A path of keys and indices with its declarations, and its value, None if there is none."""

    path: Path
    declarations: tuple[Declaration, ...]
    value: Any

    def keys(self) -> tuple[str, ...]:
        """Return the keys that a mapping may have here."""
        choices: dict[str, None] = {}
        for member in _members(self.declarations):
            model = _model(member, self.value)
            if model is not None:
                own = ["kind"] if issubclass(model, Step) else []
                choices |= dict.fromkeys([*own, *model.model_fields])
        return tuple(choices)


def follow(loc: Sequence[str | int], root: type[BaseModel], plain: Any) -> DeclaredValue:
    """Follow a location of pydantic down from `root` and `plain`."""
    spot, at_union = DeclaredValue((), (Declaration(root),), plain), False
    for part in loc:
        if at_union:
            # `part` is the name of a union member, not a key; the parts after it select the members
            at_union = False
            continue
        members = _members(spot.declarations)
        inner = tuple(d for d in (_child(m, part, spot.value) for m in members) if d is not None)
        spot = DeclaredValue((*spot.path, part), inner, _value(spot.value, part))
        at_union = any(_is_union(declaration) for declaration in inner)
    return spot


def _is_union(declaration: Declaration) -> bool:
    """Return True if pydantic adds the name of a member to locations: for unions, but not for optional values."""
    return sum(member.annotation is not NoneType for member in declaration.members) > 1


def _members(declarations: Sequence[Declaration]) -> list[Declaration]:
    return [member for declaration in declarations for member in declaration.members]


def _model(declaration: Declaration, value: Any) -> type[BaseModel] | None:
    annotation = declaration.annotation
    if annotation is Step:
        kind = value.get("kind") if isinstance(value, Mapping) else value
        return step_class(kind) if isinstance(kind, str) and kind in kinds() else None
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _child(declaration: Declaration, part: str | int, value: Any) -> Declaration | None:
    model = _model(declaration, value)
    if model is not None:
        field = model.model_fields.get(str(part))
        return Declaration.of_field(field) if field is not None else None
    origin, arguments = get_origin(declaration.annotation), get_args(declaration.annotation)
    if isinstance(part, int) and origin in (tuple, list, Sequence):
        fixed = origin is tuple and arguments[-1:] != (Ellipsis,)
        return Declaration.of(arguments[part if fixed else 0])
    return Declaration.of(arguments[1]) if origin in (dict, Mapping) else None


def _value(value: Any, part: str | int) -> Any:
    inside = isinstance(value, Mapping | list | tuple)
    with suppress(LookupError, TypeError):
        return value[part] if inside else None
    return None
