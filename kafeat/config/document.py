"""A text as plain values and the place of each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indices from the top to a value."""


class Place(NamedTuple):
    """A line and a column of a text, both from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Node:
    """A value and its place; for a mapping or a list also the nodes in it, and the places of the keys.

    `size` counts the nodes and `depth` the levels, each alias with all that it stands for.
    """

    value: Any
    at: Place
    children: Mapping[str | int, Node] = field(default_factory=dict)
    keys: Mapping[str, Place] = field(default_factory=dict)
    size: int = 1
    depth: int = 0

    def place(self, path: Path) -> Place:
        """The place of the value at `path`, or of the deepest mapping or list around where it is missing."""
        node = self
        for part in path:
            if part not in node.children:
                break
            node = node.children[part]
        return node.at

    def key_place(self, path: Path) -> Place:
        """The place of the last key of `path`, if it is there."""
        node = self
        for part in path[:-1]:
            if part not in node.children:
                return node.at
            node = node.children[part]
        return node.keys.get(str(path[-1]), node.at)


@dataclass(frozen=True)
class Mistake:
    """One thing to mend: where, in which key, what was expected and what was got."""

    problem: str
    path: Path = ()
    at: Place | None = None

    def line(self, name: str) -> str:
        """The line for people; `name` says which config."""
        where = [f"{name}:{self.at.line}:{self.at.column}" if self.at else name]
        return ": ".join([*where, *([spell_path(self.path)] if self.path else []), self.problem])


def spell_path(path: Path) -> str:
    """`steps[1].gamma`; a key that is no plain word is quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            dot = "." if text else ""
            text += dot + (
                part if part.replace("-", "_").isidentifier() and part.isascii() else repr(part[:60])
            )
    return text
