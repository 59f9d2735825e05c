"""Transform one part of a data set, unless it is up to date. Errors are returned, not raised.

Parts known before the run are tasks for an engine; those of a text are made while it is read.
"""

from __future__ import annotations

import os
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, count, islice

from kafeat.dataframes import SharedMap
from kafeat.errors import KafeatError, without_secrets
from kafeat.io.readers.base import Chunk
from kafeat.io.storage.atomic import Guard, WrittenFile, check_place
from kafeat.io.storage.base import Entry, Location
from kafeat.io.storage.data_set import Part
from kafeat.io.storage.formats import format_of
from kafeat.io.storage.local_path import LocalPath
from kafeat.io.writers.options import OutputOptions
from kafeat.jobs.dataset.manifest import Drift, File, PartFailure, PartRecord, remove_written
from kafeat.jobs.dataset.request import DatasetPlan, DatasetRequest, name_of_part
from kafeat.jobs.transform.options import InputOptions, RowOptions
from kafeat.jobs.transform.outputs import TransformResult
from kafeat.jobs.transform.side_files import rejects_name
from kafeat.jobs.transform.transform import OpenTransform, transform_file
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.engine import Pool, Stop, run_all
from kafeat.runtime.environment import count_jobs, machine, versions

_CHECK_SECONDS = 5.0


@dataclass(frozen=True)
class PartTask:
    """Everything that a worker needs to transform a part. It holds names and no data, so it is cheap to send.

    `previous` is the record of the part in the previous run, if there is one. `folder` holds all parts, and
    `rules.rejects` is the folder of all rejects.
    """

    part: Part
    map: SharedMap
    folder: Location
    reading: InputOptions
    writing: OutputOptions
    rules: RowOptions
    jobs: int
    stop: Stop
    previous: PartRecord | None = None

    @property
    def target(self) -> Location:
        """Location of the output."""
        return self.folder.join(self.part.name)


@dataclass(frozen=True)
class Outcome:
    """Result of a part: a record or a failure, and the environment. `made` is false if a previous run wrote it."""

    record: PartRecord | None
    failure: PartFailure | None
    environment: dict[str, str]
    made: bool = True


def kafeat_part(task: PartTask) -> Outcome:
    """Transform a part unless it is up to date. Dashboards of engines show the name of this function."""
    try:
        with task.stop.watching():
            return _outcome(task)
    except KafeatError as error:
        return failure_outcome(task.part.name, str(error), error.exit_code)
    except MemoryError:
        advice = "lower chunk_rows, n_components, or the parts that are made at once"
        return failure_outcome(task.part.name, f"{task.part.location}: out of memory: {advice}", 5)
    except OSError as error:
        return failure_outcome(
            task.part.name,
            without_secrets(f"{error.filename or task.part.location}: {error.strerror or error}"),
            5,
        )
    except Exception:  # a bug must not end the other parts
        return failure_outcome(task.part.name, without_secrets(traceback.format_exc()), 1)


def failure_outcome(name: str, error: str, exit_code: int) -> Outcome:
    """Return the outcome of a part that could not be written."""
    return Outcome(None, PartFailure(name=name, error=error, exit_code=exit_code), {})


def record_of(part: Part, done: TransformResult, rejects: Entry | None = None) -> PartRecord:
    """Return the manifest entry of a part that is done; `rejects` is the file of its bad rows."""
    worst = max(((share, column) for column, share in (done.drift or {}).items()), default=None)
    return PartRecord(
        name=part.name,
        rows=done.rows,
        rows_read=done.rows_read,
        only=part.only,
        input=File(bytes=part.bytes, sha256=done.input_sha256, stamp=part.stamp),
        output=File(bytes=done.output_bytes or 0, sha256=done.output_sha256, stamp=done.output_stamp or ""),
        seconds=round(done.seconds, 4),
        clipped=done.clipped,
        bad_rows=done.bad_rows,
        first_bad_row=done.first_bad_row,
        drift=None if worst is None else Drift(share=worst[0], column=worst[1]),
        p_value=None if done.drift_test is None else done.drift_test.p_value,
        rejects=None if rejects is None else File(bytes=rejects.bytes, sha256=None, stamp=rejects.stamp),
    )


@cache
def this_environment() -> dict[str, str]:
    """Return versions and processor of this process, as the manifest records them."""
    return {**versions(), **machine()}


def liveness_check(guard: Guard, stop: Stop) -> Callable[[int], None]:
    """Return a callback for every chunk that ends the part if the run has ended or has lost its folder."""
    last_check = time.monotonic()

    def check(_rows: int) -> None:
        nonlocal last_check
        stop.check()
        if time.monotonic() - last_check > _CHECK_SECONDS:
            last_check = time.monotonic()
            with guard():
                pass

    return check


def _outcome(task: PartTask) -> Outcome:
    part, writing, rules = task.part, task.writing, task.rules
    if task.previous is not None:
        kept = _if_unchanged(task, task.previous)
        if kept is not None:
            return Outcome(kept, None, {}, made=False)
        # The old output goes first: if this part fails, no outdated one must be left.
        with writing.guard():
            remove_written(task.folder, part.name, task.previous.output)
            if rules.rejects is not None and task.previous.rejects is not None:
                remove_written(rules.rejects, rejects_name(part.name), task.previous.rejects)
    if rules.rejects is not None:
        rules = replace(rules, rejects=rules.rejects.join(rejects_name(part.name)))
    done = transform_file(
        task.map.map,
        part.location,
        task.target,
        reading=task.reading,
        writing=writing,
        rules=rules,
        jobs=task.jobs,
        announce=lambda _rows: liveness_check(writing.guard, task.stop),
        hashed=True,
        only=part.only,
        stamp=part.stamp,
    )
    rejects = None if rules.rejects is None else rules.rejects.entry()
    return Outcome(record_of(part, done, rejects), None, this_environment())


def _if_unchanged(task: PartTask, previous: PartRecord) -> PartRecord | None:
    """Return the record with the present stamps if the hashes of input and output are the same, else None."""
    part, entry = task.part, task.target.entry()
    if entry is None:
        return None
    if part.stamp != previous.input.stamp and (
        previous.input.sha256 is None or part.location.digest() != previous.input.sha256
    ):
        return None
    if entry.stamp != previous.output.stamp and task.target.digest() != previous.output.sha256:
        return None
    return previous.model_copy(
        update={
            "input": previous.input.model_copy(update={"stamp": part.stamp}),
            "output": previous.output.model_copy(update={"stamp": entry.stamp}),
        }
    )


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
