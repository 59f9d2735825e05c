"""Transform one part of a data set, unless it is up to date. Errors are returned, not raised."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from kafeat.dataframes import SharedMap
from kafeat.errors import KafeatError, without_secrets
from kafeat.io.storage.atomic import Guard
from kafeat.io.storage.base import Entry, Location
from kafeat.io.storage.data_set import Part
from kafeat.io.writers.options import OutputOptions
from kafeat.jobs.dataset.manifest import Drift, File, PartFailure, PartRecord, remove_written
from kafeat.jobs.transform.options import InputOptions, RowOptions, TransformResult
from kafeat.jobs.transform.side_files import rejects_name
from kafeat.jobs.transform.transform import transform_file
from kafeat.runtime.engine import Stop
from kafeat.runtime.environment import machine, versions

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
