"""One part of a data set: made, or proven to be made already; whatever goes wrong is told, not raised."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from kafeat.dataframes.shared_map import SharedMap
from kafeat.errors import KafeatError, without_secrets
from kafeat.io.storage.atomic import Guard
from kafeat.io.storage.data_set import Part
from kafeat.io.storage.files import digest_of
from kafeat.io.storage.locations import Entry, entry_of, join
from kafeat.io.storage.uri import shown
from kafeat.jobs.dataset.manifest import Drift, Failure, File, Record
from kafeat.jobs.dataset.removal import remove_written
from kafeat.jobs.transform.counts import TransformResult
from kafeat.jobs.transform.options import InputOptions, OutputOptions, RowOptions
from kafeat.jobs.transform.rejects import rejects_name
from kafeat.jobs.transform.transform import transform_file
from kafeat.runtime.environment import machine, versions
from kafeat.runtime.stop import Stop

_LOOK_SECONDS = 5.0


@dataclass(frozen=True)
class PartTask:
    """All that a worker is told: names, no data. `known` is what an earlier run made of the part, if it did.

    `folder` is that of all parts, and `rules.rejects` that of all their rejects.
    """

    part: Part
    map: SharedMap
    folder: str
    reading: InputOptions
    writing: OutputOptions
    rules: RowOptions
    jobs: int
    stop: Stop
    known: Record | None = None

    @property
    def target(self) -> str:
        """Where the part is written."""
        return join(self.folder, self.part.name)


@dataclass(frozen=True)
class Outcome:
    """What became of a part, and on what machine. `again` is false where an earlier run had made it."""

    record: Record | None
    failure: Failure | None
    machine: dict[str, str]
    again: bool = True


def kafeat_part(task: PartTask) -> Outcome:
    """Make a part, unless it is proven to be made already. Engines show the name of this function to people."""
    try:
        with task.stop.watching():
            return _outcome(task)
    except KafeatError as error:
        return failed(task.part.name, str(error), error.exit_code)
    except MemoryError:
        advice = "lower chunk_rows, n_components, or the parts that are made at once"
        return failed(task.part.name, f"{shown(task.part.location)}: out of memory: {advice}", 5)
    except OSError as error:
        return failed(
            task.part.name,
            without_secrets(f"{error.filename or task.part.location}: {error.strerror or error}"),
            5,
        )
    except Exception:  # a fault of ours: it must not end the other parts
        return failed(task.part.name, without_secrets(traceback.format_exc()), 1)


def failed(name: str, error: str, exit_code: int) -> Outcome:
    """The outcome of a part that could not be made."""
    return Outcome(None, Failure(name=name, error=error, exit_code=exit_code), {})


def record_of(part: Part, done: TransformResult, rejects: Entry | None = None) -> Record:
    """What is to be remembered of a part that is done; `rejects` lists its bad rows."""
    worst = max(((share, column) for column, share in (done.drift or {}).items()), default=None)
    return Record(
        name=part.name,
        rows=done.rows,
        rows_read=done.rows_read,
        only=part.only,
        input=File(bytes=part.bytes, sha256=done.input_sha256, stamp=part.stamp),
        output=File(bytes=done.output_bytes or 0, sha256=done.output_sha256, stamp=done.output_stamp or ""),
        seconds=round(done.seconds, 4),
        clipped=done.clipped,
        bad_rows=done.bad_rows,
        drift=None if worst is None else Drift(share=worst[0], column=worst[1]),
        rejects=None if rejects is None else File(bytes=rejects.bytes, sha256=None, stamp=rejects.stamp),
    )


@cache
def this_machine() -> dict[str, str]:
    """Where a part was made, and with what."""
    return {**versions(), **machine()}


def looking(guard: Guard, stop: Stop) -> Callable[[int], None]:
    """What is told the rows of each chunk: it ends a part that was told to end, or that nobody waits for any more."""
    looked = time.monotonic()

    def look(_rows: int) -> None:
        nonlocal looked
        stop.check()
        if time.monotonic() - looked > _LOOK_SECONDS:
            looked = time.monotonic()
            with guard():
                pass

    return look


def _outcome(task: PartTask) -> Outcome:
    part, writing, rules = task.part, task.writing, task.rules
    if task.known is not None:
        kept = _proven(task, task.known)
        if kept is not None:
            return Outcome(kept, None, {}, again=False)
        # if it cannot be made again, nothing is left of the old one
        with writing.guard():
            remove_written(task.folder, part.name, task.known.output)
            if rules.rejects is not None and task.known.rejects is not None:
                remove_written(rules.rejects, rejects_name(part.name), task.known.rejects)
    if rules.rejects is not None:
        rules = replace(rules, rejects=join(rules.rejects, rejects_name(part.name)))
    done = transform_file(
        task.map.map,
        part.location,
        task.target,
        reading=task.reading,
        writing=writing,
        rules=rules,
        jobs=task.jobs,
        announce=lambda _rows: looking(writing.guard, task.stop),
        hashed=True,
        only=part.only,
        stamp=part.stamp,
    )
    rejects = None if rules.rejects is None else entry_of(rules.rejects)
    return Outcome(record_of(part, done, rejects), None, this_machine())


def _proven(task: PartTask, known: Record) -> Record | None:
    """The record with its stamps of today, if hashes say that input and output are what they were."""
    part, entry = task.part, entry_of(task.target)
    if entry is None:
        return None
    if part.stamp != known.input.stamp and (
        known.input.sha256 is None or digest_of(part.location) != known.input.sha256
    ):
        return None
    if entry.stamp != known.output.stamp and digest_of(task.target) != known.output.sha256:
        return None
    return known.model_copy(
        update={
            "input": known.input.model_copy(update={"stamp": part.stamp}),
            "output": known.output.model_copy(update={"stamp": entry.stamp}),
        }
    )
