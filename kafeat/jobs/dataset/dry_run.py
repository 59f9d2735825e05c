"""Estimate the size and duration of a transform from its first chunks, or from those of its largest part."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kafeat.errors import UsageError
from kafeat.io.data_set import Part
from kafeat.io.formats import format_of
from kafeat.io.storage.atomic import check_place, naming, require_space
from kafeat.io.storage.base import Location, StandardStream
from kafeat.io.storage.local_path import LocalPath
from kafeat.jobs.dataset.parts import first_text_part, plan_parts
from kafeat.jobs.dataset.request import DatasetPlan, DatasetRequest
from kafeat.jobs.transform.outputs import outputs_of
from kafeat.jobs.transform.transform import transform_file
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
        parts: Number of parts that the run would write; None for one file.
        exact_parts: True if `parts` is known, False if it is estimated.
        kept: Number of parts of the previous run that would be kept. The other figures are without them.
    """

    rows: int
    exact_rows: bool
    columns: int
    bytes: int
    seconds: float
    free: int | None = None
    parts: int | None = None
    exact_parts: bool = True
    kept: int = 0


def dry_run_file(request: DatasetRequest) -> DryRun:
    """Transform the first chunks to a temporary file, and extrapolate to the whole input."""
    source, target = request.source, request.target
    if source.kind() != "file":
        raise UsageError(
            f"{source}: expected a file for --dry-run, got a pipe or nothing: it could be read once only"
        )
    request.refuse_overlaps()
    if not isinstance(target, StandardStream):
        with naming(target):
            check_place(target, request.writing.overwrite)
    expected = _estimate(request, source, target)
    require_space(target, expected.bytes)
    return replace(expected, free=target.free_bytes())


def dry_run_parts(request: DatasetRequest) -> DryRun:
    """Refuse what the run itself would refuse, and extrapolate from the largest part to all of them."""
    request.check()
    if isinstance(request.source, StandardStream):
        raise UsageError("-: expected files for --dry-run, got standard input: it could be read once only")
    fm, plan = request.shared_map.map, DatasetPlan.of(request, plan_parts(request))
    kept = len(plan.up_to_date)
    parts = [part for part in plan.parts or () if part.name not in plan.up_to_date]
    if not parts and (kept or plan.parts is not None):
        return DryRun(0, True, outputs_of(fm, request.writing).width, 0, 0.0, parts=0, kept=kept)
    largest = max(parts, key=lambda part: part.bytes, default=None) or first_text_part(request)
    whole = _estimate(request, largest.location, LocalPath(largest.name))
    if parts:
        whole = _for_all_parts(whole, largest, parts)
    # A missing folder has the free space of its parent, which the path of a file in it leads to.
    place = request.target if request.target.kind() is None else request.target.join("part")
    require_space(place, whole.bytes)
    height = (request.rows_per_file or 0) // fm.chunk_rows * fm.chunk_rows
    return replace(
        whole,
        free=place.free_bytes(),
        parts=len(parts) or max(1, -(-whole.rows // height)),
        exact_parts=bool(parts) or whole.exact_rows,
        kept=kept,
    )


def _estimate(request: DatasetRequest, source: Location, target: Location) -> DryRun:
    """Return the estimate for one file, without a look at the place of the output."""
    fm, rules, jobs = request.map, request.rules, request.engine.jobs
    format = format_of(target, request.writing.format).name
    ending = "".join(target.name.partition(".")[1:]) or f".{format}"
    chunks = _CHUNKS_A_THREAD * count_jobs(jobs)
    with tempfile.TemporaryDirectory(prefix="kafeat-") as folder:
        sample = os.path.join(folder, f"sample{ending}")
        done = transform_file(
            fm,
            source,
            LocalPath(sample),
            reading=request.reading,
            writing=replace(request.writing, format=format, fsync=False),
            rules=replace(rules, rejects=None, max_drift=None, drift_test=None, max_bad_rows=None),
            jobs=jobs,
            first_chunks=chunks,
        )
        written = os.path.getsize(sample)
    known = format_of(source, request.reading.input_format, "--input-format").counted
    whole = done.rows_read < chunks * fm.chunk_rows
    rows = done.rows_read if whole or done.rows_in_all is None else done.rows_in_all
    times = rows / max(1, done.rows_read)
    if done.rows < done.rows_read:  # some rows are dropped, and nobody knows how many of the others
        rows, whole, known = round(done.rows * times), False, False
    return DryRun(rows, whole or known, done.columns, round(written * times), done.seconds * times)


def _for_all_parts(one: DryRun, largest: Part, parts: Sequence[Part]) -> DryRun:
    """Extrapolate from the file of the largest part to all parts."""
    ranges = [part.only for part in parts if part.only is not None]
    if ranges:
        rows = sum(end - first for first, end in ranges)
        times, exact = rows / max(1, one.rows), one.exact_rows
    else:
        times = sum(part.bytes for part in parts) / max(1, largest.bytes)
        rows, exact = round(one.rows * times), one.exact_rows and len(parts) == 1
    return replace(
        one, rows=rows, exact_rows=exact, bytes=round(one.bytes * times), seconds=one.seconds * times
    )
