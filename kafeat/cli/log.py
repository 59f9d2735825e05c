"""Everything on stderr: text for people, or a JSON object a line for whoever collects logs."""

from __future__ import annotations

import json
import sys
import time

import click

from kafeat.cli import color
from kafeat.errors import without_secrets

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
    """A line that tells what somebody may not have meant."""
    _put("warning", without_secrets(message))


def error(message: str, code: int) -> None:
    """The lines of an error that ends the command with that code."""
    message = without_secrets(message)
    if _json:
        _put("error", message, exit_code=code)
        return
    colours = color.wanted(sys.stderr)
    name = click.style("kafeat:", fg="red", bold=True) if colours else "kafeat:"
    for line in message.splitlines() or [""]:
        click.echo(f"{name} {line}", err=True, color=colours)


def _put(level: str, message: str, **more: object) -> None:
    if _json:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        record = {"time": now, "level": level, "message": message, **more}
        click.echo(json.dumps(record, ensure_ascii=False), err=True)
    else:
        click.echo(message, err=True)
