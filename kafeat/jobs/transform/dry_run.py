"""Estimate the size and duration of a transform from its first chunks."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace

from kafeat.errors import UsageError
from kafeat.io.storage.atomic import check_place, naming, require_space
from kafeat.io.storage.base import Location, StandardStream
from kafeat.io.storage.formats import COUNTED, OUTPUTS, format_of
from kafeat.io.storage.local_path import LocalPath
from kafeat.io.storage.location import parse_location
from kafeat.io.writers.options import OutputOptions
from kafeat.jobs.transform.options import InputOptions, RowOptions
from kafeat.jobs.transform.overlaps import refuse_files
from kafeat.jobs.transform.transform import transform_file
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import load
from kafeat.runtime.environment import count_jobs

# Enough chunks that the start of the threads hardly counts.
_CHUNKS_A_THREAD = 4


@dataclass(frozen=True)
class DryRun:
    """Estimates for a transform.

    Attributes:
        rows: Rows of the output.
        exact_rows: True if `rows` is known, False if it is estimated.
        columns: Number of features, or of predicted numbers.
        bytes: Estimated size of the output.
        seconds: Estimated duration.
        free: Free bytes where the output would lie; None if unknown.
    """

    rows: int
    exact_rows: bool
    columns: int
    bytes: int
    seconds: float
    free: int | None = None


def dry_run_transform(
    model: str | FeatureMap,
    source: str | Location,
    target: str | Location,
    *,
    reading: InputOptions,
    writing: OutputOptions,
    rules: RowOptions,
    jobs: int | None = None,
) -> DryRun:
    """Transform the first chunks to a temporary file, and extrapolate to the whole input."""
    source, target = parse_location(source), parse_location(target)
    if source.kind() != "file":
        raise UsageError(
            f"{source}: expected a file for --dry-run, got a pipe or nothing: it could be read once only"
        )
    refuse_files({"the input": source, "the model": model}, {"an output": target, "--rejects": rules.rejects})
    if not isinstance(target, StandardStream):
        with naming(target):
            check_place(target, writing.overwrite)
    fm = load(model) if isinstance(model, str) else model
    expected = estimate(fm, source, target, reading, writing, rules, jobs)
    require_space(target, expected.bytes)
    return replace(expected, free=target.free_bytes())


def estimate(
    fm: FeatureMap,
    source: Location,
    target: Location,
    reading: InputOptions,
    writing: OutputOptions,
    rules: RowOptions,
    jobs: int | None,
) -> DryRun:
    """Return the estimate for one file, without a look at the place of the output."""
    format = format_of(target, writing.format, OUTPUTS)
    ending = "".join(target.name.partition(".")[1:]) or f".{format}"
    chunks = _CHUNKS_A_THREAD * count_jobs(jobs)
    with tempfile.TemporaryDirectory(prefix="kafeat-") as folder:
        sample = os.path.join(folder, f"sample{ending}")
        done = transform_file(
            fm,
            source,
            LocalPath(sample),
            reading=reading,
            writing=replace(writing, format=format, fsync=False),
            rules=replace(rules, rejects=None, max_drift=None, drift_test=None, max_bad_rows=None),
            jobs=jobs,
            first_chunks=chunks,
        )
        written = os.path.getsize(sample)
    known = format_of(source, reading.input_format) in COUNTED
    whole = done.rows_read < chunks * fm.chunk_rows
    rows = done.rows_read if whole or done.rows_in_all is None else done.rows_in_all
    times = rows / max(1, done.rows_read)
    if done.rows < done.rows_read:  # some rows are dropped, and nobody knows how many of the others
        rows, whole, known = round(done.rows * times), False, False
    return DryRun(rows, whole or known, done.columns, round(written * times), done.seconds * times)
