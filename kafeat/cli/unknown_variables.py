"""Warn of environment variables that look like those of options, but are none: they are probably misspelt."""

from __future__ import annotations

import os
from collections.abc import Iterator

import click

from kafeat.cli import log

_PREFIX = "KAFEAT_"
_WITHOUT_OPTION = ("KAFEAT_COLOR", "KAFEAT_COMPILED")


def warn_of_unknown_variables(group: click.Command) -> None:
    """Write a line about every variable that begins with KAFEAT_ and that no command of the group reads."""
    found = [name for name, value in os.environ.items() if name.startswith(_PREFIX) and value]
    known = {*_WITHOUT_OPTION, *_variables(group)} if found else set()
    for name in sorted({*found} - known):
        log.warn(f"{name}: no option is set by this variable, so it is ignored{_meant(name, known)}")


def _variables(group: click.Command) -> Iterator[str]:
    """Yield the variables of every command. Importing all of them takes 20 ms."""
    if not isinstance(group, click.Group):
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        for option in command.params if command else ():
            names = option.envvar or ()
            yield from [names] if isinstance(names, str) else names


def _meant(name: str, known: set[str]) -> str:
    from kafeat.contract.describe import near

    # Without the prefix, which makes all names alike.
    names = sorted(one.removeprefix(_PREFIX) for one in known)
    meant = near(name.removeprefix(_PREFIX), names, cutoff=0.75)
    return f"; did you mean {_PREFIX}{meant}?" if meant else ""
