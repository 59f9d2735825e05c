"""What every command has besides its own: --color, variables for its options, and a help with headings."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import click
from click.core import ParameterSource

from kafeat.cli import color
from kafeat.cli.overlaps import refuse_overlaps_of

# A flag in one command and the name of a file in another: one variable cannot stand for both.
_OF_ONE_COMMAND = frozenset({"--json"})


class Formatter(click.HelpFormatter):
    """Headings in bold, where colours are wanted."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        if prefix is None and color.wanted(sys.stdout):
            prefix = click.style("Usage:", bold=True) + " "
        super().write_usage(prog, args, prefix)

    def write_heading(self, heading: str) -> None:
        if color.wanted(sys.stdout):
            self.write(f"{'':>{self.current_indent}}{click.style(heading + ':', bold=True)}\n")
        else:
            super().write_heading(heading)


class Context(click.Context):
    """A context that knows about colours from its beginning."""

    formatter_class = Formatter

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.color = color.forced()


def color_option(variable: str | None) -> click.Option:
    """--color, before the command or behind it: checked here, and obeyed from the start (`color.peek`)."""
    return click.Option(
        ["--color"], type=click.Choice(color.CHOICES), expose_value=False,
        envvar=variable, allow_from_autoenv=False,
        help="Colours: on a terminal unless NO_COLOR is set (auto, the default), always or never.",
    )  # fmt: skip


def completed(command: click.Command) -> click.Command:
    """The command with what every command has."""
    if command.context_class is Context:
        return command
    command.context_class = Context
    for option in settings(command):
        option.envvar = _variables(command.name or "", option)
    command.params.append(color_option(None))
    command.callback = _checked(command)
    first = next(settings(command), None)
    if first is not None and isinstance(first.envvar, list):
        command.epilog = (
            f"{command.epilog or ''}\n\nOptions are read from the environment, too: {long_name(first)} from "
            f"{' or '.join(first.envvar)}. The command line wins."
        )
    return command


def _checked(command: click.Command) -> Callable[..., Any]:
    """What the command does, once no output of it would replace a file that it reads."""
    run = command.callback or (lambda **_: None)

    @wraps(run)
    def checked(**values: Any) -> Any:
        refuse_overlaps_of(command, values)
        return run(**values)

    return checked


def name_variable(error: click.ClickException) -> None:
    """A mistake in a variable is told by its name, and not by that of the option."""
    if not isinstance(error, click.BadParameter) or error.param is None or error.ctx is None:
        return
    if error.ctx.get_parameter_source(error.param.name or "") is ParameterSource.ENVIRONMENT:
        names = error.param.envvar
        known = [names] if isinstance(names, str) else list(names or ())
        error.param_hint = next(name for name in known if os.environ.get(name))


def settings(command: click.Command) -> Iterator[click.Option]:
    """The options that have variables."""
    return (
        option for option in command.params if isinstance(option, click.Option) and option.allow_from_autoenv
    )


def _variables(command: str, option: click.Option) -> list[str]:
    """KAFEAT_FIT_JOBS before KAFEAT_JOBS."""
    name = long_name(option).lstrip("-").replace("-", "_").upper()
    own = f"KAFEAT_{command.replace('-', '_').upper()}_{name}"
    return [own] if long_name(option) in _OF_ONE_COMMAND else [own, f"KAFEAT_{name}"]


def long_name(option: click.Option) -> str:
    """The name that begins with two hyphens."""
    return next(name for name in option.opts if name.startswith("--"))
