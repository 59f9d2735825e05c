"""`kafeat transform`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from kafeat.cli import log, options
from kafeat.cli.command import GroupedCommand
from kafeat.cli.options import DatasetOptions, scale_options
from kafeat.errors import UsageError, counted

if TYPE_CHECKING:
    from kafeat.io.readers.dataset import InputOptions
    from kafeat.io.storage.base import Location
    from kafeat.jobs.dataset.journal import DatasetResult
    from kafeat.jobs.dataset.request import DatasetRequest
    from kafeat.jobs.transform.dry_run import DryRun
    from kafeat.jobs.transform.options import TransformResult


@click.command(
    cls=GroupedCommand,
    short_help="Write the features of a file or of many files.",
    epilog="""\b
Examples:
  kafeat transform --model map.joblib sample_data/digits.parquet \\
      features.parquet --keep label
  kafeat transform --model map.joblib - - < sample_data/digits.csv \\
      > features.csv
  kafeat transform --model map.joblib sample_data/digits.parquet features \\
      --rows-per-file 8192 --resume
  kafeat transform --model map.joblib sample_data/digits.parquet - \\
      --output-format arrow > features.arrows
""",
)
@options.model
@click.argument("source", type=options.DATA, metavar="IN")
@click.argument("target", type=options.OUTPUT, metavar="OUT")
@click.option(
    "--features",
    is_flag=True,
    help="Write the features of a model that ends in a predictor, and not its predictions.",
)
@click.option(
    "--unit-variance",
    is_flag=True,
    help="Multiply the features by one factor, so that their mean variance is 1 and default penalties fit.",
)
@click.option(
    "--keep", metavar="COLS", help="Input columns to copy to the output, separated by commas, or `all`."
)
@options.jobs
@options.reading
@click.option(
    "--output-format",
    type=options.OUTPUTS,
    help="Format of the output (default: by the suffix; stdout is CSV).",
)
@click.option(
    "--layout", type=click.Choice(["columns", "list"]), default="columns", show_default=True,
    help="One column per feature, or one column of lists.",
)  # fmt: skip
@click.option(
    "--prefix",
    help="Prefix of the output column names (default: f, giving f0, f1, …; with lists: features; with "
    "predictions: none).",
)
@click.option(
    "--compression", type=click.Choice(["none", "snappy", "lz4", "zstd", "gzip"]),
    help="Compression of Parquet, Arrow (lz4 or zstd), CSV and JSON lines (gzip or zstd; default: by the suffix).",
)  # fmt: skip
@options.output_dtype
@click.option(
    "--on-bad-rows", type=click.Choice(["error", "drop", "null"]), default="error", show_default=True,
    help="If a row cannot be transformed: fail, omit the row, or write null features (NaN in NPY).",
)  # fmt: skip
@click.option(
    "--rejects",
    type=options.OUTPUT,
    metavar="FILE.csv",
    help="Write the bad rows and the reason for each.",
)
@click.option(
    "--max-bad-rows",
    metavar="N|P%",
    help="Write nothing (exit code 3) if more than N rows, or P percent of the rows, of an input are bad.",
)
@click.option(
    "--max-drift", type=click.FloatRange(0.0, 1.0), callback=options.finite, metavar="SHARE",
    help="Write nothing (exit code 6) if a larger share of a column lies outside the range in the fit sample.",
)  # fmt: skip
@click.option(
    "--drift-test", type=click.FloatRange(0.0, 1.0), callback=options.finite, metavar="P",
    help="Write nothing (exit code 6) if the features' mean differs from that of the fit with a p-value below P.",
)  # fmt: skip
@click.option(
    "--stats",
    "stats_file",
    type=options.OUTPUT,
    metavar="FILE.json",
    help="Write statistics of the run: rows, hashes, drift, versions.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    allow_from_autoenv=False,
    help="Estimate parts, rows, bytes and seconds, and write nothing.",
)
@click.option(
    "--device", metavar="NAME",
    help="Compute on a device by ONNX Runtime: cpu, cuda, rocm, coreml, … (default: without it, on the processor).",
)  # fmt: skip
@click.option(
    "--overwrite/--no-clobber", default=None,
    help="Replace an existing OUT (default for a file), or fail if it exists (default for a folder with files).",
)  # fmt: skip
@scale_options
@options.fsync
@options.log_format
@options.quiet
@options.verbose
def transform(
    model: str,
    source: str,
    target: str,
    features: bool,
    unit_variance: bool,
    keep: str | None,
    jobs: int | None,
    reading: InputOptions,
    output_format: str | None,
    layout: Literal["columns", "list"],
    prefix: str | None,
    compression: str | None,
    output_dtype: Literal["float16", "float32", "float64"] | None,
    on_bad_rows: Literal["error", "drop", "null"],
    rejects: str | None,
    max_bad_rows: str | None,
    max_drift: float | None,
    drift_test: float | None,
    stats_file: str | None,
    dry_run: bool,
    device: str | None,
    overwrite: bool | None,
    scale: DatasetOptions,
    fsync: bool,
    quiet: bool,
    verbose: bool,
    needs_predictor: bool = False,
) -> None:
    """Write the features of every row of IN to OUT, or the predictions of a model that ends in a predictor.

    `-` is stdin or stdout, in CSV or Arrow.

    Rows stream through in chunks, so memory stays bounded for files of any size. OUT appears only when it is complete.
    Columns are matched by name, in NPY by position.

    If IN is a folder, a quoted glob, or a list of files (a .txt, or the _kafeat.json of a run), each of its files is
    a part. OUT is then a folder with one file of the same name for each part.
    """
    from kafeat.io.storage.location import parse_location
    from kafeat.io.writers.base import OutputOptions
    from kafeat.jobs.dataset.request import DatasetRequest
    from kafeat.jobs.transform.options import BadRowsLimit, RowOptions

    names = None if keep == "all" else [name for name in (keep or "").split(",") if name]
    writing = OutputOptions(
        output_format, names, layout, prefix, compression, overwrite is not False, fsync, output_dtype,
        features=features, unit_variance=unit_variance,
    )  # fmt: skip
    place = parse_location(source)
    rules = RowOptions(
        on_bad_rows, _location(rejects), stats_file is not None, max_drift, drift_test,
        None if max_bad_rows is None else BadRowsLimit.parse(max_bad_rows),
    )  # fmt: skip
    over_parts = scale.over_parts(place)
    request = DatasetRequest(
        model, place, parse_location(target), reading, writing, rules, scale.engine(jobs), scale.rows_per_file,
        scale.resume, bool(overwrite), _location(stats_file),
    )  # fmt: skip
    if needs_predictor:
        request.map.needed_predictor()
    if device is not None and (over_parts or dry_run):
        got = "many files, or --rows-per-file" if over_parts else "--dry-run"
        raise UsageError(f"--device: expected one input file to transform, got {got}")
    if dry_run:
        _show_dry_run(request, over_parts)
    elif over_parts:
        _run_parts(request, quiet, verbose)
    else:
        _run_file(request, device, quiet, verbose)


run_transform = transform.callback
"""The function of the command, before environment variables and checks are added: `predict` calls it, too."""


def _location(name: str | None) -> Location | None:
    from kafeat.io.storage.location import parse_location

    return None if name is None else parse_location(name)


def _run_file(request: DatasetRequest, device: str | None, quiet: bool, verbose: bool) -> None:
    from kafeat.cli.progress import progress
    from kafeat.jobs.dataset.api import run_file

    with progress("transform", quiet) as announce:
        done = run_file(request, device, announce)
    _summarize(request, f"{request.target}: {counted(done.rows, 'row')}", done, quiet, verbose)


def _run_parts(request: DatasetRequest, quiet: bool, verbose: bool) -> None:
    from kafeat.cli.progress import progress
    from kafeat.errors import PartsError
    from kafeat.jobs.dataset.api import run_parts

    target = request.target
    with progress("transform", quiet, "parts") as announce:
        run = run_parts(request, announce)
    kept = f" ({run.kept:,} of them kept)" if run.kept else ""
    made = f"{target}: {counted(run.parts, 'part')}{kept}, {counted(run.rows, 'row')}"
    _summarize(request, made, run, quiet, verbose)
    if not quiet:
        _warn(target, run.all_bad, "has bad rows only", "have bad rows only")
        _warn(
            target,
            run.lost,
            "of an earlier run was removed, as its part failed",
            "of an earlier run were removed, as their parts failed",
        )
        _warn(
            target, run.removed, "was removed, as its input is gone", "were removed, as their inputs are gone"
        )
        _warn(
            target,
            run.unknown_files,
            "is not a part, but is read with them",
            "are not parts, but are read with them",
        )
    if run.failed:
        raise PartsError(str(target), run.parts, run.failed)


def _warn(target: Location, names: tuple[str, ...], one: str, many: str) -> None:
    from kafeat.io.columns.fields import shown

    if names:
        files, what = counted(len(names), "file"), one if len(names) == 1 else many
        listed = ", ".join([*map(shown, names[:3]), *(["…"] if len(names) > 3 else [])])
        log.warn(f"{target}: {files} {what}: {listed}")


def _summarize(
    request: DatasetRequest, what: str, done: TransformResult | DatasetResult, quiet: bool, verbose: bool
) -> None:
    """Write the summary, and a warning that counts the bad rows, which are lost or null in the output."""
    clipped = (
        f"; {counted(done.clipped, 'value')} beyond the range of the fit were clipped" if done.clipped else ""
    )
    log.summarize(f"{what} x {done.columns:,} {done.what} in {done.seconds:.2f} s{clipped}", quiet, verbose)
    rule = request.rules.on_bad_rows
    if done.bad_rows and not quiet:
        log.warn(
            f"{request.source}: {done.bad_rows:,} of {counted(done.rows_read, 'row')} "
            f"{'left out' if rule == 'drop' else 'made null'} (--on-bad-rows {rule}); the first is "
            f"{done.first_bad_row}"
        )


def _show_dry_run(request: DatasetRequest, over_parts: bool) -> None:
    from kafeat.jobs.dataset.dry_run import dry_run_parts
    from kafeat.jobs.transform.dry_run import dry_run_transform

    if not over_parts:
        _show_estimate(dry_run_transform(
            request.map, request.source, request.target, reading=request.reading, writing=request.writing,
            rules=request.rules, jobs=request.engine.jobs,
        ))  # fmt: skip
        return
    estimate = dry_run_parts(request)
    kept = f" ({estimate.kept:,} more are kept)" if estimate.kept else ""
    click.echo(f"parts:   {'' if estimate.exact_parts else 'about '}{estimate.parts:,}{kept}")
    _show_estimate(
        estimate.estimate, "" if request.engine.in_this_process else " with the threads of this machine"
    )


def _show_estimate(plan: DryRun, by: str = "") -> None:
    from kafeat.io.storage.atomic import spell_bytes

    about = "" if plan.exact_rows else "about "
    free = "" if plan.free is None else f" ({spell_bytes(plan.free)} free)"
    click.echo(f"rows:    {about}{plan.rows:,}")
    click.echo(f"columns: {plan.columns:,}")
    click.echo(f"bytes:   about {spell_bytes(plan.bytes)}{free}")
    click.echo(f"time:    about {plan.seconds:.1f} s{by}")
