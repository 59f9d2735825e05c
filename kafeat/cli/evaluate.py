"""`kafeat evaluate`."""

from __future__ import annotations

import click

from kafeat.cli import options


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
@click.option("--json", "json_file", metavar="FILE", help="Write the figures as JSON; - is stdout, without the table.")
@options.reading
@options.quiet
def evaluate(model, data, label, rows, json_file, reading, quiet):  # type: ignore[no-untyped-def]
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


def _show(report):  # type: ignore[no-untyped-def]
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title=f"Against the exact kernel, {report['rows']:,} rows, D = {report['n_components']:,}")
    table.add_column("error of z(x)·z(y)")
    table.add_column("value", justify="right")
    for key, text in (
        ("relative_frobenius", "relative, Frobenius norm"),
        ("relative_spectral", "relative, spectral norm"),
        ("max_abs_error", "largest of an entry"),
        ("mean_abs_error", "mean of an entry"),
        ("bias", "mean with its sign"),
    ):
        table.add_row(text, f"{report[key]:.4g}")
    console.print(table)
    if "score_raw" in report:
        console.print(_scores(report))
    for note in _notes(report):
        console.print(note, highlight=False)


def _scores(report):  # type: ignore[no-untyped-def]
    from rich.table import Table

    score = "accuracy" if report["task"] == "classification" else "R²"
    table = Table(title=f"Ridge, {report['rows_train']:,} rows to train, {report['rows_test']:,} to test")
    for name in ("on", score, "seconds to fit", "seconds to make"):
        table.add_column(name, justify="left" if name == "on" else "right")
    made = {"raw": "", "map": f"{report['transform_seconds']:.3f}", "exact": f"{report['exact_seconds']:.3f}"}
    names = {"raw": "the raw columns", "map": "the map's features", "exact": "the exact kernel"}
    for key, name in names.items():
        table.add_row(name, f"{report[f'score_{key}']:.4f}", f"{report[f'fit_seconds_{key}']:.3f}", made[key])
    return table


def _notes(report):  # type: ignore[no-untyped-def]
    seen = report["rows_seen_in_fit"]
    if seen:
        yield f"note: the map was fitted on this file, and {seen:,} of these rows were among those it saw"
    if report["reference"]:
        yield f"note: {report['reference']}"
