"""`kafeat transform`."""

from __future__ import annotations

import gc
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kafeat.cli import log, options
from kafeat.cli.command import command
from kafeat.errors import counted
from kafeat.jobs.transform.options import FOR_PARTS, TransformOptions

if TYPE_CHECKING:
    from kafeat.io.storage.base import Location
    from kafeat.jobs.dataset.journal import DatasetResult
    from kafeat.jobs.dataset.request import DatasetRequest
    from kafeat.jobs.transform.result import TransformResult


@command(
    "Write the features of a file or of many files.",
    """Examples:
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
@options.made_from(TransformOptions)
@options.messages
def transform(
    source: str,
    target: str,
    needs_predictor: bool = False,
    **values: Any,
) -> None:
    """Write the features of every row of IN to OUT, or the predictions of a model that ends in a predictor.

    `-` is stdin or stdout, in CSV or Arrow.

    Rows stream through in chunks, so memory stays bounded for files of any size. OUT appears only when it is complete.
    Columns are matched by name, in NPY by position.

    If IN is a folder, a quoted glob, or a list of files (a .txt, or the _kafeat.json of a run), each of its files is
    a part. OUT is then a folder with one file of the same name for each part.
    """
    from kafeat.jobs.dataset.request import DatasetRequest

    if not gc.isenabled():  # __main__.py disables it
        gc.freeze()
        gc.enable()
    request = DatasetRequest.of(TransformOptions(source, target, **values), needs_predictor)
    _run(request, [name.replace("_", "-") for name in options.given(FOR_PARTS)])


run_transform: Any = transform.callback
"""The command without its checks of variables and overlaps. `predict` calls it, after its own checks."""


def _run(request: DatasetRequest, idle: list[str]) -> None:
    from kafeat.cli.progress import progress
    from kafeat.errors import PartsError
    from kafeat.jobs.dataset.api import run
    from kafeat.jobs.dataset.journal import DatasetResult

    target = request.target

    done = run(request, idle, "--", partial(progress, "transform"), warn=log.warn)
    if not isinstance(done, DatasetResult):
        _summarize(request, f"{target}: {counted(done.rows, 'row')}", done, done.rows_read)
        if not done.rows_read:
            log.warn(f"{target}: expected rows to write, got none: {request.source} has none")
        return
    kept = f" ({done.kept:,} of them kept)" if done.kept else ""
    made = f"{target}: {counted(done.parts, 'part')}{kept}, {counted(done.rows, 'row')}"
    _summarize(request, made, done, done.rows_made)
    for list_of_files, (one, many) in _SAID_OF.items():
        names = getattr(done, list_of_files)
        if names:
            _warn(target, names, one if len(names) == 1 else many)
    if done.failed:
        raise PartsError(str(target), done.parts, done.failed, done.stopped)


_SAID_OF = {
    "made_again": ("was made again, as a worker was lost", "were made again, as a worker was lost"),
    "without_good": ("has no good row", "have no good row"),
    "lost": (
        "of an earlier run was removed, as its part failed",
        "of an earlier run were removed, as their parts failed",
    ),
    "removed": ("was removed, as its input is gone", "were removed, as their inputs are gone"),
    "unknown_files": ("is not a part, but will be read as one", "are not parts, but will be read as such"),
}
"""For each list of files in a `DatasetResult`, how a warning ends if it is about one file, and about several files."""


def _warn(target: Location, names: tuple[str, ...], what: str) -> None:
    from kafeat.io.columns.fields import shown

    listed = ", ".join([*map(shown, names[:3]), *(["…"] if len(names) > 3 else [])])
    log.warn(f"{target}: {counted(len(names), 'file')} {what}: {listed}")


def _summarize(
    request: DatasetRequest, what: str, done: TransformResult | DatasetResult, rows_made: int
) -> None:
    """Write the summary, and a warning with the number of bad rows, which are missing or null in the output.

    `rows_made` is the number of rows that this run has read. Rows of parts from an earlier run do not count.
    """
    values = counted(done.clipped, "value")
    clipped = f"; {values} outside the range of the training rows were clipped" if done.clipped else ""
    log.summarize(
        f"{what} x {done.columns:,} {done.what} in {done.seconds:.2f} s{clipped}",
        rows=done.rows_read, rows_per_second=round(rows_made / max(done.seconds, 1e-3), 3),
        bytes=done.bytes,
    )  # fmt: skip
    rule = request.rules.on_bad_rows
    if done.bad_rows:
        log.warn(
            f"{request.source}: {done.bad_rows:,} of {counted(done.rows_read, 'row')} "
            f"{'left out' if rule == 'drop' else 'made null'} (--on-bad-rows {rule}); the first is "
            f"{done.first_bad_row}"
        )
