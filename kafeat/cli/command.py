"""Additions to every command: --color, environment variables, groups of options and bold headings in the help."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

import click
from click.core import ParameterSource

from kafeat.cli import log
from kafeat.cli.overlaps import names_of, refuse_overlaps_of

# --json is a flag in one command and a file name in another, so one variable cannot stand for both.
_OF_ONE_COMMAND = frozenset({"--json"})

# `predict` does what `transform` does, so it also reads the variables of `transform`.
_SAME_AS = {"predict": ("transform",)}
_PREFIX = "KAFEAT_"
_OWN = "Options"
_WITHOUT_OPTION = ("KAFEAT_COLOR", "KAFEAT_COMPILED")


class Formatter(click.HelpFormatter):
    """Formats help, with headings in bold if the output has colours."""

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
    """A context of click that formats help with `Formatter`, in colours if `log.wants_color` allows them on stdout."""

    formatter_class = Formatter

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.color = log.wants_color(sys.stdout)


class GroupedOption(click.Option):
    """An option with a heading in the help. If a command has many options, its short help leaves out `rare` ones."""

    def __init__(self, *names: Any, group: str = _OWN, rare: bool = False, **more: Any) -> None:
        super().__init__(*names, **more)
        self.group, self.rare = group, rare


def color_option(*variables: str) -> click.Option:
    """Return --color for the help. Click only checks its value, because `log.apply_color` has read it before."""
    return GroupedOption(
        ["--color"], group="Messages", rare=True, type=click.Choice(log.COLORS), expose_value=False,
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
    first = next((one for one in settings(command) if getattr(one, "group", None) == _OWN), None)
    if first is not None:
        command.epilog = (
            f"{command.epilog or ''}\n\nEnvironment variables set defaults of options: {long_name(first)} is read from "
            f"{' or '.join(first.envvar or ())}. The command line takes precedence."
        )
    return command


def _checked(command: click.Command) -> Callable[..., Any]:
    """Return the command's callback with checks before it: of variables, and of outputs that would replace inputs."""
    run = command.callback or (lambda **_: None)

    @wraps(run)
    def checked(**values: Any) -> Any:
        log.settings.work = log.Work(*names_of(command, values), jobs=values.get("jobs"))
        log.hear_libraries()
        warn_of_unknown_variables(click.get_current_context().find_root().command)
        refuse_overlaps_of(command, values)
        code = run(**values)
        log.end(code or 0)
        return code

    return checked


def name_variable(error: click.ClickException) -> None:
    """Name the environment variable instead of the option in an error about its value."""
    if not isinstance(error, click.BadParameter) or error.param is None or error.ctx is None:
        return
    if error.ctx.get_parameter_source(error.param.name or "") is ParameterSource.ENVIRONMENT:
        error.param_hint = next(name for name in error.param.envvar or () if os.environ.get(name))


def warn_of_unknown_variables(group: click.Command) -> None:
    """Write a line about every variable KAFEAT_... that no command of the group reads. Its name may be misspelt."""
    found = {name for name, value in os.environ.items() if name.startswith(_PREFIX) and value}
    if not found or not isinstance(group, click.Group):
        return
    read = (name for one in _commands(group) for option in settings(one) for name in option.envvar or ())
    known = {*_WITHOUT_OPTION, *read}
    for name in sorted(found - known):
        from kafeat.contract.describe import near

        # All names share the prefix, which would make them look alike, so compare names without it.
        bare = sorted(one.removeprefix(_PREFIX) for one in known)
        meant = near(name.removeprefix(_PREFIX), bare, cutoff=0.75)
        hint = f"; did you mean {_PREFIX}{meant}?" if meant else ""
        log.warn(f"{name}: no option is set by this variable, so it is ignored{hint}")


def _commands(group: click.Command) -> Iterator[click.Command]:
    """Yield the commands of a group. Their modules are imported for this, in 20 ms."""
    if isinstance(group, click.Group):
        context = Context(group)
        yield from filter(None, (group.get_command(context, name) for name in group.list_commands(context)))


def settings(command: click.Command) -> Iterator[click.Option]:
    """Return the options that can be set by environment variables."""
    return (
        option for option in command.params if isinstance(option, click.Option) and option.allow_from_autoenv
    )


