"""The options --experiment and --list-experiments of `kafeat evaluate`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

from kafeat.cli import options
from kafeat.cli.command import long_name
from kafeat.cli.overlaps import FileName

_ALLOWED = (
    "label", "split", "task", "learner", "tau", "penalty", "sweep", "seeds", "splits", "scoring", "rows", "exact_rows",
    "output_dtype", "limit", "jobs",
)  # fmt: skip
"""Options that an experiment may set: those that decide what is computed. None writes a file or runs code."""


class ExperimentName(FileName):
    """The name of an experiment of the package, or the YAML file of another."""

    def __init__(self) -> None:
        super().__init__("config", "the experiment")

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from kafeat.config.experiment import experiment_names

        names = [CompletionItem(name) for name in experiment_names() if name.startswith(incomplete)]
        return names or super().shell_complete(ctx, param, incomplete)


def _use_options(context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    """Make the options of the experiment the defaults of the command."""
    if name is None or context.resilient_parsing:
        return name
    from kafeat.config.experiment import load_experiment

    defaults = checked_options(context, name, load_experiment(name).options)
    context.default_map = {**(context.default_map or {}), **defaults}
    return name


def checked_options(context: click.Context, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options by the names that click has for them. Each is checked as on the command line.

    `context` is one of `kafeat evaluate`.
    """
    from kafeat.contract.describe import nearest
    from kafeat.errors import ConfigError

    known = {
        long_name(option)[2:].replace("-", "_"): option
        for option in context.command.params
        if isinstance(option, click.Option)
    }
    defaults: dict[str, Any] = {}
    problems: list[str] = []
    for key, value in given.items():
        if key not in _ALLOWED:
            problems.append(
                f"{name}: options: expected one of {', '.join(_ALLOWED)}, got {key!r}{nearest(key, _ALLOWED)}"
            )
            continue
        option = known[key]
        try:
            text = _as_typed(value, option.multiple)
            option.process_value(context, text)
        except (click.BadParameter, ValueError) as error:
            said = error.message if isinstance(error, click.BadParameter) else str(error)
            problems.append(f"{name}: options.{key}: {said}")
            continue
        defaults[option.name or ""] = text
    if problems:
        raise ConfigError(problems)
    return defaults


def _as_typed(value: Any, multiple: bool) -> str | list[str]:
    """Return a value as on the command line: text, or a list of texts for an option that may be repeated."""
    from kafeat.contract.describe import spell

    values = value if isinstance(value, list) and multiple else [value]
    if not values or not all(isinstance(one, str | int | float) for one in values):
        expected = "a number or text, or a list of these" if multiple else "a number or text"
        raise ValueError(f"expected {expected}, got {spell(value)}")
    words = [str(one) for one in values]
    return words if multiple else words[0]


def _list(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    """List the experiments of the package."""
    if not asked or context.resilient_parsing:
        return
    from kafeat.config.experiment import experiment_names, load_experiment

    for name in experiment_names():
        experiment = load_experiment(name)
        click.echo(f"{click.style(name, bold=True)}\n    {experiment.about}\n    DATA: {experiment.data}")
    context.exit()


experiment = options.option(
    "--experiment", rare=True, type=ExperimentName(), is_eager=True, callback=_use_options, metavar="NAME|FILE.yaml",
    allow_from_autoenv=False,
    help="Evaluate the maps of an experiment that kafeat has, or of a file of the same form. Other options take "
    "precedence over those of the experiment.",
)  # fmt: skip
list_experiments = options.option(
    "--list-experiments", rare=True, is_flag=True, is_eager=True, expose_value=False, callback=_list,
    allow_from_autoenv=False, help="List the experiments, with the table that each needs, and exit.",
)  # fmt: skip
