"""`kafeat config`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kafeat.cli import log, options
from kafeat.cli.command import command
from kafeat.jobs.options import ColumnOptions

if TYPE_CHECKING:
    from kafeat.io.options import InputOptions

_DEFAULT_KIND = "nystroem"


@command(
    "Write a config to start from, or check configs.",
    """Examples:
  kafeat config > start.yaml
  kafeat config --kind fourier > rbf.yaml
  kafeat config --for sample_data/rentals.csv --label income > rentals.yaml
  kafeat config --check rbf.yaml
  kafeat config --schema > kafeat.schema.json
""",
)
@click.argument("files", type=options.CONFIG, nargs=-1, metavar="[FILE.yaml]...")
@options.option(
    "--kind", type=options.KIND, metavar="KIND", allow_from_autoenv=False,
    help="Write a config with a step of this kind (default: nystroem), every key, its default and its accepted values.",
)  # fmt: skip
@options.option(
    "--for", "data", type=options.DATA, metavar="DATA", allow_from_autoenv=False,
    help="Write a config for a table, with a comment on each column: its type, its values, and what is done with it.",
)  # fmt: skip
@options.option(
    "--label", "labels", type=options.COLUMN, metavar="COL", multiple=True, allow_from_autoenv=False,
    help="A label of the table of --for. It is not a feature. Repeatable.",
)  # fmt: skip
@options.option(
    "--check", is_flag=True, allow_from_autoenv=False,
    help="Check the configs and experiments FILE.yaml, and list every mistake in them (exit code 2).",
)  # fmt: skip
@options.option(
    "--schema", is_flag=True, allow_from_autoenv=False, help="Write the JSON Schema of configs, for editors."
)
@options.made_from(ColumnOptions)
@options.reading
def config(
    files: tuple[str, ...],
    kind: str | None,
    data: str | None,
    labels: tuple[str, ...],
    check: bool,
    schema: bool,
    reading: InputOptions,
    **chosen: Any,
) -> None:
    """Write a starting config to stdout, check configs, or write the JSON Schema of configs.

    Without an option, the config has the steps standardize and nystroem.
    """
    from kafeat.errors import UsageError

    if (kind is not None) + (data is not None) + check + schema > 1:
        raise UsageError(
            "config: expected at most one of --kind KIND, --for DATA, --check FILE.yaml and --schema; see --help"
        )
    if data is None and (labels or any(chosen.values())):
        given = "--label" if labels else next(f"--{name}" for name, value in chosen.items() if value)
        raise UsageError(f"config: expected --for DATA with {given}, got none")
    if bool(files) != check:
        got = "one without it" if files else "none"
        raise UsageError(f"config: expected the names of files with --check, got {got}")
    if check:
        _check(files)
    elif data is not None:
        from kafeat.study.start import config_for

        click.echo(config_for(data, labels, reading, **chosen), nl=False)
    elif schema:
        import json

        from kafeat.config.template import config_schema

        click.echo(json.dumps(config_schema(), indent=2, ensure_ascii=False))
    else:
        click.echo(_start(kind or _DEFAULT_KIND), nl=False)


def _start(kind: str) -> str:
    from kafeat.config.template import starting_config
    from kafeat.registry import check_kind

    check_kind(kind)
    return starting_config(kind)


def _check(files: tuple[str, ...]) -> None:
    from kafeat.config.experiment import KEY
    from kafeat.config.load import top_keys
    from kafeat.errors import ConfigError

    problems: list[str] = []
    for name in files:
        try:
            content = _experiment(name) if KEY in top_keys(name) else _steps(name)
        except ConfigError as error:
            problems += error.problems
            continue
        log.show(f"{name}: valid: {content}")
    if problems:
        raise ConfigError(problems)


def _steps(name: str) -> str:
    from kafeat.config import load_config

    config = load_config(name)
    chain = " -> ".join(step.kind for step in config.steps)
    rows = "every row" if config.fit_rows == "all" else f"at most {config.fit_rows:,} rows"
    return f"{chain}, {config.dtype}, fitted on {rows}"


def _experiment(name: str) -> str:
    from kafeat.cli.evaluate import checked_options, evaluate
    from kafeat.config.experiment import read_experiment

    experiment = read_experiment(name)
    checked_options(click.Context(evaluate, info_name="evaluate"), name, experiment.options)
    return f"an experiment with the maps {', '.join(experiment.maps)}"
