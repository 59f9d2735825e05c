"""`kafeat diff`."""

from __future__ import annotations

import json

import click

from kafeat.cli import log, options
from kafeat.cli.command import command


@command(
    "List the differences between two maps.",
    """Examples:
  kafeat fit --config configs/nystroem.yaml sample_data/digits.parquet \\
      other.joblib --label label
  kafeat diff map.joblib other.joblib
""",
)
@click.argument("a", type=options.MODEL, metavar="A")
@click.argument("b", type=options.MODEL, metavar="B")
@options.option(
    "--json", "as_json", is_flag=True, help="Write a JSON list of objects with the keys where, a and b."
)
@options.option("--exit-code", is_flag=True, help="Exit with code 6 if the maps differ.")
@options.log_format
def diff(a: str, b: str, as_json: bool, exit_code: bool) -> None:
    """List the differences between the maps A and B: recipe, columns, learned arrays and training data."""
    from kafeat.errors import GateError
    from kafeat.jobs.diff import differences
    from kafeat.model.load import load

    lines = differences(load(a), load(b))
    if as_json:
        click.echo(json.dumps([{"where": one.where, "a": one.a, "b": one.b} for one in lines], indent=2))
    else:
        for one in lines:
            log.show(str(one))
        if not lines:
            click.echo("no difference")
    if lines and exit_code:
        raise GateError(f"{a} and {b}: expected no difference, got {len(lines)}")
