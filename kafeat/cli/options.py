"""Options that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

INPUTS = click.Choice(["csv", "parquet", "npy", "arrow", "libsvm", "npz"])
OUTPUTS = click.Choice(["csv", "parquet", "npy", "arrow", "jsonl"])

label = click.option("--label", metavar="COL", help="The label column, which is no feature.")
jobs = click.option(
    "--jobs",
    "-j",
    type=click.IntRange(min=1),
    metavar="N",
    help="Threads; default: all cores. Never changes the output.",
)
quiet = click.option("--quiet", "-q", is_flag=True, help="Say nothing but errors.")
output_dtype = click.option(
    "--output-dtype", type=click.Choice(["float16", "float32", "float64"]),
    help="Of the features; default: the map's. A value that it cannot hold is an error.",
)  # fmt: skip
fsync = click.option(
    "--fsync/--no-fsync", default=True,
    help="Flush the output to the disk before it takes its name (default), or leave that to the system.",
)  # fmt: skip


def _use_json(_context: click.Context, _option: click.Parameter, chosen: str) -> None:
    from kafeat.cli import log

    if chosen == "json":
        log.use_json()


log_format = click.option(
    "--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True, is_eager=True,
    expose_value=False, callback=_use_json, help="Of stderr: text, or a JSON object a line, for cron jobs.",
)  # fmt: skip
verbose = click.option("--verbose", "-v", is_flag=True, help="Say what was done, and on what machine.")


def model(command: F) -> F:
    """--model MODEL."""
    return click.option(
        "--model", required=True, metavar="MODEL", help="The map: a file made by `kafeat fit`."
    )(command)


def reading(command: F) -> F:
    """--input-format, --delimiter and --no-header, handed to the command as `reading`."""

    @wraps(command)
    def with_reading(
        *args: Any, input_format: str | None, delimiter: str, no_header: bool, **rest: Any
    ) -> Any:
        from kafeat.jobs.transform import Input

        return command(*args, reading=Input(input_format, delimiter, not no_header), **rest)

    for option in (
        click.option("--no-header", is_flag=True, help="The CSV has no header: its columns are c0, c1, …"),
        click.option("--delimiter", default=",", metavar="CHAR", help="Of a CSV input; default: a comma."),
        click.option(
            "--input-format", type=INPUTS, help="Default: by the suffix; `-` is CSV, or Arrow if it looks so."
        ),
    ):
        with_reading = option(with_reading)
    return with_reading  # type: ignore[return-value]
