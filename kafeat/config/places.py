"""Places of values in a config, and mistakes with their places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indices from the top to a value."""


class Place(NamedTuple):
    """A line and a column of a text, both counted from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Node:
    """A value and its place, and in a mapping that of its key; a mapping or list also has its nodes.

    `size` is the number of nodes and `depth` the number of levels, with aliases expanded.
    """

    value: Any
    at: Place
    key_at: Place | None = None
    children: Mapping[str | int, Node] = field(default_factory=dict)
    size: int = 1
    depth: int = 0

    def place(self, path: Path) -> Place:
        """Return the place of the value at `path`, or of the innermost existing mapping or list around it."""
        node = self
        for part in path:
            if part not in node.children:
                break
            node = node.children[part]
        return node.at

    def key_place(self, path: Path) -> Place:
        """Return the place of the last key of `path`, or of the mapping that lacks it."""
        node: Node | None = self
        for part in path:
            node = None if node is None else node.children.get(part)
        return self.place(path) if node is None or node.key_at is None else node.key_at


@dataclass(frozen=True)
class Mistake:
    """A mistake in a config: the problem, the path of the key and the place."""

    problem: str
    path: Path = ()
    at: Place | None = None

    def line(self, name: str) -> str:
        """Return the message about the mistake in the config `name`."""
        where = [f"{name}:{self.at.line}:{self.at.column}" if self.at else name]
        return ": ".join([*where, *([spell_path(self.path)] if self.path else []), self.problem])


def spell_path(path: Path) -> str:
    """Spell a path as `steps[1].gamma`, with unusual keys quoted."""
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
