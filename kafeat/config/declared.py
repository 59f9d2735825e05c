"""From the place that pydantic names to the declaration that stands there.

pydantic's places contain the names of union members, which are no keys; declarations are followed to tell
them from keys, and to say in our words what was expected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel

from kafeat.config.document import Path
from kafeat.describe import Declaration
from kafeat.registry import kinds, step_class
from kafeat.step import Step

ABSENT: Any = object()


class Spot(NamedTuple):
    """A path of keys and indices, what is declared there, and the value that is there or `ABSENT`."""

    path: Path
    declarations: tuple[Declaration, ...]
    value: Any

    def keys(self) -> tuple[str, ...]:
        """The keys that a mapping may have here."""
        found: dict[str, None] = {}
        for member in _members(self.declarations):
            model = _model(member, self.value)
            if model is not None:
                own = ["kind"] if issubclass(model, Step) else []
                found |= dict.fromkeys([*own, *model.model_fields])
        return tuple(found)


def follow(loc: Sequence[str | int], root: type[BaseModel], plain: Any) -> Spot:
    """Walk down from `root` and `plain` along one of pydantic's places."""
    spot, at_union = Spot((), (Declaration(root),), plain), False
    for part in loc:
        if at_union:
            # `part` names the member that complained; which ones are meant shows in what comes after it
            at_union = False
            continue
        members = _members(spot.declarations)
        inner = tuple(d for d in (_child(m, part, spot.value) for m in members) if d is not None)
        spot = Spot((*spot.path, part), inner, _value(spot.value, part))
        at_union = any(_is_union(declaration) for declaration in inner)
    return spot


def _is_union(declaration: Declaration) -> bool:
    """Whether pydantic puts a member's name into its place; for an optional value it does not."""
    return sum(member.annotation is not NoneType for member in declaration.members) > 1


def _members(declarations: Sequence[Declaration]) -> list[Declaration]:
    return [member for declaration in declarations for member in declaration.members]


def _model(declaration: Declaration, value: Any) -> type[BaseModel] | None:
    annotation = declaration.annotation
    if annotation is Step:
        kind = value.get("kind") if isinstance(value, Mapping) else None
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
    if isinstance(value, Mapping):
        return value.get(part, ABSENT)
    if isinstance(value, (list, tuple)) and isinstance(part, int) and part < len(value):
        return value[part]
    return ABSENT
