"""`kafeat transform`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from kafeat.cli import options

if TYPE_CHECKING:
    from kafeat.jobs.transform import Input, Output, Rules


@click.command(
    epilog="""\b
Examples:
  kafeat transform --model map.joblib sample_data/digits.parquet features.parquet --keep label
  kafeat transform --model map.joblib - - < sample_data/digits.csv > features.csv
  kafeat transform --model map.joblib sample_data/digits.parquet - --output-format arrow > features.arrows
"""
)
@options.model
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option("--keep", metavar="COLS", help="Columns to copy unchanged, separated by commas, or `all`.")
@options.jobs
@options.reading
@click.option("--output-format", type=options.OUTPUTS, help="Default: by the suffix; `-` is CSV.")
@click.option(
    "--layout", type=click.Choice(["columns", "list", "tensor"]), default="columns", show_default=True,
    help="A column for each feature, one column of lists, or of Arrow's tensors of fixed shape.",
)  # fmt: skip
@click.option("--prefix", help="Of the output columns; default: f, for f0, f1, … (a list column: features).")
@click.option(
    "--compression", type=click.Choice(["none", "snappy", "lz4", "zstd", "gzip"]),
    help="Of Parquet, Arrow (lz4, zstd; default: none), CSV and JSON lines (gzip, zstd; default: by the suffix).",
)  # fmt: skip
@options.output_dtype
@click.option(
    "--on-bad-rows", type=click.Choice(["error", "drop", "null"]), default="error", show_default=True,
    help="Rows that cannot be transformed: fail, leave them out, or write null features (NaN in NPY).",
)  # fmt: skip
@click.option("--rejects", metavar="FILE.csv", help="The bad rows, and what is wrong with each of them.")
@click.option(
    "--max-drift", type=click.FloatRange(0.0, 1.0), metavar="SHARE",
    help="Write nothing (exit code 6) if more of a column lies outside of the range that the fit saw.",
)  # fmt: skip
@click.option(
    "--stats", "stats_file", metavar="FILE.json", help="What was done: rows, hashes, drift, versions."
)
@click.option("--dry-run", is_flag=True, help="Say rows, bytes and seconds, and write nothing.")
@click.option(
    "--overwrite/--no-clobber", default=True, help="Replace an existing OUT (default), or refuse to."
)
@options.fsync
@options.log_format
@options.quiet
@options.verbose
def transform(
    model: str,
    source: str,
    target: str,
    keep: str | None,
    jobs: int | None,
    reading: Input,
    output_format: str | None,
    layout: Literal["columns", "list", "tensor"],
    prefix: str | None,
    compression: str | None,
    output_dtype: Literal["float16", "float32", "float64"] | None,
    on_bad_rows: Literal["error", "drop", "null"],
    rejects: str | None,
    max_drift: float | None,
    stats_file: str | None,
    dry_run: bool,
    overwrite: bool,
    fsync: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Write the features of every row of IN to OUT; - is stdin or stdout: CSV, or Arrow.

    Rows stream through in chunks: memory stays bounded whatever the size of the file. OUT appears when it is
    complete, and not at all otherwise. Columns are matched by name; NPY by position.
    """
    from kafeat.cli.progress import progress
    from kafeat.cli.summary import summarize
    from kafeat.feature_map import load
    from kafeat.jobs.stats import open_stats, stats
    from kafeat.jobs.transform import Output, Rules, refuse_same, transform_file

    names = None if keep == "all" else [name for name in (keep or "").split(",") if name]
    writing = Output(output_format, names, layout, prefix, compression, overwrite, fsync, output_dtype)
    rules = Rules(on_bad_rows, rejects, stats_file is not None, max_drift)
    if dry_run:
        _say_plan(model, source, target, reading, writing, rules, jobs)
        return
    refuse_same(
        {"input": source, "model": model}, {"--stats": stats_file, "--rejects": rejects, "OUT": target}
    )
    fm = load(model)
    with open_stats(stats_file, fsync) as write_stats, progress("transform", quiet) as announce:
        done = transform_file(
            fm, source, target, reading=reading, writing=writing, rules=rules, jobs=jobs, announce=announce,
            hashed=stats_file is not None,
        )  # fmt: skip
        if stats_file is not None:
            write_stats(stats(done, fm, model, source, target, writing, rules))
    clipped = f"; {done.clipped:,} values beyond the range of the fit were clipped" if done.clipped else ""
    what = {"drop": "left out", "null": "null"}.get(on_bad_rows)
    bad = f"; {done.bad_rows:,} bad rows were {what}" if done.bad_rows else ""
    summarize(
        f"{target}: {done.rows:,} rows x {done.columns:,} features in {done.seconds:.2f} s{bad}{clipped}",
        quiet,
        verbose,
    )


def _say_plan(
    model: str, source: str, target: str, reading: Input, writing: Output, rules: Rules, jobs: int | None
) -> None:
    from kafeat.io.space import spell_bytes
    from kafeat.jobs.plan import plan_transform

    plan = plan_transform(model, source, target, reading=reading, writing=writing, rules=rules, jobs=jobs)
    about = "" if plan.exact_rows else "about "
    free = "" if plan.free is None else f" ({spell_bytes(plan.free)} free)"
    click.echo(f"rows:    {about}{plan.rows:,}")
    click.echo(f"columns: {plan.columns:,}")
    click.echo(f"bytes:   about {spell_bytes(plan.bytes)}{free}")
    click.echo(f"time:    about {plan.seconds:.1f} s")
