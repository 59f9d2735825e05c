"""Run a request: transform one file, or the parts of a data set, and write the statistics that were asked for."""

from __future__ import annotations

from kafeat.errors import SystemRefusedError
from kafeat.jobs.dataset.job import Announce
from kafeat.jobs.dataset.journal import DatasetResult
from kafeat.jobs.dataset.request import DatasetRequest
from kafeat.jobs.dataset.transform import stats_of_parts, transform_request
from kafeat.jobs.transform.options import TransformResult
from kafeat.jobs.transform.overlaps import refuse_files
from kafeat.jobs.transform.side_files import open_stats, stats
from kafeat.jobs.transform.transform import transform_file
from kafeat.model.feature_map import FeatureMap


def run_file(
    request: DatasetRequest, device: str | None = None, announce: Announce | None = None
) -> TransformResult:
    """Transform one file to one file; `device` is the name of a provider of ONNX Runtime."""
    refuse_files(
        {"the input": request.source, "the model": request.model},
        {"an output": request.target, "--rejects": request.rules.rejects, "--stats": request.stats},
    )
    fm = request.map
    if device is not None:
        fm = _on_device(fm, device, request)
    with open_stats(request.stats, request.writing.fsync) as write_stats:
        done = transform_file(
            fm, request.source, request.target, reading=request.reading, writing=request.writing,
            rules=request.rules, jobs=request.engine.jobs, announce=announce, hashed=request.stats is not None,
        )  # fmt: skip
        if request.stats is not None:
            write_stats(
                stats(done, fm, request.model, request.source, request.target, request.writing, request.rules)
            )
    return done


def run_parts(request: DatasetRequest, announce: Announce | None = None) -> DatasetResult:
    """Transform the parts of a data set to a folder."""
    with open_stats(request.stats, request.writing.fsync) as write_stats:
        run = transform_request(request, announce)
        if request.stats is not None:
            write_stats(stats_of_parts(run, request.model, request.source, request.target))
    return run


def _on_device(fm: FeatureMap, device: str, request: DatasetRequest) -> FeatureMap:
    try:
        from kafeat.onnx.device import on_device
    except ImportError as error:
        raise SystemRefusedError(f"--device {device}: {error}") from None
    return on_device(fm, device, request.engine.jobs)
