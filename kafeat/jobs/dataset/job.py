"""Run over parts, after everything is checked and the output folders are locked."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace

from kafeat.chain.blas import one_blas_thread
from kafeat.dataframes.shared_map import SharedMap
from kafeat.io.storage.data_set import Part
from kafeat.io.storage.formats import format_of
from kafeat.io.storage.locations import absolute, join
from kafeat.io.storage.temporary_files import remove_stale_below
from kafeat.io.storage.uri import shown
from kafeat.jobs.dataset.journal import DatasetResult, Journal
from kafeat.jobs.dataset.part import Outcome, PartTask, failure_outcome, kafeat_part
from kafeat.jobs.dataset.request import DatasetPlan, DatasetRequest
from kafeat.jobs.dataset.split import pour_parts
from kafeat.runtime.backends import start_engine
from kafeat.runtime.engine import run_all
from kafeat.runtime.environment import count_jobs
from kafeat.runtime.pool import Engine, Pool
from kafeat.runtime.stop import Stop

Progress = Callable[[int], None]
Announce = Callable[[int | None], Progress]


@dataclass(frozen=True)
class DatasetJob:
    """A planned run over parts.

    `request.writing.guard` is held while files are written or removed. `make` makes a folder.
    """

    request: DatasetRequest
    map: SharedMap
    plan: DatasetPlan
    make: Callable[[str], None]

    def run(self, announce: Announce) -> DatasetResult:
        """Write all parts that are not up to date."""
        began, plan, previous, target = (
            time.perf_counter(),
            self.plan,
            self.plan.previous,
            self.request.target,
        )
        up_to_date = plan.up_to_date
        journal = Journal(target, plan.manifest, list(up_to_date.values()), self.request.writing.guard)
        try:
            with (
                start_engine(self._engine) as pool,
                one_blas_thread(),
            ):  # an engine that fails to start must cost no file
                removed = self._clear({*up_to_date, *plan.to_check})
                journal.write()
                progress = announce(None if plan.parts is None else len(plan.parts))
                progress(len(up_to_date))
                with closing(self._outcomes(pool)) as outcomes:
                    for outcome in outcomes:
                        journal.add(outcome)
                        progress(1)
        except BaseException as error:
            if plan.parts is not None and journal.done:
                done = f"{len(journal.done):,} of {len(plan.parts):,} parts are done"
                error.add_note(f"{done}: --resume goes on with the others")
            self._sweep()
            journal.leave(new=not previous.entries and self.request.engine.ends_workers)
            raise
        self._sweep()
        seconds = time.perf_counter() - began
        journal.end(seconds)
        without_input = [] if plan.parts is None else sorted({*removed} - {part.name for part in plan.parts})
        unknown_files = previous.remaining(target, {*journal.done, *removed})
        return journal.result(
            len(up_to_date), self.map.map.n_components, seconds, tuple(without_input), unknown_files
        )

    @property
    def _engine(self) -> Engine:
        """The engine. In this process no more parts run at once than there are, and these share the threads."""
        if not self.request.engine.in_this_process:
            return self.request.engine
        parts = len(self.plan.parts) if self.plan.parts else 1
        return replace(self.request.engine, jobs=min(count_jobs(self.request.engine.jobs), parts))

    def _clear(self, good: set[str]) -> list[str]:
        """Remove temporary files and outdated parts, but for `good` ones; return the names of the removed parts."""
        with self.request.writing.guard():
            self._sweep()
            return self.plan.previous.remove_stale(self.request.target, self.request.rules.rejects, good)

    def _sweep(self) -> None:
        for folder in (self.request.target, self.request.rules.rejects):
            if folder is not None:
                remove_stale_below(folder)

    def _outcomes(self, pool: Pool) -> Generator[Outcome]:
        """Yield the outcomes of the parts, in the order in which they are done."""
        request = self.request
        if self.plan.parts is not None:
            parts = [part for part in self.plan.parts if part.name not in self.plan.up_to_date]
            yield from run_all(pool, kafeat_part, self._tasks(parts, pool.stop), _worker_lost)
        elif not self.plan.up_to_date:
            yield from pour_parts(
                self.map.map, request.source, request.target, request.reading, request.writing, request.rules,
                request.engine.jobs, request.rows_per_file or 0, self.plan.previous.may_replace,
            )  # fmt: skip

    def _tasks(self, parts: list[Part], stop: Stop) -> list[PartTask]:
        request = self.request
        for below in {os.path.dirname(part.name) for part in parts} - {""}:
            for folder in (request.target, request.rules.rejects):
                if folder is not None:
                    self.make(join(folder, below))
        threads = request.engine.in_this_process
        jobs = max(1, count_jobs(request.engine.jobs) // max(1, len(parts))) if threads else 1
        # Workers may run in another folder.
        place = (lambda name: name) if threads else absolute
        rejects = None if request.rules.rejects is None else place(request.rules.rejects)
        return [
            PartTask(
                replace(part, place=place(part.place)),
                self.map,
                place(request.target),
                request.reading,
                replace(
                    request.writing,
                    format=format_of(part.name),
                    overwrite=self.plan.previous.may_replace(part.name),
                    sweep=False,
                ),
                replace(request.rules, rejects=rejects),
                jobs,
                stop,
                self.plan.to_check.get(part.name),
            )
            for part in parts
        ]


def _worker_lost(task: PartTask, why: str) -> Outcome:
    return failure_outcome(
        task.part.name,
        f"{shown(task.part.place)}: expected a worker to finish, got none that did ({why}); is there memory enough, "
        "and the same kafeat?",
        5,
    )
