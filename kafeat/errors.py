"""Errors that a user can cause, each with the exit code of the command.

A message has the form `place: name: expected ..., got ...`, and names the remedy if there is one.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from shlex import quote
from typing import Any, ClassVar

MOST = 20
"""Largest number of failures that a message lists."""
LONGEST = 60
"""Largest number of characters of a name that a message shows."""


class KafeatError(Exception):
    """A problem that the user can solve. Commands show it without a traceback."""

    exit_code: ClassVar[int] = 1
    retry: bool = False
    """True if the same command may succeed later, after trouble with a network, a disk or a lock."""
    result: Any = None
    """The result of a run that was rejected for bad rows or drift. Its statistics are still written."""

    def __init__(self, message: str = "") -> None:
        super().__init__(visible(without_secrets(message)))

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers send errors as pickles. Unpickling skips `__init__`, whose arguments differ between classes.
        return _with_message, (type(self), self.args), vars(self)


def _with_message(kind: type[KafeatError], args: tuple[object, ...]) -> KafeatError:
    return kind.__new__(kind, *args)


class UsageError(KafeatError):
    """The command line or the call is invalid."""

    exit_code = 2


class ConfigError(UsageError):
    """A config is invalid. The message lists all mistakes, one per line."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class DataError(KafeatError):
    """Data cannot be read, lacks columns, or has values out of bounds."""

    exit_code = 3


class InvalidValueError(DataError):
    """One entry of a matrix or of a passthrough column is not accepted.

    It is raised where only the position in the matrix is known: `row` and `column`, both counted from 0. `column` is
    None if the entry does not come from one column of the input, and a name for a passthrough column. A caller that
    knows the file and the column names adds them with `located`.
    """

    def __init__(self, row: int, column: int | str | None, problem: str) -> None:
        self.row, self.column, self.problem = row, column, problem
        where = "" if column is None else f", column {quoted(column) if isinstance(column, str) else column}"
        super().__init__(f"{spell_row(row)}{where}: {problem}")

    @property
    def missing(self) -> bool:
        """True if the entry is a missing number, time or list of numbers, which a step of kind `impute` would fill."""
        expected = ("expected a finite number", "expected a list", "expected a time")
        return self.problem.startswith(expected) and self.problem.endswith(
            ("got null", "got nan", "read as null")
        )

    @property
    def of_text(self) -> bool:
        """True for text that is neither a number nor a time."""
        return not self.missing and self.problem.startswith(("expected a number, got", "expected a time"))

    def at(self, row: int) -> InvalidValueError:
        """Return the same error about another row."""
        return InvalidValueError(row, self.column, self.problem)

    def named(self, names: Sequence[str]) -> str | None:
        """Return the name of the column, or None if the error has no column. `names` are the names of the features."""
        return self.column if self.column is None or isinstance(self.column, str) else names[self.column]

    def located(self, place: str, names: Sequence[str]) -> DataError:
        """Return an error with the file, the row, the name of the column, and the problem."""
        return DataError(f"{place}: {InvalidValueError(self.row, self.named(names), self.problem)}")


class ArtifactError(KafeatError):
    """A file is not a model file, or the model file is damaged, hostile or of an unknown version."""

    exit_code = 4


class SystemRefusedError(KafeatError):
    """The system failed to do something: a missing file, no permission, a full disk, a lost connection."""

    exit_code = 5

    def __init__(self, message: str = "", *, retry: bool = False) -> None:
        super().__init__(message)
        self.retry = retry


class GateError(KafeatError):
    """A quality gate was not met: too many rejected rows, drift, or an output that `verify` finds wrong."""

    exit_code = 6


class PartsError(KafeatError):
    """Some parts of a data set failed. The message has a line for each, and the exit code is the largest.

    Each entry of `failed` has a name, an error, an exit code, and `retry`. `stopped` is why later parts were not tried.
    """

    def __init__(self, place: str, done: int, failed: Sequence[Any], stopped: str | None = None) -> None:
        self.exit_code = max(failure.exit_code for failure in failed)  # type: ignore[misc]  # a class variable
        self.failed, self.retry = tuple(failed), any(failure.retry for failure in failed)
        of_data = all(failure.exit_code in (DataError.exit_code, GateError.exit_code) for failure in failed)
        self.summary = without_secrets(
            f"{place}: expected every part to be done, got {len(failed):,} that failed and {done:,} that are done; "
            f"{'' if stopped is None else f'the others were not tried, because {stopped}; '}"
            f"fix {'the inputs' if of_data else 'what each message names'} and run again with --resume"
        )
        lines = [failure.error for failure in failed[:MOST]]
        if len(failed) > MOST:
            lines.append(f"{place}: and {len(failed) - MOST:,} more, which _kafeat.json lists")
        super().__init__("\n".join([*lines, self.summary]))


