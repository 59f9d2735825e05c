"""YAML as a stream of events, and its syntax errors in our words.

The YAML library is imported only here, and only when a config is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafeat.config.document import Mistake, Place


class UnreadableError(Exception):
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
        raise UnreadableError(Mistake(f"expected text in UTF-8, got {got}", at=_end_of(before))) from None


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
        raise UnreadableError(_syntax(error, text)) from None
    except ReaderError as error:
        problem = f"expected text, got the character {chr(error.character)!r}, which YAML does not allow"
        raise UnreadableError(Mistake(problem, at=_end_of(text[: error.position]))) from None


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
