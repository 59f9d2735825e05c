"""Messages on stderr: text for people, or one JSON object per line for log collectors; and colours.

The option --color sets NO_COLOR or FORCE_COLOR, which rich reads, too.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TextIO

import click

from kafeat.errors import PartsError, without_secrets

if TYPE_CHECKING:
    from rich.console import Console

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


def event(message: str, **more: object) -> None:
    """Write a JSON line with these keys."""
    _put_json("info", message, **more)


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
        from kafeat.runtime.environment import describe

        for more in describe():
            say(more)


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
    colours = wants_color(sys.stderr)
    name = click.style("kafeat:", fg="red", bold=True) if colours else "kafeat:"
    for line in message.splitlines() or [""]:
        _write(f"{name} {line}", colours)


def failed_parts(parts: PartsError) -> None:
    """Write which parts failed; as JSON, in a line for each of them and one for all."""
    if not _json:
        error(str(parts), parts.exit_code)
        return
    for one in parts.failed:
        _put_json("error", without_secrets(one.error), part=one.name, exit_code=one.exit_code)
    error(parts.summary, parts.exit_code)


def usage(mistake: click.ClickException) -> None:
    """Write a usage error with the usage of the command."""
    if _json:
        error(mistake.format_message(), mistake.exit_code)
        return
    text = io.StringIO()
    mistake.show(text)
    colours = wants_color(sys.stderr)
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
        _put_json(level, message, **more)
    else:
        _write(message)


def _put_json(level: str, message: str, **more: object) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    _write(json.dumps({"time": now, "level": level, "message": message, **more}, ensure_ascii=False))


def _write(line: str, colours: bool | None = None) -> None:
    # The exit code reports the result even if a line about it cannot be written.
    with suppress(OSError):
        click.echo(line, err=True, color=colours)


COLORS = ("auto", "always", "never")


def apply_color(arguments: Sequence[str]) -> None:
    """Set NO_COLOR or FORCE_COLOR by --color, wherever it stands, or by KAFEAT_COLOR. The last --color counts.

    This happens before click parses the arguments, because help and usage errors have colours, too.
    """
    choices = [value for option, value in pairwise(arguments) if option == "--color"]
    choices += [one.removeprefix("--color=") for one in arguments if one.startswith("--color=")]
    known = [choice for choice in (os.environ.get("KAFEAT_COLOR"), *choices) if choice in COLORS]
    match known[-1:]:
        case ["never"]:
            os.environ["NO_COLOR"] = "1"
        case ["always"]:
            os.environ.pop("NO_COLOR", None)
            os.environ["FORCE_COLOR"] = "1"


def wants_color(stream: TextIO) -> bool:
    """Return True if this stream gets colours (https://no-color.org, https://force-color.org).

    Rich decides in the same way. It is not asked, because its import would slow down help and errors.
    """
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (os.environ.get("TERM") != "dumb" and stream.isatty())


def console(*, stderr: bool = False, **more: Any) -> Console:
    """Return a rich console on stdout or stderr."""
    from rich.console import Console

    forced = "standard" if os.environ.get("FORCE_COLOR") else "auto"
    system: Any = forced if wants_color(sys.stderr if stderr else sys.stdout) else None
    # File names may contain brackets, which are not markup. Without colours, there is no bold text, either.
    return Console(
        stderr=stderr, color_system=system, markup=False, emoji=False, highlight=False, **more
    )  # fmt: skip
