"""YAML to plain values with their places.

The reader walks the parser's events and resolves scalars and aliases itself: so what a hostile text can cost
is bounded, nothing is ever constructed but builtins, and two equal keys are a mistake among the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kafeat.config.document import Mistake, Node, Path, Place
from kafeat.config.events import UnreadableError, decode, events
from kafeat.config.scalars import resolve
from kafeat.describe import spell

MOST_NODES = 50_000
DEEPEST = 50


def read(content: bytes) -> tuple[Node | None, list[Mistake]]:
    """The document in `content` as far as it can be read, and the mistakes made in writing it."""
    mistakes: list[Mistake] = []
    try:
        return _Reader(events(decode(content)), mistakes).document(), mistakes
    except UnreadableError as stop:
        return None, [*mistakes, stop.mistake]


class _Reader:
    """Builds nodes from events by descent; its depth is bounded."""

    def __init__(self, events: Iterator[Any], mistakes: list[Mistake]) -> None:
        self._events = events
        self._mistakes = mistakes
        self._anchors: dict[str, Node] = {}
        self._nodes = 0
        self._level = 0

    def document(self) -> Node | None:
        """The only document, or None for a text without any."""
        root = None
        for event in self._events:
            kind = type(event).__name__
            if kind == "DocumentStartEvent":
                if root is not None:
                    raise UnreadableError(Mistake("expected one document, got another", at=_place(event)))
                root = self._node(next(self._events), ())
        return root

    def _node(self, event: Any, path: Path) -> Node:
        at, kind = _place(event), type(event).__name__
        self._bound(at, self._level, 1)
        if kind == "AliasEvent":
            return self._alias(event, path)
        if event.ctag is not None:
            self._mistakes.append(Mistake(f"expected no tag, got {spell(str(event.tag))}", path, at))
        self._level += 1
        if kind == "MappingStartEvent":
            node = self._mapping(at, path)
        elif kind == "SequenceStartEvent":
            node = self._sequence(at, path)
        else:
            node = Node(_scalar(event), at)
        self._level -= 1
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: Any, path: Path) -> Node:
        at = _place(event)
        target = self._anchors.get(event.anchor)
        if target is None:
            problem = f"expected the name of an anchor further up, got {spell(event.anchor)}"
            raise UnreadableError(Mistake(problem, path, at))
        self._bound(at, self._level + target.depth, target.size)
        return replace(target, at=at)

    def _sequence(self, at: Place, path: Path) -> Node:
        children: dict[str | int, Node] = {}
        while type(event := next(self._events)).__name__ != "SequenceEndEvent":
            children[len(children)] = self._node(event, (*path, len(children)))
        return _collection([child.value for child in children.values()], at, children, {})

    def _mapping(self, at: Place, path: Path) -> Node:
        children: dict[str | int, Node] = {}
        keys: dict[str, Place] = {}
        while type(event := next(self._events)).__name__ != "MappingEndEvent":
            key = self._node(event, path)
            if not isinstance(key.value, str):
                self._mistakes.append(
                    Mistake(f"expected a key that is text, got {spell(key.value)}", path, key.at)
                )
                self._node(next(self._events), path)
                continue
            value = next(self._events)
            node = self._node(value, (*path, key.value))
            if getattr(value, "value", None) == "" and value.style is None:
                # the parser puts what is not there where the next thing is, maybe on another line
                node = replace(node, at=_end(event))
            if key.value in keys:
                problem = f"expected each key once, got it again (first in line {keys[key.value].line})"
                self._mistakes.append(Mistake(problem, (*path, key.value), key.at))
                continue
            children[key.value], keys[key.value] = node, key.at
        return _collection({name: child.value for name, child in children.items()}, at, children, keys)

    def _bound(self, at: Place, depth: int, size: int) -> None:
        """Aliases count as often as they are used, or a few lines could stand for billions of values."""
        self._nodes += size
        if self._nodes > MOST_NODES:
            raise UnreadableError(
                Mistake(f"expected at most {MOST_NODES} values, aliases spelled out, got more", at=at)
            )
        if depth > DEEPEST:
            raise UnreadableError(Mistake(f"expected at most {DEEPEST} levels, got more", at=at))


def _collection(value: Any, at: Place, children: dict[str | int, Node], keys: dict[str, Place]) -> Node:
    inside = children.values()
    depth = 1 + max((child.depth for child in inside), default=0)
    return Node(value, at, children, keys, 1 + sum(child.size for child in inside), depth)


def _scalar(event: Any) -> Any:
    try:
        event.value.encode()
    except UnicodeEncodeError:
        problem = f"expected characters of Unicode, got {spell(event.value)}"
        raise UnreadableError(Mistake(problem, at=_place(event))) from None
    return resolve(event.value) if event.style is None else event.value


def _end(event: Any) -> Place:
    return Place(event.end_mark.line + 1, event.end_mark.column + 1)


def _place(event: Any) -> Place:
    return Place(event.start_mark.line + 1, event.start_mark.column + 1)
