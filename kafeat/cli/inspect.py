"""`kafeat inspect`."""

from __future__ import annotations

from typing import Any

import click

from kafeat.cli import log, options
from kafeat.cli.command import command

# Without -v, at most this many columns that a metric stretches are shown, and at most this many values of a search.
_MOST_SHOWN = 8


@command(
    "Show what is in a map.",
    """Example:
  kafeat inspect map.joblib
""",
)
@click.argument("model", type=options.MODEL)
@options.option("--json", "as_json", is_flag=True, help="Write JSON to stdout.")
@options.option(
    "--verbose",
    "-v",
    is_flag=True,
    help="Also show hashes, arrays, searches and parameters that have their default.",
)
def inspect(model: str, as_json: bool, verbose: bool) -> None:
    """Show the content of MODEL: columns, steps, and the data that it was fitted on."""
    import json

    from kafeat.errors import without_secrets
    from kafeat.jobs.inspect import inspect as job

    content = job(model)
    if as_json:
        click.echo(json.dumps(content, indent=2))
        return
    what = "map" if content["predictor"] is None else "model"
    inside = f", format {content['format']}, sha256 {content['sha256']}" if verbose else ""
    log.show(
        f"{without_secrets(model)}: a {what} of kafeat {content['kafeat']}, {content['bytes']:,} bytes{inside}"
    )
    inside = f", chunks of {content['chunk_rows']:,} rows, seed {content['seed']}" if verbose else ""
    log.show(
        f"{content['n_features_in']} inputs -> {content['n_components']} features, {content['dtype']}{inside}"
    )
    _show_columns(content)
    _show_steps(content, verbose)
    _show_origin(content["fitted_from"], verbose)
    rows = "yes: landmarks are rows of the data" if content["contains_training_rows"] else "no"
    log.show(f"contains training rows: {rows}")
    if content["reference"]:
        log.show(f"note: {content['reference']}")


def _show_columns(content: dict[str, Any]) -> None:
    from kafeat.errors import quoted
    from kafeat.io.columns.fields import abbreviated, listed

    log.show(f"columns{' (by position)' if content['by_position'] else ''}: {listed(content['columns'])}")
    for name, values in content["categories"].items():
        log.show(f"categories of {quoted(name)} ({len(values):,}): {abbreviated(list(map(quoted, values)))}")
    if content["times"]:
        of_times = content["dialect"]
        forms = [
            f"{name} ({of_times['dates'][name]}, {of_times['timezones'][name]})" for name in content["times"]
        ]
        log.show(f"times: {listed(forms)}")
    dialect = content["dialect"]
    if "file" in dialect:
        delimiter, encoding = dialect["file"]
        log.show(f"CSV files: delimiter {delimiter!r}, encoding {encoding}")
    if dialect["decimal_commas"]:
        log.show(f"decimal commas in CSV: {listed(dialect['decimal_commas'])}")
    for key, what in (("thousands", "separators of thousands"), ("units", "units")):
        marks = [f"{name} ({' '.join(marks)})" for name, marks in dialect.get(key, {}).items()]
        if marks:
            log.show(f"{what} in CSV: {listed(marks)}")


def _show_steps(content: dict[str, Any], verbose: bool) -> None:
    for i, step in enumerate(content["steps"]):
        _show_step(i, step, verbose)
    if content["unit_scale"] is not None:
        log.show(f"for features of unit variance: times {content['unit_scale']:.10g}")
    if content["predictor"] is not None:
        _show_predictor(len(content["steps"]), content["predictor"], content["fitted_from"], verbose)
    if content["dtype"] == "float32" and content["float64_steps"]:
        log.show(f"computed in float64: {_spelled(content['float64_steps'], len(content['steps']))}")


def _show_predictor(number: int, predictor: dict[str, Any], origin: dict[str, Any], verbose: bool) -> None:
    from kafeat.io.columns.fields import listed

    own = ("labels", "type", "classes")
    _show_step(number, {name: value for name, value in predictor.items() if name not in own}, verbose)
    classes = predictor["classes"]
    what = (
        "numbers"
        if classes is None
        else f"{len(classes):,} classes ({listed([str(one) for one in classes])})"
    )
    weight = f", weighted by {origin['weight']}" if "weight" in origin else ""
    log.show(f"    predicts {what}, fitted on {origin['rows_learned']:,} rows{weight}")


