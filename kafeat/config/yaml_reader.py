"""YAML to plain values with their places.

The reader walks the parser's events and resolves scalars and aliases itself: so what a hostile text can cost
is bounded, nothing is ever constructed but builtins, and two equal keys are a mistake among the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from kafeat.contract.describe import spell

MOST_NODES = 50_000
DEEPEST = 50


def read(content: bytes) -> tuple[Node | None, list[Mistake]]:
    """The document in `content` as far as it can be read, and the mistakes made in writing it."""
    mistakes: list[Mistake] = []
    try:
        return _YamlReader(events(decode(content)), mistakes).document(), mistakes
    except UnreadableConfigError as stop:
        return None, [*mistakes, stop.mistake]


class _YamlReader:
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
                    raise UnreadableConfigError(
                        Mistake("expected one document, got another", at=_place(event))
                    )
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
            raise UnreadableConfigError(Mistake(problem, path, at))
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
            raise UnreadableConfigError(
                Mistake(f"expected at most {MOST_NODES} values, aliases spelled out, got more", at=at)
            )
        if depth > DEEPEST:
            raise UnreadableConfigError(Mistake(f"expected at most {DEEPEST} levels, got more", at=at))


def _collection(value: Any, at: Place, children: dict[str | int, Node], keys: dict[str, Place]) -> Node:
    inside = children.values()
    depth = 1 + max((child.depth for child in inside), default=0)
    return Node(value, at, children, keys, 1 + sum(child.size for child in inside), depth)


def _scalar(event: Any) -> Any:
    try:
        event.value.encode()
    except UnicodeEncodeError:
        problem = f"expected characters of Unicode, got {spell(event.value)}"
        raise UnreadableConfigError(Mistake(problem, at=_place(event))) from None
    return resolve(event.value) if event.style is None else event.value


def _end(event: Any) -> Place:
    return Place(event.end_mark.line + 1, event.end_mark.column + 1)


def _place(event: Any) -> Place:
    return Place(event.start_mark.line + 1, event.start_mark.column + 1)


class UnreadableConfigError(Exception):
    """The text cannot be read any further."""

    def __init__(self, mistake: Mistake) -> None:
        self.mistake = mistake
        super().__init__(mistake.problem)


def decode(content: bytes) -> str:
    """The text, which must be UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", "replace")
        got = f"the byte 0x{content[error.start]:02x}"
        raise UnreadableConfigError(
            Mistake(f"expected text in UTF-8, got {got}", at=_end_of(before))
        ) from None


def _end_of(text: str) -> Place:
    return Place(text.count("\n") + 1, len(text) - text.rfind("\n"))


def events(text: str) -> Iterator[Any]:
    """The events of the parser, as they are asked for."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError
    from ruamel.yaml.reader import ReaderError

    try:
        yield from YAML(typ="safe", pure=True).parse(text)
    except MarkedYAMLError as error:
        raise UnreadableConfigError(_syntax(error, text)) from None
    except ReaderError as error:
        problem = f"expected text, got the character {chr(error.character)!r}, which YAML does not allow"
        raise UnreadableConfigError(Mistake(problem, at=_end_of(text[: error.position]))) from None


def _syntax(error: Any, text: str) -> Mistake:
    """The library's complaint on one line; about a tab it is too vague for us."""
    mark = error.problem_mark or error.context_mark
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    at = Place(mark.line + 1, mark.column + 1)
    if "\t" in line[: len(line) - len(line.lstrip())] or line[mark.column : at.column] == "\t":
        return Mistake("expected spaces, got a tab", at=Place(at.line, line.index("\t") + 1))
    words = ": ".join(part for part in (error.context, error.problem) if part)
    return Mistake(f"expected YAML, got a mistake: {' '.join(words.split())}", at=at)


_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{word: float("nan") for word in (".nan", ".NaN", ".NAN")},
    **{sign + word: float(f"{sign}inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
}
_WHOLE = re.compile(r"(?P<decimal>[-+]?[0-9]+)|0o(?P<octal>[0-7]+)|0x(?P<hexadecimal>[0-9a-fA-F]+)", re.ASCII)
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_DIGITS_OF_INT64 = 19


def resolve(text: str) -> str | bool | int | float | None:
    """The value of a plain (unquoted) scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if whole := _WHOLE.fullmatch(text):
        return _whole(whole)
    return float(text) if _NUMBER.fullmatch(text) else text


def _whole(match: re.Match[str]) -> int | float:
    """A whole number; beyond 64 bits a float, as no count is that large, and its digits would cost time."""
    if digits := match["decimal"]:
        return int(digits) if len(digits.lstrip("+-0")) < _DIGITS_OF_INT64 else _large(digits)
    value = int(match["octal"], 8) if match["octal"] else int(match["hexadecimal"], 16)
    if value < 2**63:
        return value
    return float(value) if value.bit_length() < 1024 else float("inf")


def _large(digits: str) -> int | float:
    number = float(digits)
    exact = int(digits) if abs(number) < 1e20 else 2**64
    return exact if abs(exact) < 2**63 else number


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
