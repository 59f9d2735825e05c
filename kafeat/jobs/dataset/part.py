"""Transform one part of a data set, unless it is up to date. Errors are returned, not raised.

If the parts are known before the run, an engine makes them in parallel. Text is cut into parts while it is read.
"""

from __future__ import annotations

import os
import time
import traceback
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice
from socket import gethostname

from kafeat.errors import KafeatError, SystemRefusedError, may_pass, no_room
from kafeat.io.data_set import Part
from kafeat.io.readers.base import Chunk
from kafeat.io.storage.atomic import Guard, check_place
from kafeat.io.storage.base import Entry, Location
from kafeat.io.storage.local_path import LocalPath
from kafeat.jobs.dataset.manifest import Drift, File, PartFailure, PartRecord, remove_part
from kafeat.jobs.dataset.parts import name_of_part
from kafeat.jobs.dataset.plan import DatasetPlan
from kafeat.jobs.dataset.request import DatasetRequest
from kafeat.jobs.transform.result import TransformResult, rejects_name
from kafeat.jobs.transform.transform import OpenTransform, TransformJob, transform_file
from kafeat.runtime.engine import Pool, Stop, run_all
from kafeat.runtime.environment import count_jobs, machine, versions

_CHECK_SECONDS = 5.0


@dataclass(frozen=True)
class PartTask:
    """Everything that a worker needs to transform a part. It holds names of files, not their data, so it is small.

    `folder` is the output folder of all parts, and `job.rules.rejects` the folder of all rejects. `previous` is the
    record of the part in the previous run, or None.
    """

    part: Part
    folder: Location
    job: TransformJob
    stop: Stop
    previous: PartRecord | None = None

    @property
    def target(self) -> Location:
        """Location of the output."""
        return self.folder.join(self.part.name)


@dataclass(frozen=True)
class Outcome:
    """The result of a part: a record or a failure, and versions of libraries. `made` is false for a part that was kept.

    `unknown` names columns in which the map knows none of the categories. `worker` is the process that made the part,
    such as `process 7 on host`. `lost_workers` are processes that died or lost their connection while making the part.
    """

    record: PartRecord | None
    failure: PartFailure | None
    environment: dict[str, str]
    made: bool = True
    worker: str | None = None
    unknown: str | None = None
    lost_workers: tuple[str, ...] = ()


def kafeat_part(task: PartTask) -> Outcome:
    """Transform a part unless it is up to date. Dashboards of engines show this function's name."""
    place = task.part.location
    try:
        with task.stop.watching():
            return _outcome(task)
    except KafeatError as error:
        refusal = error
    except OSError as error:
        problem = f"{error.filename or place}: {error.strerror or error}"
        refusal = SystemRefusedError(problem, retry=may_pass(error))
    except Exception as error:  # a bug must not stop the other parts
        advice = "lower chunk_rows, n_components, or the parts that are made at once"
        memory = SystemRefusedError(f"{place}: out of memory: {advice}", retry=True)
        refusal = memory if no_room(error) else KafeatError(traceback.format_exc())
    return failure_outcome(task.part.name, refusal)


def failure_outcome(name: str, error: KafeatError) -> Outcome:
    """Return the outcome of a part that could not be written."""
    failure = PartFailure(name=name, error=str(error), exit_code=error.exit_code, retry=error.retry)
    return Outcome(None, failure, {})


