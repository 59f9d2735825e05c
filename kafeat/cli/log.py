"""Messages on stderr: text for people, or one JSON object per line for log collectors."""

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
    """Write lines as JSON objects with `time` (UTC), `level` and `message`, or as text."""
    global _json
    _json = chosen


def as_json() -> bool:
    """Return True if lines are JSON objects."""
    return _json


def say(message: str) -> None:
    """Write an informational line."""
    _put("info", without_secrets(message))


def warn(message: str) -> None:
    """Write a line about something that may be unintended."""
    message = without_secrets(message)
    _put("warning", message if _json else f"note: {message}")


def summarize(line: str, quiet: bool, verbose: bool) -> None:
    """Write the summary of a command on a terminal or with -v, but not in cron jobs; -v adds versions and machine."""
    if quiet or not (verbose or _json or sys.stderr.isatty()):
        return
    say(line)
    if verbose:
        from kafeat.runtime.environment import machine, versions

        say("versions: " + ", ".join(f"{name} {number}" for name, number in versions().items()))
        found = machine()
        say(f"machine: {found['processor']}, Python {found['python']}, BLAS {found['blas']}")


def listener(quiet: bool) -> Listener:
    """Return a listener that writes the messages of a fit, or a silent one."""
    from kafeat.jobs.fit.messages import SILENT, Listener

    return SILENT if quiet else Listener(inform=say, warn=warn)


def error(message: str, code: int) -> None:
    """Write the lines of an error that ends the command with this exit code."""
    message = without_secrets(message)
    if _json:
        _put("error", message, exit_code=code)
        return
    colours = color.wanted(sys.stderr)
    name = click.style("kafeat:", fg="red", bold=True) if colours else "kafeat:"
    for line in message.splitlines() or [""]:
        _write(f"{name} {line}", colours)


def usage(mistake: click.ClickException) -> None:
    """Write a usage error with the usage of the command."""
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
    """Write the traceback of an internal fault."""
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
    # The exit code reports the result even if a line about it cannot be written.
    with suppress(OSError):
        click.echo(line, err=True, color=colours)
