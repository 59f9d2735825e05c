"""`kafeat evaluate`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from kafeat.cli import options

if TYPE_CHECKING:
    from rich.table import Table

    from kafeat.jobs.transform import Input


@click.command(
    epilog="""\b
Example:
  kafeat evaluate --model map.joblib sample_data/digits.parquet --label label
"""
)
@options.model
@click.argument("data")
@options.label
@click.option(
    "--rows", type=click.IntRange(min=2), default=2000, show_default=True, metavar="N",
    help="Rows to compare on, drawn from DATA apart from those that the fit took.",
)  # fmt: skip
@click.option(
    "--json", "json_file", metavar="FILE", help="Write the figures as JSON; - is stdout, without the table."
)
@options.reading
@options.quiet
def evaluate(
    model: str,
    data: str,
    label: str | None,
    rows: int,
    json_file: str | None,
    reading: Input,
    quiet: bool,
) -> None:
    """Compare a map with its exact kernel on rows of DATA.

    Shows the error of the features' dot products against the kernel of the whole chain. With --label also the
    test scores of ridge models on the raw columns, on the features, and with the exact kernel.
    """
    import json

    from kafeat.feature_map import load
    from kafeat.io.output import write_bytes
    from kafeat.jobs.evaluate import evaluate as job

    report = job(load(model), data, label, rows, reading)
    text = json.dumps({"model": model, "data": data, **report}, indent=2) + "\n"
    if json_file == "-":
        click.echo(text, nl=False)
        return
    if json_file:
        write_bytes(json_file, text.encode())
    if not quiet:
        _show(report)


def _show(report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    title = f"Against the exact kernel, {report['rows']:,} rows, D = {report['n_components']:,}"
    table = Table(title=title, title_justify="left", min_width=len(title))
    table.add_column("error of z(x)·z(y)")
    table.add_column("value", justify="right")
    for key, text in (
        ("relative_frobenius", "relative, Frobenius norm"),
        ("relative_spectral", "relative, spectral norm"),
        ("max_abs_error", "largest of an entry"),
        ("mean_abs_error", "mean of an entry"),
        ("bias", "mean with its sign"),
    ):
        table.add_row(text, _figure(report[key], ".4g"))
    console.print(table)
    if "score_raw" in report:
        console.print(_scores(report))
    for note in _notes(report):
        console.print(note, highlight=False, soft_wrap=True)


def _scores(report: dict[str, Any]) -> Table:
    from rich.table import Table

    score = "accuracy" if report["task"] == "classification" else "R²"
    title = f"Ridge, {report['rows_train']:,} rows to train, {report['rows_test']:,} to test"
    table = Table(title=title, title_justify="left", min_width=len(title))
    for name in ("on", score, "seconds to fit", "seconds to make"):
        table.add_column(name, justify="left" if name == "on" else "right")
    made = {"raw": "", "map": f"{report['transform_seconds']:.3f}", "exact": f"{report['exact_seconds']:.3f}"}
    names = {"raw": "the raw columns", "map": "the map's features", "exact": "the exact kernel"}
    for key, name in names.items():
        table.add_row(
            name, _figure(report[f"score_{key}"], ".4f"), f"{report[f'fit_seconds_{key}']:.3f}", made[key]
        )
    return table


def _figure(value: float | None, form: str) -> str:
    return "undefined" if value is None else format(value, form)


def _notes(report: dict[str, Any]) -> Iterator[str]:
    seen = report["rows_seen_in_fit"]
    if seen:
        yield f"note: the map was fitted on this file, and {seen:,} of these rows were among those it saw"
    if report["reference"]:
        yield f"note: {report['reference']}"