def _show_origin(origin: dict[str, Any], verbose: bool) -> None:
    imported = origin.get("imported")
    if imported:
        log.show(f"imported from {imported}")
    for source in origin["sources"]:
        rows = f"fitted on {origin['rows_fitted']:,} of {source['rows']:,} rows of {source['name']}"
        log.show(f"  {source['name']}" if imported else rows)
        if verbose:
            log.show(f"  sha256 {source['sha256']}")
    for search in origin.get("searches", []):
        _show_search(search, verbose)
    if origin.get("split"):
        log.show(f"split: {origin['split']} (fitted only on the rows that it marks as train)")
    label = origin["label"]
    log.show(f"labels: {', '.join(label)}" if isinstance(label, list) else f"label: {label or 'none'}")
    if verbose:
        log.show(f"config sha256: {origin['config_sha256']}")


def _spelled(wide: int, steps: int) -> str:
    if wide == steps:
        return "all steps; features are rounded to float32"
    return f"steps[0]{f' to steps[{wide - 1}]' if wide > 1 else ''}; then values are cast to float32"


def _shown_parameters(step: dict[str, Any], verbose: bool) -> list[str]:
    """Return the parameters to show: with -v all, without -v those that differ from the default or were fitted."""
    from pydantic_core import to_jsonable_python

    from kafeat.registry import step_class

    fields = step_class(step["kind"]).model_fields
    if verbose:
        return list(fields)
    always = {"kernel", *step["fitted"]}
    return [
        name
        for name, one in fields.items()
        if name != "maps"
        and (name in always or one.is_required() or step[name] != to_jsonable_python(one.default))
    ]


def _show_step(i: int, step: dict[str, Any], verbose: bool) -> None:
    from kafeat.errors import counted

    maps = () if verbose else step.get("maps", ())
    shown = [f"{name}: {step[name]}" for name in _shown_parameters(step, verbose)]
    log.show(f"steps[{i}] {step['kind']}" + (f" ({', '.join(shown)})" if shown else ""))
    for part in maps:
        of = "" if part["columns"] is None else f" of {counted(len(part['columns']), 'column')}"
        log.show(f"    {' -> '.join(one['kind'] for one in part['steps'])}{of}")
    for name, value in step["fitted"].items():
        if verbose or name in step:
            log.show(f"    {name} = {value:.10g}")
    for name, array in step["arrays"].items() if verbose else ():
        shape = " x ".join(map(str, array["shape"]))
        log.show(f"    {name}: {shape} {array['dtype']}, {array['bytes']:,} bytes")
    if "importance" in step:
        log.show(f"    stretches most: {_heaviest(step['importance'])}")
        log.show("    (this is not the importance of columns, which evaluate --report measures)")
        log.show(
            f"    directions with 90 % of the weight: {step['directions']} of {step['arrays']['spectrum']['shape'][0]}"
        )


def _heaviest(importance: dict[str, float]) -> str:
    from kafeat.errors import first_of, quoted

    return first_of([f"{quoted(name)} {share:.1%}" for name, share in importance.items()], _MOST_SHOWN)


def _show_search(search: dict[str, Any], verbose: bool) -> None:
    from kafeat.jobs.fit.search import spell_value

    if "scores" in search:
        curve = zip(search["values"], search["scores"], strict=True)
        how = "by validation score"
    else:
        curve = zip(search["widths"], search["errors"], strict=True)
        how = f"for an error of {search['target_error']:g}"
    tried = [f"{spell_value(value)}: {figure:.4g}" for value, figure in curve]
    more = f" ({', '.join(tried)})" if verbose or len(tried) <= _MOST_SHOWN else f", of {len(tried)} values"
    log.show(f"{search['parameter']}: {spell_value(search['chosen'])} chosen {how}{more}")
