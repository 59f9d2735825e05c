"""Everything that a user can cause, each with the exit code that the command ends with.

A message reads `place: name: expected ..., got ...`, and names the remedy where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Protocol

MOST = 20
"""Failures that a message lists."""
LONGEST = 60
"""Characters of a name that a message shows."""


class KafeatError(Exception):
    """A fault that the person who runs kafeat can mend; never a traceback."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str = "") -> None:
        super().__init__(without_secrets(message))


class UsageError(KafeatError):
    """The command line or the call asks for something that makes no sense."""

    exit_code = 2


class ConfigError(UsageError):
    """A config with mistakes: all of them, one a line."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class DataError(KafeatError):
    """Content that cannot be read, missing columns, values out of bounds."""

    exit_code = 3


class InvalidValueError(DataError):
    """One entry of a matrix is outside of what a step or a map accepts, or one of a kept column.

    It is raised where only the position in the matrix is known (`row`, `column`, both from 0; no column where
    the entry is not one of the input's; the name of a kept column). Whoever knows the file and the names says
    `located` on the way up.
    """

    def __init__(self, row: int, column: int | str | None, problem: str) -> None:
        self.row, self.column, self.problem = row, column, problem
        where = "" if column is None else f", column {quoted(column) if isinstance(column, str) else column}"
        super().__init__(f"{spell_row(row)}{where}: {problem}")

    @property
    def missing(self) -> bool:
        """Whether it is a missing number, or list of numbers, which the step `impute` would fill in."""
        expected = ("expected a finite number", "expected a list")
        return self.problem.startswith(expected) and self.problem.endswith(("got null", "got nan"))

    def moved(self, rows: int) -> InvalidValueError:
        """The same entry, its row counted from `rows` rows earlier."""
        return InvalidValueError(self.row + rows, self.column, self.problem)

    def named(self, names: Sequence[str]) -> str | None:
        """The name of the column; `names` are those of the features."""
        return self.column if self.column is None or isinstance(self.column, str) else names[self.column]

    def located(self, place: str, names: Sequence[str]) -> DataError:
        """The error for people: file, row, name of the column, and what is wrong."""
        name = self.named(names)
        where = "" if name is None else f", column {quoted(name)}"
        return DataError(f"{place}: {spell_row(self.row)}{where}: {self.problem}")


class ArtifactError(KafeatError):
    """A model file that is damaged, foreign, hostile or of an unknown version."""

    exit_code = 4


class SystemRefusedError(KafeatError):
    """The machine said no: a missing file, permission, a full disk, a lost connection."""

    exit_code = 5


class GateError(KafeatError):
    """A quality gate was not met."""

    exit_code = 6


class _Failed(Protocol):
    """A part of a data set that could not be done."""

    @property
    def error(self) -> str: ...
    @property
    def exit_code(self) -> int: ...


class PartsError(KafeatError):
    """Some parts of a data set failed, and the others are done: a line for each, and the gravest code of them."""

    def __init__(self, place: str, done: int, failed: Sequence[_Failed]) -> None:
        self.exit_code = max(failure.exit_code for failure in failed)  # type: ignore[misc]
        lines = [failure.error for failure in failed[:MOST]]
        if len(failed) > MOST:
            lines.append(f"{place}: and {len(failed) - MOST:,} more, which _kafeat.json lists")
        super().__init__(
            "\n".join(
                [
                    *lines,
                    f"{place}: expected every part to be done, got {len(failed):,} that failed and {done:,} that are "
                    "done; mend the inputs and run again with --resume",
                ]
            )
        )


class KafeatWarning(UserWarning):
    """What may not be meant by whoever fits a map, though nothing is wrong with it."""

    def __init__(self, message: str = "") -> None:
        super().__init__(without_secrets(message))


def without_secrets(text: str) -> str:
    """The text with its URIs cut down to scheme, host and path: messages and manifests are read by many."""
    if "://" not in text:
        return text
    # A secret key with a slash, ? or # that was not escaped reaches into the path: all up to the last @ goes.
    text = re.sub(r"(\w://)(?![^\s/?#@]*:\d+/)[^\s/?#@]*:[^\n]*@", r"\1", text)
    text = re.sub(r"(\w://)[^\s/?#@]*@", r"\1", text)
    return re.sub(r"(\w://[^?'\"\n]*)\?(?=\w+=)[^\s'\"]*?(?=[:,;]?(?:[\s'\"]|$))", r"\1", text)


def spell_row(row: int) -> str:
    """A row as every message names it: counted from 1, and its index from 0; a header is not counted."""
    return f"row {row + 1} (index {row})"


def quoted(name: str) -> str:
    """A name in quotes, its control characters escaped and its end cut off."""
    return repr(name) if len(name) <= LONGEST else f"{name[:LONGEST]!r}..."


def counted(number: int, what: str) -> str:
    """A number of things: `1 file`, `2 files`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def first_line(error: BaseException) -> str:
    """What an exception says, in a line; its name where it says nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0]