def record_of(part: Part, done: TransformResult, rejects: Entry | None = None) -> PartRecord:
    """Return the manifest entry of a finished part. `rejects` is the file of its bad rows."""
    worst = max(((share, column) for column, share in (done.drift or {}).items()), default=None)
    return PartRecord(
        name=part.name,
        rows=done.rows,
        rows_read=done.rows_read,
        only=part.only,
        input=File(bytes=part.bytes, sha256=done.input_sha256, stamp=part.stamp),
        output=File(bytes=done.bytes or 0, sha256=done.written.sha256, stamp=done.written.stamp or ""),
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
    """Return the versions of the libraries and the processor, for the manifest."""
    return {**versions(), **machine()}


def liveness_check(guard: Guard, stop: Stop) -> Callable[[int], None]:
    """Return a function to call for every chunk. It raises an error if the run has ended or lost the folder."""
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
    part, job, rejects, guard = task.part, task.job, task.job.rules.rejects, task.job.writing.guard
    if task.previous is not None:
        kept = _if_unchanged(task, task.previous)
        if kept is not None:
            return Outcome(kept, None, {}, made=False)
        # Remove the old output first: if this part fails, no outdated output may remain.
        with guard():
            remove_part(task.previous, task.folder, rejects)
    if rejects is not None:
        rejects = rejects.join(rejects_name(part.name))
        job = replace(job, rules=replace(job.rules, rejects=rejects))
    done = transform_file(
        job, part, task.target, announce=lambda _rows: liveness_check(guard, task.stop), hashed=True
    )
    written = None if rejects is None else rejects.entry()
    worker = f"process {os.getpid()} on {gethostname()}"
    return Outcome(
        record_of(part, done, written), None, this_environment(), worker=worker, unknown=done.unknown
    )


def _if_unchanged(task: PartTask, previous: PartRecord) -> PartRecord | None:
    """Return the record with current stamps, or None if the hash of the input or of the output has changed."""
    part, entry = task.part, task.target.entry()
    same = entry is not None and previous.input.is_at(part.location, part.stamp)
    if entry is None or not same or not previous.output.is_at(task.target, entry.stamp):
        return None
    return previous.model_copy(
        update={
            "input": previous.input.model_copy(update={"stamp": part.stamp}),
            "output": previous.output.model_copy(update={"stamp": entry.stamp}),
        }
    )


def known_parts(
    request: DatasetRequest, plan: DatasetPlan, make_folder: Callable[[Location], None], pool: Pool
) -> Generator[Outcome]:
    """Write the files or ranges of rows that are not up to date, and yield outcomes as they finish."""
    parts = [part for part in plan.parts or () if part.name not in plan.up_to_date]
    for below in {os.path.dirname(part.name) for part in parts} - {""}:
        for folder in request.folders:
            make_folder(folder.join(below))
    lost = defaultdict[str, list[str]](list)
    for outcome in run_all(pool, kafeat_part, _tasks(request, plan, parts, pool.stop), _worker_lost):
        while not pool.lost.empty():
            task, worker = pool.lost.get()
            lost[task.part.name].append(worker)
        name = outcome.record.name if outcome.record is not None else ""
        yield replace(outcome, lost_workers=tuple(lost[name]))


def _tasks(request: DatasetRequest, plan: DatasetPlan, parts: list[Part], stop: Stop) -> list[PartTask]:
    threads, rejects = request.engine.in_this_process, request.rules.rejects
    jobs = max(1, count_jobs(request.engine.jobs) // max(1, len(parts))) if threads else 1

    def place(there: Location) -> Location:
        return there if threads else there.absolute()  # workers may have another current directory

    rules = replace(request.rules, rejects=None if rejects is None else place(rejects))
    job = replace(request.job, rules=rules, jobs=jobs)

    def task(part: Part) -> PartTask:
        overwrite = plan.previous.may_replace(part.name)
        own = replace(job, writing=replace(job.writing, overwrite=overwrite, sweep=False))
        there = replace(part, location=place(part.location))
        return PartTask(there, place(request.target), own, stop, plan.to_check.get(part.name))

    return [task(part) for part in parts]


def _worker_lost(task: PartTask, why: str) -> Outcome:
    problem = (
        f"{task.part.location}: expected a worker to finish the part, but all that tried were lost ({why}): give them "
        "enough memory, and the same kafeat"
    )
    return failure_outcome(task.part.name, SystemRefusedError(problem, retry=True))


def text_parts(request: DatasetRequest, plan: DatasetPlan) -> Generator[Outcome]:
    """Write the parts of a text file, or nothing if all are up to date. Their number is unknown until the file ends."""
    if plan.up_to_date:
        return
    part = Part.of(request.source)
    with request.job.opened(part) as opened:
        writing = replace(request.writing, overwrite=True, sweep=False)
        first = LocalPath(name_of_part(request, 0, 0))
        stream = OpenTransform(replace(request.job, writing=writing), opened, first)
        height = (request.rows_per_file or 0) // request.map.chunk_rows
        for number, (start, chunks) in enumerate(_cut(stream.chunks(), height)):
            part = replace(part, name=name_of_part(request, number, 0))
            place, replaces = request.target.join(part.name), plan.previous.may_replace(part.name)
            yield _text_part(part, place, replaces, stream, chunks, start)


def _cut(chunks: Iterator[Chunk], height: int) -> Iterator[tuple[int, Iterator[Chunk]]]:
    """Yield the first row and the chunks of each part. A text without rows has one part without rows."""
    yield 0, islice(chunks, height)
    for first in chunks:
        yield first.start, chain([first], islice(chunks, height - 1))


def _text_part(
    part: Part, place: Location, replaces: bool, stream: OpenTransform, chunks: Iterator[Chunk], start: int
) -> Outcome:
    started = time.perf_counter()
    try:
        check_place(place, replaces)
        done = stream.write_chunks(chunks, place, None, None, start, hashed=True)
    except KafeatError as error:
        deque(chunks, maxlen=0)  # read up to the next part; broken text raises an error, which ends the run
        return failure_outcome(part.name, error)
    done.seconds = time.perf_counter() - started
    part = replace(part, only=(start, start + done.rows_read))
    return Outcome(record_of(part, done), None, this_environment(), unknown=done.unknown)
