"""Estimate the output of a transform of a data set from the first chunks of its largest part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kafeat.errors import UsageError
from kafeat.io.data_set import Part
from kafeat.io.formats import format_of
from kafeat.io.storage.atomic import require_space
from kafeat.io.storage.base import StandardStream
from kafeat.io.storage.local_path import LocalPath
from kafeat.jobs.dataset.request import DatasetPlan, DatasetRequest, name_of_part, plan_parts
from kafeat.jobs.transform.dry_run import DryRun, estimate
from kafeat.jobs.transform.outputs import outputs_of


@dataclass(frozen=True)
class DatasetDryRun:
    """Estimates for a run over a data set.

    Attributes:
        parts: Number of parts that the run would write.
        exact_parts: True if `parts` is known, False if it is estimated.
        kept: Number of parts of the previous run that would be kept.
        estimate: Rows, bytes and seconds of the parts that would be written.
    """

    parts: int
    exact_parts: bool
    kept: int
    estimate: DryRun


def dry_run_parts(request: DatasetRequest) -> DatasetDryRun:
    """Refuse what the run itself would refuse, and extrapolate from the largest part to all of them."""
    request.check()
    if isinstance(request.source, StandardStream):
        raise UsageError("-: expected files for --dry-run, got standard input: it could be read once only")
    map = request.shared_map
    plan, fm = DatasetPlan.of(request, map, plan_parts(request, map.map)), map.map
    kept = len(plan.up_to_date)
    parts = [part for part in plan.parts or () if part.name not in plan.up_to_date]
    if not parts and (kept or plan.parts is not None):
        return DatasetDryRun(0, True, kept, DryRun(0, True, outputs_of(fm, request.writing).width, 0, 0.0))
    largest = max(parts, key=lambda part: part.bytes, default=None) or _first_text_part(request)
    writing = replace(request.writing, format=format_of(LocalPath(largest.name)).name)
    whole = estimate(
        fm,
        largest.location,
        LocalPath(largest.name),
        request.reading,
        writing,
        request.rules,
        request.engine.jobs,
    )
    if parts:
        whole = _for_all_parts(whole, largest, parts)
    # A missing folder has the free space of its parent, which the path of a file in it leads to.
    place = request.target if request.target.kind() is None else request.target.join("part")
    require_space(place, whole.bytes)
    height = (request.rows_per_file or 0) // fm.chunk_rows * fm.chunk_rows
    return DatasetDryRun(
        len(parts) or max(1, -(-whole.rows // height)),
        bool(parts) or whole.exact_rows,
        kept,
        replace(whole, free=place.free_bytes()),
    )


def _first_text_part(request: DatasetRequest) -> Part:
    """The first part of a text file, whose number of rows is not known before it is read."""
    return Part(name_of_part(request.source, request.reading, request.writing, 0, 1), request.source, 0, "")


def _for_all_parts(one: DryRun, largest: Part, parts: Sequence[Part]) -> DryRun:
    """Extrapolate from the file of the largest part to all parts."""
    ranges = [part.only for part in parts if part.only is not None]
    if ranges:
        rows = sum(end - first for first, end in ranges)
        times, exact = rows / max(1, one.rows), one.exact_rows
    else:
        times, exact = (
            sum(part.bytes for part in parts) / max(1, largest.bytes),
            one.exact_rows and len(parts) == 1,
        )
        rows = round(one.rows * times)
    return replace(
        one, rows=rows, exact_rows=exact, bytes=round(one.bytes * times), seconds=one.seconds * times
    )
