"""`kafeat verify`."""

from __future__ import annotations

from typing import Any

import click

from kafeat.cli import log, options
from kafeat.cli.command import command
from kafeat.cli.overlaps import located
from kafeat.io.options import InputOptions
from kafeat.jobs.options import VerifyOptions


@command(
    "Check that an output holds the features of an input.",
    """Examples:
  kafeat transform --model map.joblib sample_data/digits.parquet \\
      features.parquet --stats features.json
  kafeat verify --model map.joblib sample_data/digits.parquet \\
      features.parquet --stats features.json
""",
)
@options.model
@click.argument("source", type=options.DATA, metavar="IN")
@click.argument("target", type=options.DATA, metavar="OUT")
@options.made_from(VerifyOptions)
@options.reading
@options.option(
    "--output-format", group="Output", type=options.INPUTS, help="Format of OUT (default: by the suffix)."
)
@options.messages
def verify(
    model: str,
    source: str,
    target: str,
    stats: str | None,
    output_format: str | None,
    **values: Any,
) -> None:
    """Verify that OUT holds the features of IN under MODEL: count its rows and recompute some of them.

    Copied columns are compared with the same rows of IN, and the parts of a folder with the hashes in its
    manifest. The exit code is 6 if OUT is wrong.
    """
    from kafeat.jobs.verify.verify import verify_file

    values["stats"] = None if stats is None else located(stats)
    reading_output = InputOptions(input_format=output_format)
    result = verify_file(*map(located, (model, source, target)), reading_output=reading_output, **values)
    bits = (
        "equal to the last bit"
        if not result.largest_difference
        else f"equal but for rounding ({result.largest_difference:.1e})"
    )
    hashes = f"; {', '.join(result.hashes)} with the SHA-256 on record" if result.hashes else ""
    log.summarize(
        f"{target}: {result.rows:,} rows, {result.rows_compared:,} of them made again: {bits}{hashes}",
        rows=result.rows,
    )
