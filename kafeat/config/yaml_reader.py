"""Read YAML into plain values, and keep the line and column of each value for error messages.

The reader builds values from the events of ruamel's parser. It limits the number of values and levels, counts each use
of an alias, constructs only builtins, keeps the place of every alias, and reports repeated keys together with all other
mistakes. ruamel's round-trip loader does none of this: 120 bytes of nested keys keep it busy for minutes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from kafeat.contract.describe import spell

Path: TypeAlias = tuple[str | int, ...]
"""The keys and indices that lead from the top level of a config to a value."""

MOST_NODES = 50_000
DEEPEST = 50


class Place(NamedTuple):
    """A line and a column of a text, both counted from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Node:
    """A value with its place, the place of its key if it has one, and the nodes inside it if it is a mapping or list.

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
        """Return a line of an error message about this mistake in the config `name`."""
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


def read(content: bytes) -> tuple[Node | None, list[Mistake]]:
    """Return the document in `content` and its mistakes. The document is None if it is empty or unreadable."""
    mistakes: list[Mistake] = []
    try:
        return _YamlReader(events(decode(content)), mistakes).document(), mistakes
    except UnreadableConfigError as stop:
        return None, [*mistakes, stop.mistake]


class _YamlReader:
    """Build nodes from parse events by recursive descent of bounded depth."""

    def __init__(self, events: Iterator[Any], mistakes: list[Mistake]) -> None:
        self._events = events
        self._mistakes = mistakes
        self._anchors: dict[str, Node] = {}
        self._nodes = 0
        self._level = 0

    def document(self) -> Node | None:
        """Return the root node of the only document, or None if the text is empty."""
        root = None
        for event in self._events:
            if type(event).__name__ == "DocumentStartEvent":
                if root is not None:
                    raise UnreadableConfigError("expected one document, got another", _place(event))
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
            children = self._mapping(path)
            node = _collection({name: child.value for name, child in children.items()}, at, children)
        elif kind == "SequenceStartEvent":
            children = {}
            while type(inner := next(self._events)).__name__ != "SequenceEndEvent":
                children[len(children)] = self._node(inner, (*path, len(children)))
            node = _collection([child.value for child in children.values()], at, children)
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
            raise UnreadableConfigError(problem, at, path)
        self._bound(at, self._level + target.depth, target.size)
        return replace(target, at=at)

    def _mapping(self, path: Path) -> dict[str | int, Node]:
        children: dict[str | int, Node] = {}
        while type(event := next(self._events)).__name__ != "MappingEndEvent":
            key = self._node(event, path)
            name, value = key.value, next(self._events)
            if not isinstance(name, str):
                self._mistakes.append(
                    Mistake(f"expected a key that is text, got {spell(name)}", path, key.at)
                )
                self._node(value, path)
                continue
            node = replace(self._node(value, (*path, name)), key_at=key.at)
            if getattr(value, "value", None) == "" and value.style is None:
                # use the end of the key: the parser places a missing value at the next token, maybe in another line
                node = replace(node, at=Place(event.end_mark.line + 1, event.end_mark.column + 1))
            if name not in children:
                children[name] = node
            elif (first := children[name].key_at) is not None:
                problem = f"expected each key once, got it again (first in line {first.line})"
                self._mistakes.append(Mistake(problem, (*path, name), key.at))
        return children

    def _bound(self, at: Place, depth: int, size: int) -> None:
        """Raise an error for too many values or levels. Every use of an alias counts: a few could mean billions."""
        self._nodes += size
        if self._nodes > MOST_NODES:
            problem = f"expected at most {MOST_NODES} values, aliases spelled out, got more"
            raise UnreadableConfigError(problem, at)
        if depth > DEEPEST:
            raise UnreadableConfigError(f"expected at most {DEEPEST} levels, got more", at)


def _collection(value: Any, at: Place, children: dict[str | int, Node]) -> Node:
    inside = children.values()
    depth = 1 + max((child.depth for child in inside), default=0)
    return Node(value, at, None, children, 1 + sum(child.size for child in inside), depth)


def _scalar(event: Any) -> Any:
    try:
        event.value.encode()
    except UnicodeEncodeError:
        problem = f"expected characters of Unicode, got {spell(event.value)}"
        raise UnreadableConfigError(problem, _place(event)) from None
    return resolve(event.value) if event.style is None else event.value


def _place(event: Any) -> Place:
    return Place(event.start_mark.line + 1, event.start_mark.column + 1)


class UnreadableConfigError(Exception):
    """An error after which the rest of the text cannot be read."""

    def __init__(self, problem: str, at: Place, path: Path = ()) -> None:
        self.mistake = Mistake(problem, path, at)
        super().__init__(problem)


def decode(content: bytes) -> str:
    """Decode UTF-8, with or without a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", "replace")
        got = f"the byte 0x{content[error.start]:02x}"
        model = content.startswith(b"\x80")  # the first byte of every pickle
        remedy = "this may be a model: pass it to --model" if model else "save the config as UTF-8"
        problem = f"expected text in UTF-8, got {got}: {remedy}"
        raise UnreadableConfigError(problem, _end_of(before)) from None


def _end_of(text: str) -> Place:
    return Place(text.count("\n") + 1, len(text) - text.rfind("\n"))


def events(text: str) -> Iterator[Any]:
    """Yield the events of ruamel's parser. Raise an error for text that is not YAML."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError
    from ruamel.yaml.reader import ReaderError

    try:
        yield from YAML(typ="safe", pure=True).parse(text)
    except MarkedYAMLError as error:
        raise _syntax(error, text) from None
    except ReaderError as error:
        problem = f"expected text, got the character {chr(error.character)!r}, which YAML does not allow"
        raise UnreadableConfigError(problem, _end_of(text[: error.position])) from None


def _syntax(error: Any, text: str) -> UnreadableConfigError:
    """Return an error with the parser's message on one line or, for a tab, with a clearer message."""
    mark = error.problem_mark or error.context_mark
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    at = Place(mark.line + 1, mark.column + 1)
    if "\t" in line[: len(line) - len(line.lstrip())] or line[mark.column : at.column] == "\t":
        return UnreadableConfigError("expected spaces, got a tab", Place(at.line, line.index("\t") + 1))
    words = ": ".join(part for part in (error.context, error.problem) if part)
    hint = "; check the indentation, and the quotes and brackets, of this line and those before it"
    return UnreadableConfigError(f"expected YAML, got a mistake: {' '.join(words.split())}{hint}", at)


_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{word: float("nan") for word in (".nan", ".NaN", ".NAN")},
    **{sign + word: float(f"{sign}inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
}
_WHOLE = re.compile(r"(?P<decimal>[-+]?[0-9]+)|0o(?P<octal>[0-7]+)|0x(?P<hexadecimal>[0-9a-fA-F]+)", re.ASCII)
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)


def resolve(text: str) -> str | bool | int | float | None:
    """Return the value of a plain (unquoted) scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if whole := _WHOLE.fullmatch(text):
        return _whole(whole)
    return float(text) if _NUMBER.fullmatch(text) else text


def _whole(match: re.Match[str]) -> int | float:
    """Return a whole number, or a float if it needs more than 64 bits: parsing many digits as an int is slow."""
    if digits := match["decimal"]:
        if abs(float(digits)) >= 1e20:
            return float(digits)
        value = int(digits)
    else:
        value = int(match["octal"], 8) if match["octal"] else int(match["hexadecimal"], 16)
    if abs(value) < 2**63:
        return value
    return float(value) if value.bit_length() < 1024 else float("inf")
