"""Transform parts that are known before the run: each is a task, which an engine runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

from kafeat.dataframes.shared_map import SharedMap
from kafeat.io.storage.data_set import Part
from kafeat.io.storage.formats import format_of
from kafeat.io.storage.locations import absolute, join
from kafeat.io.storage.uri import shown
from kafeat.jobs.dataset.part import Outcome, PartTask, failure_outcome, kafeat_part
from kafeat.jobs.dataset.request import DatasetPlan, DatasetRequest
from kafeat.runtime.engine import run_all
from kafeat.runtime.environment import count_jobs
from kafeat.runtime.pool import Pool, Stop


@dataclass(frozen=True)
class KnownParts:
    """The files of a data set, or ranges of rows of one file. `make_folder` makes a folder."""

    request: DatasetRequest
    map: SharedMap
    plan: DatasetPlan
    make_folder: Callable[[str], None]

    def outcomes(self, pool: Pool) -> Generator[Outcome]:
        """Write the parts that are not up to date; yield their outcomes as they are done."""
        parts = [part for part in self.plan.parts or () if part.name not in self.plan.up_to_date]
        self._make_folders(parts)
        tasks = self._tasks(parts, pool.stop)
        yield from run_all(pool, kafeat_part, tasks, _worker_lost)

    def _make_folders(self, parts: list[Part]) -> None:
        for below in {os.path.dirname(part.name) for part in parts} - {""}:
            for folder in (self.request.target, self.request.rules.rejects):
                if folder is not None:
                    self.make_folder(join(folder, below))

    def _tasks(self, parts: list[Part], stop: Stop) -> list[PartTask]:
        request, threads = self.request, self.request.engine.in_this_process
        jobs = max(1, count_jobs(request.engine.jobs) // max(1, len(parts))) if threads else 1
        # Workers may run in another folder.
        place = (lambda name: name) if threads else absolute
        rejects = None if request.rules.rejects is None else place(request.rules.rejects)
        return [
            PartTask(
                replace(part, location=place(part.location)),
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
        f"{shown(task.part.location)}: expected a worker to finish, got none that did ({why}); is there memory enough, "
        "and the same kafeat?",
        5,
    )
