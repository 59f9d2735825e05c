"""Describe in words which values a pydantic field accepts, from its annotation and its bounds.

Messages about configs and `kafeat kinds` use these descriptions, so neither can disagree with the validation.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import ModuleType, NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

LONGEST_TEXT = 60
LARGEST_NUMBER = 10**40


@dataclass(frozen=True)
class Described:
    """Metadata for `Annotated` that describes the values of a type: one value (singular), and many (plural)."""

    one: str
    many: str


class Declaration(NamedTuple):
    """A type annotation, unwrapped from `Annotated`, and the metadata that was attached to it."""

    annotation: Any
    metadata: tuple[Any, ...] = ()

    @classmethod
    def of(cls, annotation: Any, metadata: Iterable[Any] = ()) -> Declaration:
        """Unwrap `annotation` from `Annotated`, and append its metadata to `metadata`."""
        flat = tuple(metadata)
        while get_origin(annotation) is Annotated:
            annotation, *carried = get_args(annotation)
            for entry in carried:
                flat += tuple(entry.metadata) if isinstance(entry, FieldInfo) else (entry,)
        return cls(annotation, flat)

    @classmethod
    def of_field(cls, field: FieldInfo) -> Declaration:
        return cls.of(field.annotation, field.metadata)

    @property
    def members(self) -> tuple[Declaration, ...]:
        """The members of a union, each with the union's metadata too, or this declaration if it is not a union."""
        if get_origin(self.annotation) not in (Union, UnionType):
            return (self,)
        inner = (Declaration.of(part, self.metadata) for part in get_args(self.annotation))
        return tuple(member for part in inner for member in part.members)

    @property
    def choices(self) -> tuple[Any, ...]:
        """The values that the declaration lists by `Literal`."""
        literal = (m for m in self.members if get_origin(m.annotation) is Literal)
        return tuple(value for member in literal for value in get_args(member.annotation))

    def bound(self, name: str) -> Any:
        """Return the bound of that name (gt, ge, lt, le, min_length, max_length), or None."""
        bounds = (getattr(entry, name, None) for entry in self.metadata)
        return next((bound for bound in bounds if bound is not None), None)


def headline(documented: type | ModuleType) -> str:
    """Return the first paragraph of a docstring, on one line."""
    return " ".join((documented.__doc__ or "").split("\n\n")[0].split())


def purpose(kind: type) -> str:
    """Return a sentence about the purpose of a kind, from the docstring of its module."""
    return headline(sys.modules[kind.__module__])


def expected(field: FieldInfo) -> str:
    """Describe the values that a field accepts, such as "a number above 0, 'scale' or 'median'"."""
    return describe(Declaration.of_field(field))


def describe(*declarations: Declaration) -> str:
    """Describe the values that any of the declarations accepts."""
    members = [member for declaration in declarations for member in declaration.members]
    choices = [value for declaration in declarations for value in declaration.choices]
    kinds = [_one(member) for member in members if get_origin(member.annotation) is not Literal]
    if choices and not kinds:
        return one_of(choices)
    return _either([*kinds, *map(spell, choices)])


def one_of(choices: Iterable[object], noun: str = "") -> str:
    """Describe a closed choice: "one of 'iid', 'orthogonal'", or "one of the keys 'a', 'b'" for the noun "key"."""
    spelled = [spell(choice) for choice in choices]
    if len(spelled) == 1:
        return f"the {noun} {spelled[0]}" if noun else spelled[0]
    return f"one of the {noun}s {', '.join(spelled)}" if noun else f"one of {', '.join(spelled)}"


def nearest(name: object, names: Iterable[object]) -> str:
    """Return `; did you mean 'gamma'?` if one of `names` is close to `name`, otherwise an empty text."""
    known = (right for right in names if isinstance(right, str))
    meant = near(name[:LONGEST_TEXT], known) if isinstance(name, str) else None
    return "" if meant is None else f"; did you mean {meant!r}?"


