"""What a transform of a data set would write and take, from the first chunks of its largest part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kafeat.dataframes.shared_map import shared
from kafeat.errors import UsageError
from kafeat.io.storage.data_set import Part
from kafeat.io.storage.disk_space import free_bytes, require_space
from kafeat.io.storage.formats import format_of
from kafeat.io.storage.locations import join, kind_of
from kafeat.jobs.dataset.request import DatasetPlan, DatasetRequest, parts_of
from kafeat.jobs.dataset.split import name_of_part
from kafeat.jobs.transform.dry_run import DryRun, estimate


@dataclass(frozen=True)
class DatasetDryRun:
    """Parts that would be made (`exact_parts`: known, not estimated) with their plan, and parts that would be kept."""

    parts: int
    exact_parts: bool
    kept: int
    plan: DryRun


def dry_run_parts(asked: DatasetRequest) -> DatasetDryRun:
    """Refuse what the run would refuse before it begins; take all parts to be like the largest one, byte for byte."""
    asked.check()
    if asked.source == "-":
        raise UsageError("-: expected files for --dry-run, got standard input: it could be read once only")
    map = shared(asked.model)
    start, fm = DatasetPlan.of(asked, map, parts_of(asked, map.map)), map.map
    kept = len(start.proven)
    parts = [part for part in start.parts or () if part.name not in start.proven]
    if not parts and (kept or start.parts is not None):
        return DatasetDryRun(0, True, kept, DryRun(0, True, fm.n_components, 0, 0.0))
    like = max(parts, key=lambda part: part.bytes, default=None) or _first_of_text(asked)
    writing = replace(asked.writing, format=format_of(like.name))
    plan = estimate(fm, like.location, like.name, asked.reading, writing, asked.rules, asked.engine.jobs)
    if parts:
        plan = _of_all(plan, like, parts)
    # a folder has the room of any file in it; that of one that is not there yet, the room of its parent
    place = asked.target if kind_of(asked.target) is None else join(asked.target, "part")
    require_space(place, plan.bytes)
    height = (asked.rows_per_file or 0) // fm.chunk_rows * fm.chunk_rows
    return DatasetDryRun(
        len(parts) or max(1, -(-plan.rows // height)),
        bool(parts) or plan.exact_rows,
        kept,
        replace(plan, free=free_bytes(place)),
    )


def _first_of_text(asked: DatasetRequest) -> Part:
    """What a text that is cut begins with."""
    return Part(name_of_part(asked.source, asked.reading, asked.writing, 0, 1), asked.source, 0, "")


def _of_all(plan: DryRun, like: Part, parts: Sequence[Part]) -> DryRun:
    """The plan for all parts, from that for the file of one of them."""
    ranges = [part.only for part in parts if part.only is not None]
    if ranges:
        rows = sum(end - first for first, end in ranges)
        times, exact = rows / max(1, plan.rows), plan.exact_rows
    else:
        times, exact = (
            sum(part.bytes for part in parts) / max(1, like.bytes),
            plan.exact_rows and len(parts) == 1,
        )
        rows = round(plan.rows * times)
    return replace(
        plan, rows=rows, exact_rows=exact, bytes=round(plan.bytes * times), seconds=plan.seconds * times
    )
