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
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TextIO

import click

from kafeat.errors import PartsError, visible, visible_json, without_secrets

if TYPE_CHECKING:
    from rich.console import Console

    from kafeat.jobs.fit.messages import Listener


@dataclass
class Settings:
    """The options of the running command that say what is written to stderr; they bear the names of the options."""

    log_format: str = "text"
    """"json": lines are JSON objects with `time` (UTC), `level` and `message`."""
    quiet: bool = False
    verbose: bool = False


settings = Settings()


def as_json() -> bool:
    """Return True if lines are JSON objects."""
    return settings.log_format == "json"


def live() -> bool:
    """Return True if a line on stderr may change while a command runs."""
    return not (settings.quiet or as_json()) and sys.stderr.isatty()


def say(message: str, **more: object) -> None:
    """Write an informational line, which has these keys in JSON."""
    _put("info", without_secrets(message), **more)


def show(text: str) -> None:
    """Write a result for people to stdout."""
    click.echo(visible(text))


def warn(message: str) -> None:
    """Write a line about something that may be unintended."""
    message = without_secrets(message)
    _put("warning", message if as_json() else f"note: {message}")


def summarize(line: str) -> None:
    """Write the summary of a command on a terminal or with -v, but not in cron jobs; -v adds versions and machine."""
    if settings.verbose or as_json() or sys.stderr.isatty():
        say(line)
    if settings.verbose:
        from kafeat.runtime.environment import describe

        for more in describe():
            say(more)


def listener() -> Listener:
    """Return a listener that writes the messages of a fit."""
    from kafeat.jobs.fit.messages import Listener

    return Listener(inform=say, warn=warn)


def error(message: str, code: int) -> int:
    """Write the lines of an error that ends the command with this exit code, and return it."""
    message = without_secrets(message)
    if as_json():
        _put("error", message, exit_code=code)
        return code
    colours = wants_color(sys.stderr)
    name = click.style("kafeat:", fg="red", bold=True) if colours else "kafeat:"
    for line in visible(message).splitlines() or [""]:
        _write(f"{name} {line}", colours)
    return code


def failed_parts(parts: PartsError) -> int:
    """Write which parts failed, as JSON in a line for each of them and one for all, and return the exit code."""
    for one in parts.failed if as_json() else ():
        _put("error", without_secrets(one.error), part=one.name, exit_code=one.exit_code)
    return error(parts.summary if as_json() else str(parts), parts.exit_code)


def usage(mistake: click.ClickException) -> None:
    """Write a usage error with the usage of the command."""
    if as_json():
        error(mistake.format_message(), mistake.exit_code)
        return
    text = io.StringIO()
    mistake.show(text)
    colours = wants_color(sys.stderr)
    for line in visible(without_secrets(text.getvalue().rstrip("\n"))).split("\n"):
        head, rest = line[:6], line[6:]
        _write(
            click.style(head, fg="red", bold=True) + rest if colours and head == "Error:" else line, colours
        )


def fault(traceback: str) -> None:
    """Write the traceback of an internal fault."""
    if as_json():
        error(traceback, 1)
    else:
        _write(visible(without_secrets(traceback.rstrip("\n"))))


def _put(level: str, message: str, **more: object) -> None:
    if settings.quiet and level != "error":
        return
    if as_json():
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        event = {"time": now, "level": level, "message": message, **more}
        _write(visible_json(json.dumps(event, ensure_ascii=False)))
    else:
        _write(visible(message))


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
    from rich.text import Text

    forced = "standard" if os.environ.get("FORCE_COLOR") else "auto"
    system: Any = forced if wants_color(sys.stderr if stderr else sys.stdout) else None

    class Plain(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(visible(text), **options)

    # File names may contain brackets, which are not markup. Without colours, there is no bold text, either.
    return Plain(
        stderr=stderr, color_system=system, markup=False, emoji=False, highlight=False, **more
    )  # fmt: skip