def _variables(command: str, option: click.Option) -> list[str]:
    """Return the variables of an option by precedence, such as KAFEAT_TRANSFORM_JOBS, then KAFEAT_JOBS."""
    name = long_name(option).lstrip("-").replace("-", "_").upper()
    commands = (command, *_SAME_AS.get(command, ()))
    own = [f"{_PREFIX}{one.replace('-', '_').upper()}_{name}" for one in commands]
    return own if long_name(option) in _OF_ONE_COMMAND else [*own, f"{_PREFIX}{name}"]


def long_name(option: click.Option) -> str:
    """Return the name that begins with two hyphens."""
    return next(name for name in option.opts if name.startswith("--"))


# With fewer options than _FEW, the help of a command is one list. With more than _MANY, it omits rare options.
_FEW, _MANY = 12, 20
_SHOWS_ALL = "kafeat.help_all"


def _show_all(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        context.meta[_SHOWS_ALL] = True
        click.echo(context.get_help(), color=context.color)
        context.exit()


_HELP_ALL = GroupedOption(
    ["--help-all"], group="Messages", is_flag=True, is_eager=True, expose_value=False, callback=_show_all,
    help="Show all options and exit.",
)  # fmt: skip


_FROM = {
    "config": "`kafeat tune` chooses a config for a label, and `kafeat config --for DATA` starts one.",
    "model": "`kafeat fit` makes a model.",
    "label": "It names the column to predict.",
}
"""Advice on where to get the value of a required option, if it is missing."""


class GroupedCommand(click.Command):
    """A command whose help groups options: first options of this command, then options that several commands have.

    If a command has more than 20 options, only `--help-all` shows the rare ones.
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        every = super().get_params(ctx)
        if len(_options(every)) > _MANY:
            every.append(_HELP_ALL)
        return every

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            place = _place_of(error.option_name, ctx)
            if not place:
                raise
            raise click.NoSuchOption(
                error.option_name, f"No such option '{error.option_name}': it belongs to {place}.", ctx=ctx
            ) from None
        except click.MissingParameter as error:
            source = _FROM.get(error.param.name or "") if isinstance(error.param, click.Option) else None
            raise click.MissingParameter(source, ctx, error.param) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from kafeat.io.options import GROUPS  # only help needs them

        every = _options(self.get_params(ctx))
        if len(every) < _FEW:
            super().format_options(ctx, formatter)
            return
        many = len(every) > _MANY and _SHOWS_ALL not in ctx.meta
        shown = [one for one in every if not (many and getattr(one, "rare", False))]
        for group in GROUPS:
            # --help has no group, because click makes it
            of_group = (one for one in shown if getattr(one, "group", "Messages") == group)
            rows = [record for one in of_group if (record := one.get_help_record(ctx)) is not None]
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows)
        if len(shown) < len(every):
            formatter.write_paragraph()
            formatter.write_text(f"{len(every) - len(shown)} more options: {ctx.command_path} --help-all")


def command(short_help: str, examples: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that makes a command. `short_help` is its line in the list of commands."""
    return click.command(cls=GroupedCommand, short_help=short_help, epilog=f"\b\n{examples}")


def _place_of(name: str, context: click.Context) -> str:
    """Return, as text, other commands with an option of this name, and its key in the config; '' if none."""
    places = [
        f"`kafeat {one.name}`" for one in _commands(context.find_root().command) if name in _names_of(one)
    ]
    key = name.lstrip("-").replace("-", "_")
    key = "n_components" if key == "columns" else key
    if "--config" in _names_of(context.command) and key in _config_keys():
        places.append(f"the config, as `{key}`")
    return " or ".join(places)


def _names_of(command: click.Command) -> set[str]:
    """Return all names of the options of a command."""
    return {name for one in _options(command.params) for name in (*one.opts, *one.secondary_opts)}


def _config_keys() -> set[str]:
    from kafeat.config import Config
    from kafeat.registry import kinds, step_class

    return {*Config.model_fields, *(key for kind in kinds() for key in step_class(kind).model_fields)}


def _options(parameters: Iterable[click.Parameter]) -> list[click.Option]:
    return [one for one in parameters if isinstance(one, click.Option)]
