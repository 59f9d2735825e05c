"""Transform a data set of many files to a folder; each part is written completely or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kafeat._version import __version__
from kafeat.io.storage.base import Location, making
from kafeat.io.storage.location import parse_location
from kafeat.io.storage.run_token import owning
from kafeat.io.writers.options import OutputOptions
from kafeat.jobs.dataset.job import Announce, DatasetJob, PartMaker
from kafeat.jobs.dataset.journal import DatasetResult
from kafeat.jobs.dataset.part_makers import KnownParts, TextParts
from kafeat.jobs.dataset.request import DatasetPlan, DatasetRequest, plan_parts
from kafeat.jobs.transform.options import STRICT, InputOptions, RowOptions
from kafeat.jobs.transform.outputs import outputs_of
from kafeat.jobs.transform.side_files import command_of
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.engine import Engine
from kafeat.runtime.environment import machine, versions


def transform_parts(
    model: str | FeatureMap,
    source: str | Location,
    target: str | Location,
    *,
    reading: InputOptions | None = None,
    writing: OutputOptions | None = None,
    rules: RowOptions = STRICT,
    engine: Engine | None = None,
    rows_per_file: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    stats: Location | None = None,
    announce: Announce | None = None,
) -> DatasetResult:
    """Write the features of every part of `source` to a part of the same name below the folder `target`.

    `source` is a folder, a glob or a list of names. With `rows_per_file` it is one file, which is cut into parts of at
    most so many rows. `resume` keeps the parts of the previous run that are up to date. A part that fails does not end
    the others. `stats` is a file that the caller writes; it must not lie among the parts. `announce(parts)` returns a
    callback for the number of finished parts.
    """
    return transform_request(
        DatasetRequest(
            model, parse_location(source), parse_location(target), reading or InputOptions(),
            writing or OutputOptions(), rules, engine or Engine(), rows_per_file, resume, overwrite, stats,
        ),
        announce,
    )  # fmt: skip


def transform_request(request: DatasetRequest, announce: Announce | None = None) -> DatasetResult:
    """Check a request of `transform_parts`, plan its parts, and write them."""
    request.check()
    shared_map = request.shared_map
    listed = plan_parts(request, shared_map.map)
    folders = [folder for folder in (request.target, request.rules.rejects) if folder is not None]
    with making(*folders) as make_folder, owning(*folders) as token:
        request = replace(request, writing=replace(request.writing, guard=token.publishing))
        plan = DatasetPlan.of(request, shared_map, listed)
        parts: PartMaker
        if listed is None:
            parts = TextParts(request, shared_map.map, plan)
        else:
            parts = KnownParts(request, shared_map, plan, make_folder)
        job = DatasetJob(request, plan, parts)
        return job.run(
            outputs_of(shared_map.map, request.writing), announce or (lambda _parts: lambda _done: None)
        )


def stats_of_parts(
    run: DatasetResult, model: str | FeatureMap, source: Location, target: Location
) -> dict[str, Any]:
    """Return the sums over the parts of a run as builtins; the manifest lists every part."""
    return {
        "kafeat": __version__,
        "command": command_of(run.what),
        "model": {"path": str(parse_location(model)) if isinstance(model, str) else None},
        "input": {"path": str(source), "rows": run.rows_read},
        "output": {
            "path": str(target),
            "parts": run.parts,
            "kept": run.kept,
            "failed": len(run.failed),
            "rows": run.rows,
            "columns": run.columns,
            **({} if run.scale is None else {"scale": run.scale}),
            "bytes": run.bytes,
        },
        "seconds": run.seconds,
        "clipped_values": run.clipped,
        "bad_rows": {"count": run.bad_rows},
        "drift": None
        if run.largest_drift is None
        else {
            "largest": run.largest_drift.share,
            "column": run.largest_drift.column,
            "parts": run.drifts_known,
        },
        "drift_test": None if run.least_p_value is None else {"least_p_value": run.least_p_value},
        "versions": versions(),
        "machine": machine(),
    }
