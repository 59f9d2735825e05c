"""The record of a run: statistics in JSON (`--stats`), and metrics for Prometheus' node exporter (`--metrics`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any, get_args

from kafeat._version import __version__
from kafeat.errors import ending
from kafeat.io.formats import format_of
from kafeat.io.storage.base import Location
from kafeat.jobs.dataset.journal import DatasetResult
from kafeat.jobs.dataset.manifest import State
from kafeat.jobs.dataset.request import DatasetRequest
from kafeat.jobs.transform.result import TransformResult
from kafeat.runtime.environment import machine, now, process, versions


def record_of(
    request: DatasetRequest,
    done: TransformResult | DatasetResult | None,
    start: str,
    seconds: float,
    failure: BaseException | None = None,
) -> dict[str, Any]:
    """Return the record of a run as builtins: rows, bytes, seconds, hashes, drift and versions.

    Pipes have no bytes and no hash. With many parts, the numbers are sums. `failure` is the error that ended the run.
    After an error, `done` is None. Only after an output that broke the rules for bad rows or drift, both are set.
    """
    failed = done.failed if isinstance(done, DatasetResult) else ()
    state, code = ("incomplete", max(one.exit_code for one in failed)) if failed else ("complete", 0)
    if failure is not None:
        state, code = ending(failure)
    model, details = request.model, dict[str, Any]()
    if isinstance(done, TransformResult):
        details = {"rows_per_second": done.rows_read / seconds, **_of_file(request, done)}
    elif done is not None:
        details = _of_parts(done)
    return {
        "kafeat": __version__,
        **({} if done is None else {"command": "predict" if done.what == "predictions" else "transform"}),
        "state": state,
        "exit_code": code,
        "error": None if failure is None else str(failure) or state,
        "start": start,
        "end": now(),
        **process(),
        "model": {"path": str(model) if isinstance(model, Location) else None, **details.pop("model", {})},
        "input": {"path": str(request.source), **details.pop("input", {})},
        "output": {"path": str(request.target), **details.pop("output", {})},
        "seconds": seconds,
        **details,
        "versions": versions(),
        "machine": machine(),
    }


def spelled(record: dict[str, Any]) -> str:
    """Return a record as JSON."""
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def metrics(output: Location, record: dict[str, Any]) -> str:
    """Return the numbers of a record, and its state, in the text format of Prometheus, with the output as label."""
    escaped = str(output).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    label = f'output="{escaped}"'
    lines = [f"{name}{{{label}}} {number}\n" for name, number in _numbers(record, "kafeat")]
    ended = get_args(State)[1:]  # all states except running
    lines += [f'kafeat_state{{{label},state="{state}"}} {int(state == record["state"])}\n' for state in ended]
    return "".join(lines)


def _numbers(record: dict[str, Any], prefix: str) -> Iterator[tuple[str, float]]:
    """Yield each number with a name, such as `kafeat_input_rows`. Columns are skipped: their names may be invalid."""
    for key, value in record.items():
        if key in ("start", "end"):
            yield f"{prefix}_{key}_time_seconds", datetime.fromisoformat(value).timestamp()
        elif isinstance(value, dict) and key not in ("columns", "seen"):
            yield from _numbers(value, f"{prefix}_{key}")
        elif isinstance(value, int | float) and key != "pid":
            yield f"{prefix}_{key}", value


def _scale(done: TransformResult | DatasetResult) -> dict[str, float]:
    return {} if done.scale is None else {"scale": done.scale}


def _of_file(request: DatasetRequest, done: TransformResult) -> dict[str, Any]:
    rejects = request.rules.rejects
    drift, test = done.drift, done.drift_test
    return {
        "model": {"sha256": request.map.digest},
        "input": {"rows": done.rows_read, "bytes": request.source.size(), "sha256": done.input_sha256},
        "output": _written(request, done),
        "clipped_values": done.clipped,
        "bad_rows": {
            "rule": request.rules.on_bad_rows,
            "count": done.bad_rows,
            "rejects": None if rejects is None else str(rejects),
        },
        "drift": None
        if drift is None
        else {"largest": max(drift.values(), default=0.0), "columns": drift, "seen": done.seen},
        "drift_test": None if test is None else asdict(test),
    }


def _written(request: DatasetRequest, done: TransformResult) -> dict[str, Any]:
    keep = request.writing.keep
    return {
        "format": format_of(request.target, request.writing.output_format).name,
        "rows": done.rows,
        "columns": done.columns,
        "dtype": done.dtype,
        **({} if done.what == "features" else {"content": done.what}),
        **_scale(done),
        **({"keep": list(keep)} if keep else {}),
        **({"interval": list(request.writing.interval)} if request.writing.interval else {}),
        "bytes": done.bytes,
        "sha256": done.written.sha256,
    }


def _of_parts(run: DatasetResult) -> dict[str, Any]:
    drift = run.largest_drift
    return {
        "input": {"rows": run.rows_read},
        "output": {
            "parts": run.parts,
            "kept": run.kept,
            "failed": len(run.failed),
            "rows": run.rows,
            "columns": run.columns,
            **_scale(run),
            "bytes": run.bytes,
        },
        "clipped_values": run.clipped,
        "bad_rows": {"count": run.bad_rows},
        "drift": None
        if drift is None
        else {"largest": drift.share, "column": drift.column, "parts": run.drifts_known},
        "drift_test": None if run.least_p_value is None else {"least_p_value": run.least_p_value},
    }
