"""`kafeat verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from kafeat.cli import options

if TYPE_CHECKING:
    from kafeat.jobs.transform.options import InputOptions


@click.command(
    epilog="""\b
Examples:
  kafeat transform --model map.joblib sample_data/digits.parquet features.parquet --stats features.json
  kafeat verify --model map.joblib sample_data/digits.parquet features.parquet --stats features.json
"""
)
@options.model
@click.argument("source", type=options.DATA, metavar="IN")
@click.argument("target", type=options.DATA, metavar="OUT")
@click.option(
    "--stats",
    type=options.FILE,
    metavar="FILE.json",
    help="Compare the hashes that `transform --stats` told, too.",
)
@click.option(
    "--rows", type=click.IntRange(min=1), default=100_000, show_default=True, help="To make again, about."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Which rows those are."
)
@click.option(
    "--on-bad-rows", type=click.Choice(["error", "drop", "null"]), default="error", show_default=True,
    help="What the transform was told. With drop, every row is made again.",
)  # fmt: skip
@options.output_dtype
@options.jobs
@options.reading
@click.option("--output-format", type=options.INPUTS, help="Of OUT; default: by the suffix.")
@options.log_format
@options.quiet
@options.verbose
def verify(
    model: str,
    source: str,
    target: str,
    stats: str | None,
    rows: int,
    seed: int,
    on_bad_rows: Literal["error", "drop", "null"],
    output_dtype: str | None,
    jobs: int | None,
    reading: InputOptions,
    output_format: str | None,
    quiet: bool,
    verbose: bool,
) -> None:
    """Tell whether OUT is what MODEL makes of IN: count its rows, and make random chunks of them again.

    Kept columns are compared with those of IN in the same rows.
    It ends with code 6 where OUT is not right. Features equal to the last bit are what the same kind of processor
    and the same library versions give; on others, rounding may differ, and is told.
    """
    from kafeat.cli.summary import summarize
    from kafeat.jobs.transform.options import InputOptions
    from kafeat.jobs.verify.verify import verify_file

    found = verify_file(
        model, source, target, reading=reading, reading_output=InputOptions(output_format), rows=rows, seed=seed,
        stats=stats, on_bad_rows=on_bad_rows, output_dtype=output_dtype, jobs=jobs,
    )  # fmt: skip
    bits = (
        "equal to the last bit"
        if not found.largest_difference
        else f"equal but for rounding ({found.largest_difference:.1e})"
    )
    hashes = f"; {', '.join(found.hashes)} have the hashes of {stats}" if found.hashes else ""
    summarize(
        f"{target}: {found.rows:,} rows, {found.rows_compared:,} of them made again: {bits}{hashes}",
        quiet,
        verbose,
    )
