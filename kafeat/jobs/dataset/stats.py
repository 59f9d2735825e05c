"""The statistics of a run over many files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafeat._version import __version__
from kafeat.runtime.environment import machine, versions

if TYPE_CHECKING:
    from kafeat.jobs.dataset.journal import DatasetResult


def stats_of_parts(run: DatasetResult, model: str, source: str, target: str) -> dict[str, Any]:
    """Return the sums over the parts of a run as builtins; the manifest lists every part."""
    return {
        "kafeat": __version__,
        "command": "transform",
        "model": {"path": model},
        "input": {"path": source, "rows": run.rows_read},
        "output": {
            "path": target,
            "parts": run.parts,
            "kept": run.kept,
            "failed": len(run.failed),
            "rows": run.rows,
            "columns": run.columns,
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
        "versions": versions(),
        "machine": machine(),
    }
