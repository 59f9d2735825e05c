"""`kafeat transform`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from kafeat.cli import options

if TYPE_CHECKING:
    from kafeat.jobs.transform import Input


@click.command(
    epilog="""\b
Examples:
  kafeat transform --model map.joblib sample_data/digits.parquet features.parquet --keep label
  kafeat transform --model map.joblib - - < sample_data/digits.csv > features.csv
"""
)
@options.model
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option("--keep", metavar="COLS", help="Columns to copy unchanged, separated by commas, or `all`.")
@options.jobs
@options.reading
@click.option("--output-format", type=options.FORMATS, help="Default: by the suffix; `-` is CSV.")
@click.option(
    "--layout", type=click.Choice(["columns", "list"]), default="columns", show_default=True,
    help="A column for each feature, or one column of lists.",
)  # fmt: skip
@click.option("--prefix", help="Of the output columns; default: f, for f0, f1, … (a list column: features).")
@click.option(
    "--compression", type=click.Choice(["none", "snappy", "lz4", "zstd", "gzip"]),
    help="Of Parquet (default: none) and CSV (gzip and zstd; default: by the suffix).",
)  # fmt: skip
@click.option(
    "--overwrite/--no-clobber", default=True, help="Replace an existing OUT (default), or refuse to."
)
@options.fsync
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
    layout: Literal["columns", "list"],
    prefix: str | None,
    compression: str | None,
    overwrite: bool,
    fsync: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Write the features of every row of IN to OUT (CSV, Parquet or NPY; - is a CSV on stdin or stdout).

    Rows stream through in chunks: memory stays bounded whatever the size of the file. OUT appears when it is
    complete, and not at all otherwise. Columns are matched by name; NPY by position.
    """
    from kafeat.cli.progress import progress
    from kafeat.cli.summary import summarize
    from kafeat.jobs.transform import Output, transform_file

    names = None if keep == "all" else [name for name in (keep or "").split(",") if name]
    writing = Output(output_format, names, layout, prefix, compression, overwrite, fsync)
    with progress("transform", quiet) as announce:
        done = transform_file(
            model, source, target, reading=reading, writing=writing, jobs=jobs, announce=announce
        )
    clipped = f"; {done.clipped:,} values beyond the range of the fit were clipped" if done.clipped else ""
    summarize(
        f"{target}: {done.rows:,} rows x {done.columns:,} features in {done.seconds:.2f} s{clipped}",
        quiet,
        verbose,
    )
