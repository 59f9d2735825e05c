"""One part of a data set: made, or proven to be made already; whatever goes wrong is told, not raised."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from kafeat.errors import KafeatError, without_secrets
from kafeat.io.files import digest_of
from kafeat.io.locations import Entry, entry_of, remove
from kafeat.io.parts import Part
from kafeat.io.uri import shown
from kafeat.jobs.manifest import Drift, Failure, File, Record
from kafeat.jobs.options import Input, Output, Rules
from kafeat.jobs.tally import Done
from kafeat.jobs.transform import transform_file
from kafeat.machine import machine, versions
from kafeat.shared_map import SharedMap


class Stop:
    """Tells the parts that are being made in this process to end, and waits until they have cleaned up."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._changed = threading.Condition()
        self._at_work = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Around the making of a part."""
        with self._changed:
            self._at_work += 1
        try:
            yield
        finally:
            with self._changed:
                self._at_work -= 1
                self._changed.notify_all()

    def check(self, _rows: int) -> None:
        """Called for every chunk of a part."""
        if self._asked.is_set():
            raise InterruptedError("another part of the run has ended it")

    def ask(self, patience: float = 10.0) -> None:
        """End all of them; returns when they have, or after so many seconds."""
        self._asked.set()
        with self._changed:
            self._changed.wait_for(lambda: not self._at_work, patience)


@dataclass(frozen=True)
class Task:
    """All that a worker is told: names, no data. `known` is what an earlier run made of the part, if it did."""

    part: Part
    map: SharedMap
    target: str
    reading: Input
    writing: Output
    rules: Rules
    jobs: int
    known: Record | None = None
    stop: Stop | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of a part, and on what machine. `again` is false where an earlier run had made it."""

    record: Record | None
    failure: Failure | None
    machine: dict[str, str]
    again: bool = True


def do_part(task: Task) -> Outcome:
    """Make a part, unless it is proven to be made already."""
    try:
        if task.stop is None:
            return _outcome(task)
        with task.stop.watching():
            return _outcome(task)
    except KafeatError as error:
        return failed(task.part.name, str(error), error.exit_code)
    except MemoryError:
        advice = "lower chunk_rows, n_components, or the parts that are made at once"
        return failed(task.part.name, f"{shown(task.part.place)}: out of memory: {advice}", 5)
    except OSError as error:
        return failed(
            task.part.name,
            without_secrets(f"{error.filename or task.part.place}: {error.strerror or error}"),
            5,
        )
    except Exception:  # a fault of ours: it must not end the other parts
        return failed(task.part.name, without_secrets(traceback.format_exc()), 1)


def failed(name: str, error: str, exit_code: int) -> Outcome:
    """The outcome of a part that could not be made."""
    return Outcome(None, Failure(name=name, error=error, exit_code=exit_code), {})


def record_of(part: Part, done: Done, entry: Entry | None, rejects: Entry | None = None) -> Record:
    """What is to be remembered of a part that is done; `entry` is its output, and `rejects` lists its bad rows."""
    worst = max(((share, column) for column, share in (done.drift or {}).items()), default=None)
    return Record(
        name=part.name,
        rows=done.rows,
        rows_read=done.rows_read,
        only=part.only,
        input=File(bytes=part.bytes, sha256=done.input_sha256, stamp=part.stamp),
        output=File(
            bytes=done.output_bytes or 0,
            sha256=done.output_sha256,
            stamp="" if entry is None else entry.stamp,
        ),
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


def _outcome(task: Task) -> Outcome:
    part = task.part
    if task.known is not None:
        kept = _proven(task, task.known)
        if kept is not None:
            return Outcome(kept, None, {}, again=False)
        # if it cannot be made again, nothing is left of the old one
        remove(task.target)
        if task.rules.rejects is not None:
            remove(task.rules.rejects)
    done = transform_file(
        task.map.map,
        part.place,
        task.target,
        reading=task.reading,
        writing=task.writing,
        rules=task.rules,
        jobs=task.jobs,
        announce=None if task.stop is None else lambda _rows: task.stop.check,  # type: ignore[union-attr]
        hashed=True,
        only=part.only,
        stamp=part.stamp,
    )
    rejects = None if task.rules.rejects is None else entry_of(task.rules.rejects)
    return Outcome(record_of(part, done, entry_of(task.target), rejects), None, this_machine())


def _proven(task: Task, known: Record) -> Record | None:
    """The record with its stamps of today, if hashes say that input and output are what they were."""
    part, entry = task.part, entry_of(task.target)
    if entry is None:
        return None
    if part.stamp != known.input.stamp and (
        known.input.sha256 is None or digest_of(part.place) != known.input.sha256
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
