"""Write messages to stderr as text, or as one JSON object per line for log collectors; and decide on colours.

The option --color sets NO_COLOR or FORCE_COLOR, which rich also reads.
"""

from __future__ import annotations

import io
import json
import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TextIO

import click

from kafeat._version import __version__
from kafeat.errors import PartsError, counted, visible, visible_json, without_secrets

if TYPE_CHECKING:
    from rich.console import Console

    from kafeat.jobs.fit.messages import Listener


@dataclass(frozen=True)
class Work:
    """The running command: its tables and outputs as the user names them, the value of --jobs, and when it started."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    jobs: int | None = None
    began: float = field(default_factory=time.monotonic)

    @property
    def files(self) -> dict[str, str]:
        """The first table that the command reads, as `input`, and the first file that it writes, as `output`."""
        both = (("input", self.reads), ("output", self.writes))
        return {name: without_secrets(files[0]) for name, files in both if files}


@dataclass
class Settings:
    """The options of the running command that decide what is written to stderr. Fields have the options' names."""

    log_format: str = "text"
    """"json": lines are JSON objects with `time` (UTC), `level`, `event` and `message`."""
    quiet: bool = False
    verbose: bool = False
    work: Work = field(default_factory=Work)
    summary: str = "done"
    """The message of the last line in JSON, which also has the entries of `figures`, such as the number of rows."""
    figures: Mapping[str, object] = field(default_factory=dict)


settings = Settings()


def as_json() -> bool:
    """Return True if lines are JSON objects."""
    return settings.log_format == "json"


def live() -> bool:
    """Return True if stderr is a terminal on which progress may be shown in place."""
    return not (settings.quiet or as_json()) and sys.stderr.isatty()


def say(message: str, event: str = "info", **more: object) -> None:
    """Write an informational line. In JSON, it has the given keys as well."""
    _put(event, without_secrets(message), **more)


def start(more: Mapping[str, object]) -> None:
    """Write the command line, versions, threads, process and host. `more` has the number of rows or parts, if known."""
    from kafeat.runtime.environment import count_jobs, process

    own, threads = process(), count_jobs(settings.work.jobs)
    say(
        f"start: {own['command_line']}; kafeat {__version__}, {counted(threads, 'thread')}, process {own['pid']} on "
        f"{own['host']}", "start", kafeat=__version__, **settings.work.files, **more, threads=threads, **own,
    )  # fmt: skip


def show(text: str) -> None:
    """Write a result for people to stdout."""
    click.echo(visible(text))


def warn(message: str) -> None:
    """Write a line about something that may be unintended."""
    message = without_secrets(message)
    _put("warning", message if as_json() else f"note: {message}")


def summarize(line: str, **figures: object) -> None:
    """Write the summary of a command if stderr is a terminal or -v is set. With -v, add versions and the machine.

    In JSON, `end` writes the summary and the figures as the last line.
    """
    settings.summary, settings.figures = line, figures
    if not as_json() and (settings.verbose or sys.stderr.isatty()):
        say(line)
    if settings.verbose:
        from kafeat.runtime.environment import describe

        for more in describe():
            say(more)


def listener() -> Listener:
    """Return a listener that writes the messages of a fit to this log."""
    from kafeat.jobs.fit.messages import Listener

    return Listener(inform=say, warn=warn)


def end(code: int) -> None:
    """In JSON, write that the command has ended with this exit code. As text, write nothing."""
    if as_json() and not code:
        output = {name: file for name, file in settings.work.files.items() if name == "output"}
        _put("done", without_secrets(settings.summary), **output, **settings.figures, exit_code=0, **_taken())
    elif as_json():
        error(settings.summary, code, retry=True)


def _taken() -> dict[str, float]:
    return {"seconds": round(time.monotonic() - settings.work.began, 3)}


def error(message: str, code: int, retry: bool = False) -> int:
    """Write the lines of an error that ends the command with this exit code, and return the code.

    With `retry`, the same command may succeed later.
    """
    message = without_secrets(message)
    if as_json():
        _put(_event_of(code), message, exit_code=code, retry=retry, **_taken())
        return code
    colours = wants_color(sys.stderr)
    name = click.style("kafeat:", fg="red", bold=True) if colours else "kafeat:"
    for line in visible(message).splitlines() or [""]:
        _write(f"{name} {line}", colours)
    return code


def failed_parts(parts: PartsError) -> int:
    """Write which parts failed, and return the exit code. In JSON, each part has a line, followed by a summary."""
    if as_json():
        say(settings.summary)
    for one in parts.failed if as_json() else ():
        event = _event_of(one.exit_code)
        _put(event, without_secrets(one.error), part=one.name, exit_code=one.exit_code, retry=one.retry)
    return error(parts.summary if as_json() else str(parts), parts.exit_code, parts.retry)


def _event_of(code: int) -> str:
    """Return the event for an exit code: `refused` if kafeat rejected something, `failed` for faults and signals."""
    return "refused" if 2 <= code <= 6 else "failed"


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


_LEVELS = {"warning": "warning", "refused": "error", "failed": "error"}


class _OfLibraries(logging.Handler):
    """A handler that writes warnings and errors of libraries as lines of this log."""

    def emit(self, record: logging.LogRecord) -> None:
        warn(f"{record.name}: {record.getMessage()}")


def hear_libraries() -> None:
    """Write the log records and warnings of libraries as lines of this log."""
    logging.basicConfig(handlers=[_OfLibraries(logging.WARNING)])
    logging.captureWarnings(True)


def _put(event: str, message: str, **more: object) -> None:
    level = _LEVELS.get(event, "info")
    if settings.quiet and level != "error":
        return
    if as_json():
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = {"time": now, "level": level, "event": event, "message": message, **more}
        _write(visible_json(json.dumps(line, ensure_ascii=False)))
    else:
        _write(visible(message))


def _write(line: str, colours: bool | None = None) -> None:
    # The exit code reports the result even if a line about it cannot be written.
    with suppress(OSError):
        click.echo(line, err=True, color=colours)


COLORS = ("auto", "always", "never")


def apply_color(arguments: Sequence[str]) -> None:
    """Set NO_COLOR or FORCE_COLOR from --color, which may stand anywhere, or from KAFEAT_COLOR. The last --color wins.

    This happens before click parses the arguments, because help and usage errors also have colours.
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

    Rich decides in the same way, but importing it would slow down help and errors.
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

    # File names may contain brackets, which are not markup. Without colours, there is also no bold text.
    return Plain(
        stderr=stderr, color_system=system, markup=False, emoji=False, highlight=False, **more
    )  # fmt: skip
