"""`kafeat verify`."""

from __future__ import annotations

from typing import Any

import click

from kafeat.cli import log, options
from kafeat.cli.command import GroupedCommand
from kafeat.cli.overlaps import located
from kafeat.io.options import InputOptions


@click.command(
    cls=GroupedCommand,
    short_help="Check that an output holds the features of an input.",
    epilog="""\b
Examples:
  kafeat transform --model map.joblib sample_data/digits.parquet \\
      features.parquet --stats features.json
  kafeat verify --model map.joblib sample_data/digits.parquet \\
      features.parquet --stats features.json
""",
)
@options.model
@click.argument("source", type=options.DATA, metavar="IN")
@click.argument("target", type=options.DATA, metavar="OUT")
@click.option(
    "--stats",
    type=options.FILE,
    metavar="FILE.json",
    help="Also compare the hashes in the file that `transform --stats` wrote.",
)
@click.option(
    "--rows",
    type=options.number(1),
    default=100_000,
    show_default=True,
    help="Approximate number of rows to recompute.",
)
@click.option(
    "--seed", type=options.number(0), default=0, show_default=True, help="Seed of the choice of rows."
)
@click.option(
    "--on-bad-rows", type=click.Choice(["error", "drop", "null"]), default="error", show_default=True,
    help="Value of this option in the transform. With drop, every row is recomputed.",
)  # fmt: skip
@options.output_dtype
@click.option(
    "--unit-variance",
    is_flag=True,
    help="Expect features of `transform --unit-variance`; Parquet, Arrow and the stats state it themselves.",
)
@click.option(
    "--label",
    type=options.COLUMN,
    metavar="COL",
    allow_from_autoenv=False,
    help="Column of IN that `transform --keep` copied as the label of LIBSVM; the stats state it themselves.",
)
@options.jobs
@options.reading
@click.option("--output-format", type=options.INPUTS, help="Format of OUT (default: by the suffix).")
@options.log_format
@options.quiet
@options.verbose
def verify(
    model: str,
    source: str,
    target: str,
    stats: str | None,
    output_format: str | None,
    quiet: bool,
    verbose: bool,
    **values: Any,
) -> None:
    """Verify that OUT holds the features of IN under MODEL: count its rows and recompute random chunks.

    Copied columns are compared with the same rows of IN. The exit code is 6 if OUT is wrong. Features are equal to
    the last bit on the same type of processor with the same library versions. Elsewhere rounding may differ; the
    largest difference is shown.
    """
    from kafeat.jobs.verify.verify import verify_file

    places = map(located, (model, source, target))
    result = verify_file(
        *places, reading_output=InputOptions(input_format=output_format),
        stats=None if stats is None else located(stats), **values,
    )  # fmt: skip
    bits = (
        "equal to the last bit"
        if not result.largest_difference
        else f"equal but for rounding ({result.largest_difference:.1e})"
    )
    hashes = f"; {', '.join(result.hashes)} have the hashes of {stats}" if result.hashes else ""
    log.summarize(
        f"{target}: {result.rows:,} rows, {result.rows_compared:,} of them made again: {bits}{hashes}",
        quiet,
        verbose,
    )
