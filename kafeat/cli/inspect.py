"""`kafeat inspect`."""

from __future__ import annotations

from typing import Any

import click

from kafeat.cli import options


@click.command(
    epilog="""\b
Example:
  kafeat inspect map.joblib
"""
)
@click.argument("model", type=options.MODEL)
@click.option("--json", "as_json", is_flag=True, help="Write JSON to stdout.")
def inspect(model: str, as_json: bool) -> None:
    """Show the content of MODEL: steps, parameters, columns, sizes and training data."""
    import json

    from kafeat.errors import quoted
    from kafeat.io.columns.fields import listed
    from kafeat.io.storage.uri import shown
    from kafeat.jobs.inspect import inspect as job

    found = job(model)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    click.echo(
        f"{shown(model)}: kafeat {found['kafeat']} map, format {found['format']}, {found['bytes']:,} bytes, "
        f"sha256 {found['sha256']}"
    )
    click.echo(
        f"{found['n_features_in']} inputs -> {found['n_components']} features, {found['dtype']}, "
        f"chunks of {found['chunk_rows']:,} rows, seed {found['seed']}"
    )
    click.echo(f"columns{' (by position)' if found['by_position'] else ''}: {listed(found['columns'])}")
    for name, values in found["categories"].items():
        click.echo(f"categories of {quoted(name)} ({len(values):,}): {listed(values)}")
    for i, step in enumerate(found["steps"]):
        _show_step(i, step)
    if found["dtype"] == "float32" and found["float64_steps"]:
        click.echo(f"computed in float64: {_spelled(found['float64_steps'], len(found['steps']))}")
    if found["pruned_from"]:
        click.echo(f"pruned: {found['n_components']:,} of {found['pruned_from']:,} outputs are kept")
    origin = found["fitted_from"]
    imported = origin.get("imported")
    if imported:
        click.echo(f"imported from {imported}")
    for source in origin["sources"]:
        rows = f"fitted on {origin['rows_fitted']:,} of {source['rows']:,} rows of {source['name']}"
        click.echo(f"  {source['name']}" if imported else rows)
        click.echo(f"  sha256 {source['sha256']}")
    for search in origin.get("searches", []):
        _show_search(search)
    if origin.get("split"):
        click.echo(f"split: {origin['split']} (fitted on its rows of train alone)")
    click.echo(f"label: {origin['label'] or 'none'}")
    click.echo(f"config sha256: {origin['config_sha256']}")
    rows = "yes: landmarks are rows of the data" if found["contains_training_rows"] else "no"
    click.echo(f"contains training rows: {rows}")
    if found["reference"]:
        click.echo(f"note: {found['reference']}")


def _spelled(wide: int, steps: int) -> str:
    if wide == steps:
        return "all steps; features are rounded to float32"
    return f"steps[0]{f' to steps[{wide - 1}]' if wide > 1 else ''}; then values are cast to float32"


def _show_step(i: int, step: dict[str, Any]) -> None:
    plain = ("kind", "n_features_in", "fitted", "arrays", "contains_training_rows")
    parameters = ", ".join(f"{name}: {value}" for name, value in step.items() if name not in plain)
    click.echo(f"steps[{i}] {step['kind']}" + (f" ({parameters})" if parameters else ""))
    for name, value in step["fitted"].items():
        click.echo(f"    {name} = {value:.10g}")
    for name, array in step["arrays"].items():
        shape = " x ".join(map(str, array["shape"]))
        click.echo(f"    {name}: {shape} {array['dtype']}, {array['bytes']:,} bytes")


def _show_search(search: dict[str, Any]) -> None:
    if "scores" in search:
        curve = zip(search["values"], search["scores"], strict=True)
        how = "by validation score"
    else:
        curve = zip(search["widths"], search["errors"], strict=True)
        how = f"for an error of {search['target_error']:g}"
    tried = ", ".join(f"{value:g}: {figure:.4g}" for value, figure in curve)
    click.echo(f"{search['parameter']}: {search['chosen']:g} chosen {how} ({tried})")
