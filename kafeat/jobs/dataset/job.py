"""A run over parts, when all is checked and its folders are its own."""

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
from kafeat.jobs.dataset.journal import Journal, Run
from kafeat.jobs.dataset.part import Outcome, PartTask, failed, kafeat_part
from kafeat.jobs.dataset.request import DatasetPlan, DatasetRequest
from kafeat.jobs.dataset.split import pour_parts
from kafeat.runtime.backends import started
from kafeat.runtime.engine import completed
from kafeat.runtime.environment import count_jobs
from kafeat.runtime.pool import Engine, Pool
from kafeat.runtime.stop import Stop

Progress = Callable[[int], None]
Announce = Callable[[int | None], Progress]


@dataclass(frozen=True)
class DatasetJob:
    """What was asked for, and what there is already.

    `asked.writing.guard` is held around all that is written or removed. `make` makes a folder.
    """

    asked: DatasetRequest
    map: SharedMap
    start: DatasetPlan
    make: Callable[[str], None]

    def run(self, announce: Announce) -> Run:
        """Make the parts that the earlier run does not prove done."""
        began, start, earlier, target = time.perf_counter(), self.start, self.start.earlier, self.asked.target
        proven = start.proven
        journal = Journal(target, start.manifest, list(proven.values()), self.asked.writing.guard)
        try:
            with started(self._engine) as pool, one_blas_thread():  # it is up before anything is removed
                removed = self._clear({*proven, *start.known})
                journal.write()
                told = announce(None if start.parts is None else len(start.parts))
                told(len(proven))
                with closing(self._outcomes(pool)) as outcomes:
                    for outcome in outcomes:
                        journal.add(outcome)
                        told(1)
        except BaseException as error:
            if start.parts is not None and journal.done:
                done = f"{len(journal.done):,} of {len(start.parts):,} parts are done"
                error.add_note(f"{done}: --resume goes on with the others")
            self._sweep()
            journal.leave(new=not earlier.entries and self.asked.engine.ends)
            raise
        self._sweep()
        seconds = time.perf_counter() - began
        journal.end(seconds)
        gone = [] if start.parts is None else sorted({*removed} - {part.name for part in start.parts})
        strange = earlier.strange(target, {*journal.done, *removed})
        return journal.run(len(proven), self.map.map.n_components, seconds, tuple(gone), strange)

    @property
    def _engine(self) -> Engine:
        """Here no more parts are made at once than there are: they share the threads."""
        if not self.asked.engine.here:
            return self.asked.engine
        parts = len(self.start.parts) if self.start.parts else 1
        return replace(self.asked.engine, jobs=min(count_jobs(self.asked.engine.jobs), parts))

    def _clear(self, good: set[str]) -> list[str]:
        """Remove what is left of earlier runs, but for good parts; returns the parts that are no more."""
        with self.asked.writing.guard():
            self._sweep()
            return self.start.earlier.remove_stale(self.asked.target, self.asked.rules.rejects, good)

    def _sweep(self) -> None:
        for folder in (self.asked.target, self.asked.rules.rejects):
            if folder is not None:
                remove_stale_below(folder)

    def _outcomes(self, pool: Pool) -> Generator[Outcome]:
        """What becomes of the parts, in the order in which they are done."""
        asked = self.asked
        if self.start.parts is not None:
            parts = [part for part in self.start.parts if part.name not in self.start.proven]
            yield from completed(pool, kafeat_part, self._tasks(parts, pool.stop), _given_up)
        elif not self.start.proven:
            yield from pour_parts(
                self.map.map, asked.source, asked.target, asked.reading, asked.writing, asked.rules,
                asked.engine.jobs, asked.rows_per_file or 0, self.start.earlier.may_replace,
            )  # fmt: skip

    def _tasks(self, parts: list[Part], stop: Stop) -> list[PartTask]:
        asked = self.asked
        for below in {os.path.dirname(part.name) for part in parts} - {""}:
            for folder in (asked.target, asked.rules.rejects):
                if folder is not None:
                    self.make(join(folder, below))
        here = asked.engine.here
        jobs = max(1, count_jobs(asked.engine.jobs) // max(1, len(parts))) if here else 1
        # a worker may stand in another folder
        place = (lambda name: name) if here else absolute
        rejects = None if asked.rules.rejects is None else place(asked.rules.rejects)
        return [
            PartTask(
                replace(part, location=place(part.location)),
                self.map,
                place(asked.target),
                asked.reading,
                replace(
                    asked.writing,
                    format=format_of(part.name),
                    overwrite=self.start.earlier.may_replace(part.name),
                    sweep=False,
                ),
                replace(asked.rules, rejects=rejects),
                jobs,
                stop,
                self.start.known.get(part.name),
            )
            for part in parts
        ]


def _given_up(task: PartTask, why: str) -> Outcome:
    return failed(
        task.part.name,
        f"{shown(task.part.location)}: expected a worker to finish, got none that did ({why}); is there memory enough, "
        "and the same kafeat?",
        5,
    )
