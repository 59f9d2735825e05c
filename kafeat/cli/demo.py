"""`kafeat demo`."""

from __future__ import annotations

import click

from kafeat.cli import options
from kafeat.cli.command import command


@command(
    "Write sample data and configs to try kafeat with.",
    """Example:
  kafeat demo try
  cd try
  kafeat tune sample_data/digits.parquet best.yaml --label label \\
      --columns 256 --time 1m
""",
)
@click.argument("folder", metavar="[DIR]", type=options.PAGES, default=".")
def demo(folder: str) -> None:
    """Write sample data and configs to DIR (default: the current folder), so that the examples of the docs run there.

    Files with the same content stay untouched, and a file with other content is never replaced.
    """
    import os
    import shlex

    from kafeat.jobs.demo import write_demo

    folder = folder or "."
    files = write_demo(folder)
    click.echo(
        f"{len(files)} files in {os.path.join(folder, 'sample_data')} and {os.path.join(folder, 'configs')}"
    )
    place = "" if os.path.samefile(folder, ".") else f"cd {shlex.quote(folder)} && "
    click.echo(
        f"next: {place}kafeat tune sample_data/digits.parquet best.yaml --label label --columns 256 --time 1m"
    )
