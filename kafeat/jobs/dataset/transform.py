"""Transform a data set of many files to a folder; each part is written completely or not at all.

Everything is checked, and the output folders are locked, before the first part.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Protocol

from kafeat._version import __version__
from kafeat.chain.blas import one_blas_thread
from kafeat.io.storage.base import Location, making
from kafeat.io.storage.location import parse_location
from kafeat.io.storage.owner import owning
from kafeat.io.storage.temporary_files import remove_stale_below
from kafeat.jobs.dataset.journal import DatasetResult, Journal
from kafeat.jobs.dataset.part import KnownParts, Outcome, TextParts
from kafeat.jobs.dataset.request import DatasetPlan, DatasetRequest, plan_parts
from kafeat.jobs.transform.outputs import Outputs, outputs_of
from kafeat.jobs.transform.side_files import command_of
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.backends import start_engine
from kafeat.runtime.engine import Engine, Pool
from kafeat.runtime.environment import count_jobs, machine, versions

Progress = Callable[[int], None]
Announce = Callable[[int | None], Progress]


class PartMaker(Protocol):
    """The parts to write: `KnownParts`, or `TextParts`, which are cut while they are read."""

    def outcomes(self, pool: Pool) -> Generator[Outcome]:
        """Write the parts, and yield their outcomes as they are done."""


@dataclass(frozen=True)
class DatasetJob:
    """A planned run over parts. `request.writing.guard` is held while files are written or removed."""

    request: DatasetRequest
    plan: DatasetPlan
    parts: PartMaker

    def run(self, outputs: Outputs[Any], announce: Announce) -> DatasetResult:
        """Write all parts that are not up to date, as files of these outputs."""
        began, plan = time.perf_counter(), self.plan
        kept = list(plan.up_to_date.values())
        journal = Journal(self.request.target, plan.manifest, kept, self.request.writing.guard)
        try:
            removed = self._write_parts(journal, announce)
        except BaseException as error:
            if plan.parts is not None and journal.done:
                done = f"{len(journal.done):,} of {len(plan.parts):,} parts are done"
                error.add_note(f"{done}: --resume goes on with the others")
            self._sweep()
            journal.leave(new=not plan.previous.entries and self.request.engine.ends_workers)
            raise
        self._sweep()
        seconds = time.perf_counter() - began
        journal.end(seconds)
        unknown_files = plan.previous.remaining(self.request.target, {*journal.done, *removed})
        without_input = set() if plan.parts is None else {*removed} - {part.name for part in plan.parts}
        lost = plan.previous.lost(self.request.target, journal.failed)
        return journal.result(len(kept), outputs, seconds, tuple(sorted(without_input)), unknown_files, lost)

    def _write_parts(self, journal: Journal, announce: Announce) -> list[str]:
        """Write the parts, and return the names of the outdated ones that were removed before."""
        plan = self.plan
        # The engine starts first: if it fails to, nothing must have been removed.
        with start_engine(self._engine) as pool, one_blas_thread():
            removed = self._clear({*plan.up_to_date, *plan.to_check})
            journal.write()
            progress = announce(None if plan.parts is None else len(plan.parts))
            progress(len(plan.up_to_date))
            with closing(self.parts.outcomes(pool)) as outcomes:
                for outcome in outcomes:
                    journal.add(outcome)
                    progress(1)
        return removed

    @property
    def _engine(self) -> Engine:
        """The engine. In this process no more parts run at once than there are, and these share the threads."""
        engine = self.request.engine
        if not engine.in_this_process:
            return engine
        parts = len(self.plan.parts) if self.plan.parts else 1
        return replace(engine, jobs=min(count_jobs(engine.jobs), parts))

    def _clear(self, good: set[str]) -> list[str]:
        """Remove temporary files and outdated parts, but for `good` ones; return the names of the removed parts."""
        with self.request.writing.guard():
            self._sweep()
            return self.plan.previous.remove_stale(self.request.target, self.request.rules.rejects, good)

    def _sweep(self) -> None:
        for folder in (self.request.target, self.request.rules.rejects):
            if folder is not None:
                remove_stale_below(folder)


def transform_parts(request: DatasetRequest, announce: Announce | None = None) -> DatasetResult:
    """Write the features of every part of the input to a part of the same name below the output folder.

    A part that fails does not end the others. `announce(parts)` returns a callback for the number of finished parts.
    """
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
