"""Additions to every command: --color, environment variables, groups of options and bold headings in the help."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import click
from click.core import ParameterSource

from kafeat.cli import log
from kafeat.cli.overlaps import refuse_overlaps_of

# --json is a flag in one command and a file name in another, so one variable cannot stand for both.
_OF_ONE_COMMAND = frozenset({"--json"})

# `predict` does what `transform` does, so the variables of `transform` count for it, too.
_SAME_AS = {"predict": ("transform",)}
_PREFIX = "KAFEAT_"
_WITHOUT_OPTION = ("KAFEAT_COLOR", "KAFEAT_COMPILED")


class Formatter(click.HelpFormatter):
    """Write headings in bold if the output has colours."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        if prefix is None and log.wants_color(sys.stdout):
            prefix = click.style("Usage:", bold=True) + " "
        super().write_usage(prog, args, prefix)

    def write_heading(self, heading: str) -> None:
        if log.wants_color(sys.stdout):
            self.write(f"{'':>{self.current_indent}}{click.style(heading + ':', bold=True)}\n")
        else:
            super().write_heading(heading)


class Context(click.Context):
    """A context with the colour setting of the command line."""

    formatter_class = Formatter

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.color = log.wants_color(sys.stdout)


def color_option(*variables: str) -> click.Option:
    """Return --color, which may stand before or after the command. `log.apply_color` reads it earlier."""
    return click.Option(
        ["--color"], type=click.Choice(log.COLORS), expose_value=False,
        envvar=variables, allow_from_autoenv=False,
        help="Use colours on a terminal unless NO_COLOR is set (auto, the default), always, or never.",
    )  # fmt: skip


def completed(command: click.Command) -> click.Command:
    """Add --color, environment variables and the check of overlapping files to a command."""
    if command.context_class is Context:
        return command
    command.context_class = Context
    for option in settings(command):
        option.envvar = _variables(command.name or "", option)
    command.params.append(color_option())
    command.callback = _checked(command)
    first = next(settings(command), None)
    if first is not None:
        command.epilog = (
            f"{command.epilog or ''}\n\nEnvironment variables set defaults of options: {long_name(first)} is read from "
            f"{' or '.join(first.envvar or ())}. The command line takes precedence."
        )
    return command


def _checked(command: click.Command) -> Callable[..., Any]:
    """Return the callback of the command, preceded by the checks of variables and of overlapping files."""
    run = command.callback or (lambda **_: None)

    @wraps(run)
    def checked(**values: Any) -> Any:
        if not values.get("quiet"):
            warn_of_unknown_variables(click.get_current_context().find_root().command)
        refuse_overlaps_of(command, values)
        return run(**values)

    return checked


def name_variable(error: click.ClickException) -> None:
    """Name the environment variable instead of the option in an error about its value."""
    if not isinstance(error, click.BadParameter) or error.param is None or error.ctx is None:
        return
    if error.ctx.get_parameter_source(error.param.name or "") is ParameterSource.ENVIRONMENT:
        error.param_hint = next(name for name in error.param.envvar or () if os.environ.get(name))


def warn_of_unknown_variables(group: click.Command) -> None:
    """Write a line about every variable KAFEAT_... that no command of the group reads: it is probably misspelt."""
    found = {name for name, value in os.environ.items() if name.startswith(_PREFIX) and value}
    if not found or not isinstance(group, click.Group):
        return
    context = Context(group)  # importing all commands takes 20 ms
    commands = filter(None, (group.get_command(context, name) for name in group.list_commands(context)))
    read = (name for command in commands for option in settings(command) for name in option.envvar or ())
    known = {*_WITHOUT_OPTION, *read}
    for name in sorted(found - known):
        from kafeat.contract.describe import near

        # Without the prefix, which makes all names alike.
        bare = sorted(one.removeprefix(_PREFIX) for one in known)
        meant = near(name.removeprefix(_PREFIX), bare, cutoff=0.75)
        hint = f"; did you mean {_PREFIX}{meant}?" if meant else ""
        log.warn(f"{name}: no option is set by this variable, so it is ignored{hint}")


def settings(command: click.Command) -> Iterator[click.Option]:
    """Return the options that can be set by environment variables."""
    return (
        option for option in command.params if isinstance(option, click.Option) and option.allow_from_autoenv
    )


def _variables(command: str, option: click.Option) -> list[str]:
    """Return the variables of an option, KAFEAT_TRANSFORM_JOBS before KAFEAT_JOBS."""
    name = long_name(option).lstrip("-").replace("-", "_").upper()
    commands = (command, *_SAME_AS.get(command, ()))
    own = [f"{_PREFIX}{one.replace('-', '_').upper()}_{name}" for one in commands]
    return own if long_name(option) in _OF_ONE_COMMAND else [*own, f"{_PREFIX}{name}"]


def long_name(option: click.Option) -> str:
    """Return the name that begins with two hyphens."""
    return next(name for name in option.opts if name.startswith("--"))


_OWN = "Options"
# The help of a command with fewer options than this is one list.
_FEW = 12


class GroupedCommand(click.Command):
    """A command whose help lists many options in groups: its own ones first, then those that commands share."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        every = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        if len(every) < _FEW:
            super().format_options(ctx, formatter)
            return
        groups = _groups({long_name(one) for one in every})
        for group in (_OWN, *dict.fromkeys(groups.values())):
            of_group = (
                one.get_help_record(ctx) for one in every if groups.get(long_name(one), _OWN) == group
            )
            rows = [record for record in of_group if record is not None]
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows)


def _groups(names: set[str]) -> dict[str, str]:
    """Return the groups of options, for a command with options of these names."""
    # Imported here: only the help of a command needs them.
    from kafeat.io.options import declared
    from kafeat.jobs.transform.options import PARTS, TransformOptions

    groups = {f"--{one.name.replace('_', '-')}": says.group for one, says in declared(TransformOptions)}
    groups |= dict.fromkeys(("--json", "--report", "--dry-run"), "Output")
    groups |= dict.fromkeys(("--log-format", "--quiet", "--verbose", "--color", "--help"), "Messages")
    return {
        name: group
        for name, group in groups.items()
        if group is not None and (group != PARTS or "--engine" in names)
    }
