"""Write parts: those known before the run as tasks for an engine, and those of a text while it is read."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from itertools import chain, count, islice

from kafeat.dataframes import SharedMap
from kafeat.errors import KafeatError
from kafeat.io.readers.base import Chunk
from kafeat.io.storage.atomic import WrittenFile, check_place
from kafeat.io.storage.base import Location
from kafeat.io.storage.data_set import Part
from kafeat.io.storage.formats import format_of
from kafeat.io.storage.local_path import LocalPath
from kafeat.jobs.dataset.part import (
    Outcome,
    PartTask,
    failure_outcome,
    kafeat_part,
    record_of,
    this_environment,
)
from kafeat.jobs.dataset.request import DatasetPlan, DatasetRequest, name_of_part
from kafeat.jobs.transform.transform import OpenTransform
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.engine import Pool, Stop, run_all
from kafeat.runtime.environment import count_jobs


@dataclass(frozen=True)
class KnownParts:
    """The files of a data set, or ranges of rows of one file. `make_folder` makes a folder."""

    request: DatasetRequest
    map: SharedMap
    plan: DatasetPlan
    make_folder: Callable[[Location], None]

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
                    self.make_folder(folder.join(below))

    def _tasks(self, parts: list[Part], stop: Stop) -> list[PartTask]:
        request, threads = self.request, self.request.engine.in_this_process
        jobs = max(1, count_jobs(request.engine.jobs) // max(1, len(parts))) if threads else 1

        def place(there: Location) -> Location:
            return there if threads else there.absolute()  # workers may run in another folder

        rejects = None if request.rules.rejects is None else place(request.rules.rejects)
        return [
            PartTask(
                replace(part, location=place(part.location)),
                self.map,
                place(request.target),
                request.reading,
                replace(
                    request.writing,
                    format=format_of(LocalPath(part.name)),
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
        f"{task.part.location}: expected a worker to finish, got none that did ({why}); is there memory enough, "
        "and the same kafeat?",
        5,
    )


@dataclass(frozen=True)
class TextParts:
    """The parts of one text file, whose number is not known before its end."""

    request: DatasetRequest
    fm: FeatureMap
    plan: DatasetPlan

    def outcomes(self, pool: Pool) -> Generator[Outcome]:
        """Write part after part, unless all of them are up to date. The pool has nothing to do."""
        del pool
        if self.plan.up_to_date:
            return
        request = self.request
        entry = request.source.entry()
        part = Part("", request.source, entry.bytes if entry else 0, entry.stamp if entry else "")
        with request.reading.open(request.source, None if entry is None else entry.stamp) as opened:
            format = format_of(LocalPath(self._name(0)))
            writing = replace(request.writing, format=format, overwrite=True, sweep=False)
            stream = OpenTransform(self.fm, opened, format, writing, request.rules, request.engine.jobs)
            for name, start, chunks in self._cut(stream.chunks()):
                yield self._write(replace(part, name=name), stream, chunks, start)

    def _name(self, number: int) -> str:
        return name_of_part(self.request.source, self.request.reading, self.request.writing, number, 0)

    def _cut(self, chunks: Iterator[Chunk]) -> Iterator[tuple[str, int, Iterator[Chunk]]]:
        """Yield name, first row and chunks of each part. A text without rows has one part without rows."""
        height = (self.request.rows_per_file or 0) // self.fm.chunk_rows
        yield self._name(0), 0, islice(chunks, height)
        for number in count(1):
            first = next(chunks, None)
            if first is None:
                return
            yield self._name(number), first.start, chain([first], islice(chunks, height - 1))

    def _write(self, part: Part, stream: OpenTransform, chunks: Iterator[Chunk], start: int) -> Outcome:
        started, written = time.perf_counter(), WrittenFile()
        try:
            place = self.request.target.join(part.name)
            check_place(place, self.plan.previous.may_replace(part.name))
            counts = stream.write_chunks(chunks, place, None, None, start, written)
        except KafeatError as error:
            deque(chunks, maxlen=0)  # skip the other rows of the part; broken text ends here
            return failure_outcome(part.name, str(error), error.exit_code)
        done = counts.result(time.perf_counter() - started, None, written)
        part = replace(part, only=(start, start + done.rows_read))
        return Outcome(record_of(part, done), None, this_environment())