class KafeatWarning(UserWarning):
    """The input is valid for fitting, but probably not what the user meant."""

    def __init__(self, message: str = "") -> None:
        super().__init__(visible(without_secrets(message)))


def ending(error: BaseException) -> tuple[str, int]:
    """Return how a run with this error ended ("interrupted", "refused" or "failed"), and its exit code."""
    if isinstance(error, BrokenPipeError):  # the reader has closed the pipe
        return "interrupted", 0
    others = 5 if isinstance(error, OSError) or no_room(error) else 1 if isinstance(error, Exception) else 130
    code: int = getattr(error, "exit_code", others)
    return "interrupted" if code > 128 else "refused" if code > 1 else "failed", code


_PASSING = {
    errno.EAGAIN, errno.EBUSY, errno.ECONNABORTED, errno.ECONNREFUSED, errno.ECONNRESET, errno.EDQUOT, errno.EHOSTDOWN,
    errno.EHOSTUNREACH, errno.EINTR, errno.EIO, errno.EMFILE, errno.ENETDOWN, errno.ENETUNREACH, errno.ENFILE,
    errno.ENOENT, errno.ENOLCK, errno.ENOMEM, errno.ENOSPC, errno.ESTALE, errno.ETIMEDOUT,
}  # fmt: skip


def no_room(error: BaseException) -> bool:
    """Return true if the system had no memory left for data or for another thread."""
    return isinstance(error, MemoryError) or str(error) == "can't start new thread"


def may_pass(error: OSError) -> bool:
    """Return true for a system error that may not recur later: a lost connection, a full disk, a file yet to come."""
    return error.errno in _PASSING


def without_secrets(text: str) -> str:
    """Return the text with its URIs reduced to scheme, host and path, because many people read messages."""
    if "://" not in text:
        return text
    # A secret key may contain an unescaped /, ? or #, so everything up to the last @ is removed.
    text = re.sub(r"(\w://)(?![^\s/?#@]*:\d+/)[^\s/?#@]*:[^\n]*@", r"\1", text)
    text = re.sub(r"(\w://)[^\s/?#@]*@", r"\1", text)
    return re.sub(r"(\w://[^?'\"\n]*)\?(?=\w+=)[^\s'\"]*?(?=[:,;]?(?:[\s'\"]|$))", r"\1", text)


_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters except tabs and line feeds, and Unicode characters that end a line or change the direction."""


def visible(text: str) -> str:
    """Return text with escapes for characters that would control a terminal, such as ESC and U+202E.

    Names and values come from files that others have made.
    """
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def visible_json(text: str) -> str:
    """Return JSON text with escapes for the characters that `visible` escapes. The values do not change."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def spell_row(row: int) -> str:
    """Return a row as messages name it: `row 1 (index 0)` is the first row after the header."""
    return f"row {row + 1} (index {row})"


def quoted(name: str) -> str:
    """Return a name in quotes, cut to a limited length, with control characters escaped."""
    return repr(name) if len(name) <= LONGEST else f"{name[:LONGEST]!r}..."


def shell_word(text: str) -> str:
    """Return a text quoted as one word of a shell command, on one line."""
    return quote(text) if text.isprintable() else "$" + repr('"' + text).replace('"', "", 1)


def first_of(texts: Sequence[str], most: int = 3) -> str:
    """Return the first `most` texts on one line, with the number of the others, such as `a, b, c and 5 more`."""
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def counted(number: int, what: str) -> str:
    """Return a number with its noun, such as `1 file` or `2 files`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def first_line(error: BaseException) -> str:
    """Return the first line of an error message, or the name of the error if the message is empty."""
    return (str(error).splitlines() or [type(error).__name__])[0]