def near(name: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the one of `names` closest to `name`, or None. Names that differ only in numbers are not close."""
    folded = {_fold(other): other for other in names if not _differ_in_numbers(name, other)}
    close = get_close_matches(_fold(name), folded, n=1, cutoff=cutoff)
    return folded[close[0]] if close else None


def _differ_in_numbers(one: str, other: str) -> bool:
    """Return True if two names differ only in the numbers they contain."""
    if one.casefold().translate(_NO_DIGITS) != other.casefold().translate(_NO_DIGITS):
        return False
    (texts, numbers), (texts_there, numbers_there) = _pieces(one), _pieces(other)
    return texts == texts_there and numbers != numbers_there


_NO_DIGITS = {ord(digit): None for digit in "0123456789"}


def _pieces(name: str) -> tuple[list[str], list[str]]:
    """Return the texts and the numbers of a name; x003y gives ["x", "y"] and ["3"]."""
    pieces = re.split("([0-9]+)", name.casefold())
    return pieces[::2], [number.lstrip("0") for number in pieces[1::2]]


def spell(value: object) -> str:
    """Return a value as YAML writes it, for messages: on one line, and shortened if it is long."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return str.__repr__(value if len(value) <= LONGEST_TEXT else value[: LONGEST_TEXT - 1] + "…")
    if isinstance(value, int):
        return "a huge whole number" if abs(value) >= LARGEST_NUMBER else int.__repr__(value)
    if isinstance(value, float):
        return (
            float.__repr__(value) if math.isfinite(value) else f".{float.__repr__(value)}".replace(".-", "-.")
        )
    if isinstance(value, Mapping):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}" if value else "an empty list"
    return f"a value of type {type(value).__name__}"


def _fold(name: str) -> str:
    return name.strip().casefold().replace("-", "_").replace(" ", "_")


def _either(phrases: Sequence[str]) -> str:
    *most, last = dict.fromkeys(phrases)
    return f"{', '.join(most)} or {last}" if most else last


def _one(declaration: Declaration) -> str:
    """Describe one value of a type that is neither a union nor a choice."""
    annotation = get_origin(declaration.annotation) or declaration.annotation
    for entry in declaration.metadata:
        if isinstance(entry, Described):
            return entry.one
    if annotation is str:
        return "text that is not empty" if declaration.bound("min_length") else "text"
    if annotation in (tuple, list, Sequence):
        return _list(declaration)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"a mapping with keys among {', '.join(map(spell, annotation.model_fields))}"
    if annotation in (dict, Mapping):
        return "a mapping"
    words = {bool: "true or false", NoneType: "null", int: "a whole number", float: "a number"}
    text = words.get(annotation, "a value")
    return text + _bounds(declaration) if annotation in (int, float) else text


def _list(declaration: Declaration) -> str:
    least, most = declaration.bound("min_length"), declaration.bound("max_length")
    items = [part for part in get_args(declaration.annotation) if part is not Ellipsis]
    if len(items) > 1:
        return f"a list of {len(items)} entries"
    size = f"at least {least} " if (least or 0) > 1 else ""
    size += f"{'and ' if size else ''}at most {most} " if most is not None else ""
    empty = "a non-empty list" if least == 1 else "a list"
    return f"{empty} of {size}{_many(Declaration.of(items[0])) if items else 'entries'}"


def _many(item: Declaration) -> str:
    for entry in item.metadata:
        if isinstance(entry, Described):
            return entry.many
    words = {int: "whole numbers", float: "numbers", str: "texts"}
    if item.annotation in words:
        return words[item.annotation] + ("" if item.annotation is str else _bounds(item))
    return f"entries, each {describe(item)}"


def _bounds(declaration: Declaration) -> str:
    words = {"gt": "above", "ge": "of at least", "lt": "below", "le": "of at most"}
    bounds = {name: declaration.bound(name) for name in words}
    said = {name: _limit(bound) for name, bound in bounds.items() if bound is not None}
    if said.keys() == {"ge", "le"}:
        return f" from {said['ge']} to {said['le']}"
    return (
        "".join(f" and {words[name]} {limit}" for name, limit in said.items())
        .replace(" and", "", 1)
        .replace("and of", "and")
    )


def _limit(bound: Any) -> str:
    return "2^63 - 1" if bound == 2**63 - 1 else spell(bound)
