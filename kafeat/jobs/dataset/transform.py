"""Transform a data set of many files to a folder; each part is written completely or not at all.

Everything is checked, and the output folders are locked, before the first part.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace

from kafeat.chain.blas import one_blas_thread
from kafeat.io.storage.base import making
from kafeat.io.storage.owner import owning
from kafeat.io.storage.temporary_files import remove_stale_below
from kafeat.jobs.dataset.journal import DatasetResult, Journal
from kafeat.jobs.dataset.part import Outcome, known_parts, text_parts
from kafeat.jobs.dataset.request import DatasetPlan, DatasetRequest, plan_parts
from kafeat.jobs.transform.outputs import outputs_of
from kafeat.runtime.backends import start_engine
from kafeat.runtime.engine import Pool
from kafeat.runtime.environment import count_jobs

Progress = Callable[[int], None]
Announce = Callable[[int | None], Progress]
Outcomes = Callable[[Pool], Generator[Outcome]]


def transform_parts(request: DatasetRequest, announce: Announce | None = None) -> DatasetResult:
    """Write the features of every part of the input to a part of the same name below the output folder.

    A part that fails does not end the others. `announce(parts)` returns a callback for the number of finished parts.
    """
    request.check()
    shared_map, listed = request.shared_map, plan_parts(request)
    with making(*request.folders) as make_folder, owning(*request.folders) as token:
        # The guard is held while files are written or removed.
        writing = replace(request.writing, guard=token.publishing)
        request = replace(request, model=shared_map, writing=writing)
        plan = DatasetPlan.of(request, listed)

        def outcomes(pool: Pool) -> Generator[Outcome]:
            known = plan.parts is not None
            return known_parts(request, plan, make_folder, pool) if known else text_parts(request, plan)

        return _run(request, plan, outcomes, announce or (lambda _parts: lambda _done: None))


def _run(request: DatasetRequest, plan: DatasetPlan, outcomes: Outcomes, announce: Announce) -> DatasetResult:
    """Write all parts that are not up to date."""
    outputs = outputs_of(request.map, request.writing)
    began = time.perf_counter()
    kept = list(plan.up_to_date.values())
    journal = Journal(request.target, plan.manifest, kept, request.writing.guard)
    try:
        removed = _write_parts(request, plan, outcomes, journal, announce)
    except BaseException as error:
        if plan.parts is not None and journal.done:
            done = f"{len(journal.done):,} of {len(plan.parts):,} parts are done"
            error.add_note(f"{done}: --resume goes on with the others")
        _sweep(request)
        journal.leave(new=not plan.previous.entries and request.engine.ends_workers)
        raise
    _sweep(request)
    seconds = time.perf_counter() - began
    journal.end(seconds)
    unknown_files = plan.previous.remaining(request.target, {*journal.done, *removed})
    without_input = set() if plan.parts is None else {*removed} - {part.name for part in plan.parts}
    lost = plan.previous.lost(request.target, journal.failed)
    return journal.result(len(kept), outputs, seconds, tuple(sorted(without_input)), unknown_files, lost)


def _write_parts(
    request: DatasetRequest, plan: DatasetPlan, outcomes: Outcomes, journal: Journal, announce: Announce
) -> list[str]:
    """Write the parts, and return the names of the outdated ones that were removed before."""
    engine, good = request.engine, {*plan.up_to_date, *plan.to_check}
    if engine.in_this_process:  # no more parts run at once than there are, and these share the threads
        engine = replace(engine, jobs=min(count_jobs(engine.jobs), len(plan.parts) if plan.parts else 1))
    # The engine starts first: if it fails to, nothing must have been removed.
    with start_engine(engine) as pool, one_blas_thread():
        with request.writing.guard():
            _sweep(request)
            removed = plan.previous.remove_stale(request.target, request.rules.rejects, good)
        journal.write()
        progress = announce(None if plan.parts is None else len(plan.parts))
        progress(len(plan.up_to_date))
        with closing(outcomes(pool)) as made:
            for outcome in made:
                journal.add(outcome)
                progress(1)
    return removed


def _sweep(request: DatasetRequest) -> None:
    """Remove temporary files that were left behind."""
    for folder in request.folders:
        remove_stale_below(folder)
