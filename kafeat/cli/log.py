"""Everything on stderr: text for people, or a JSON object a line for whoever collects logs."""

from __future__ import annotations

import io
import json
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from kafeat.cli import color
from kafeat.errors import without_secrets

if TYPE_CHECKING:
    from kafeat.jobs.fit.messages import Listener

_json = False


def use_json(chosen: bool) -> None:
    """From now on, lines are JSON objects with `time` (UTC), `level` and `message`, or are text."""
    global _json
    _json = chosen


def as_json() -> bool:
    """Whether they are."""
    return _json


def say(message: str) -> None:
    """A line that tells what was done."""
    _put("info", without_secrets(message))


def warn(message: str) -> None:
    """A line that tells what may not be meant."""
    message = without_secrets(message)
    _put("warning", message if _json else f"note: {message}")


def listener(quiet: bool) -> Listener:
    """Whoever says what fits tell of their columns; nobody, if it is to be quiet."""
    from kafeat.jobs.fit.messages import SILENT, Listener

    return SILENT if quiet else Listener(inform=say, warn=warn)


def error(message: str, code: int) -> None:
    """The lines of an error that ends the command with that code."""
    message = without_secrets(message)
    if _json:
        _put("error", message, exit_code=code)
        return
    colours = color.wanted(sys.stderr)
    name = click.style("kafeat:", fg="red", bold=True) if colours else "kafeat:"
    for line in message.splitlines() or [""]:
        _write(f"{name} {line}", colours)


def usage(mistake: click.ClickException) -> None:
    """How the command is called, and what was wrong with how it was."""
    if _json:
        error(mistake.format_message(), mistake.exit_code)
        return
    text = io.StringIO()
    mistake.show(text)
    colours = color.wanted(sys.stderr)
    for line in without_secrets(text.getvalue().rstrip("\n")).split("\n"):
        head, rest = line[:6], line[6:]
        _write(
            click.style(head, fg="red", bold=True) + rest if colours and head == "Error:" else line, colours
        )


def fault(traceback: str) -> None:
    """A mistake of ours, which can only be reported."""
    if _json:
        error(traceback, 1)
    else:
        _write(without_secrets(traceback.rstrip("\n")))


def _put(level: str, message: str, **more: object) -> None:
    if _json:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        record = {"time": now, "level": level, "message": message, **more}
        _write(json.dumps(record, ensure_ascii=False))
    else:
        _write(message)


def _write(line: str, colours: bool | None = None) -> None:
    # What became of the work is told by the exit code, whether or not there is room for a line about it.
    with suppress(OSError):
        click.echo(line, err=True, color=colours)
