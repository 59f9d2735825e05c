"""Record the finished parts of a run in its manifest while it goes on, and sum them up at the end."""

from __future__ import annotations

import math
import re
import threading
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass

from kafeat.chain.program import What
from kafeat.contract.threads import repeating
from kafeat.errors import ending
from kafeat.io.data_set import MANIFEST, is_hidden
from kafeat.io.storage.atomic import Guard
from kafeat.io.storage.base import Location
from kafeat.jobs.dataset.manifest import Drift, PartFailure
from kafeat.jobs.dataset.part import Outcome
from kafeat.jobs.dataset.plan import DatasetPlan
from kafeat.jobs.transform.outputs import Outputs
from kafeat.runtime.environment import now

# Writing the manifest may use at most a twentieth of the time of a run.
_SHARE = 20.0
_SECONDS = 2.0
_MINUTE = 60.0

_ALIKE = 10
"""The run stops if more than this many parts fail with the same error and none succeeds."""


@dataclass(frozen=True, kw_only=True)
class DatasetResult:
    """The result of a run over the parts of a data set. Numbers of rows, bytes and values are sums over all parts.

    Attributes:
        rows, rows_read, columns, what, seconds, clipped, bad_rows, first_bad_row, scale: As in a `TransformResult`.
        parts: Number of parts in the output folder, including the `kept` parts.
        kept: Number of parts that a previous run had written.
        rows_made: Number of rows that this run read, to write the parts that were not kept.
        bytes: Size of the parts.
        failed: Parts that could not be written.
        removed: Parts of the previous run that were removed, because they no longer have an input.
        unknown_files: Files in the output folder that no run of kafeat wrote.
        stopped: Why the run ended before all parts were tried; None if all parts were tried.
        unknown: A sentence on a part with a column in which all categories are new; None if no part has such a column.
        made_again: Parts that a second worker made after the first worker was lost.
        lost: Parts that could not be written and whose earlier output, made from another input, was removed.
        without_good: Names of the parts that have no rows, or only bad ones.
        largest_drift: The largest drift of a part; None if it was not measured for any part.
        drifts_known: Number of parts whose drift is known, including `kept` parts.
        least_p_value: The least p-value of a test of a part's mean features; None if no part was tested.
    """

    rows: int
    rows_read: int
    columns: int
    what: What
    seconds: float
    clipped: int
    bad_rows: int
    first_bad_row: str | None
    scale: float | None
    parts: int
    kept: int
    rows_made: int
    bytes: int
    failed: tuple[PartFailure, ...]
    removed: tuple[str, ...]
    unknown_files: tuple[str, ...]
    lost: tuple[str, ...]
    stopped: str | None
    unknown: str | None
    made_again: tuple[str, ...]
    without_good: tuple[str, ...]
    largest_drift: Drift | None
    drifts_known: int
    least_p_value: float | None


class Journal:
    """A manifest that is rewritten during a run, so that a killed run loses only its last seconds.

    Parts of the previous run stay in the manifest until a worker has compared their hashes.
    """

    def __init__(self, folder: Location, plan: DatasetPlan, guard: Guard) -> None:
        self._folder, self._manifest, self._guard = folder, plan.manifest, guard
        self._to_check, self._records = plan.to_check, {**plan.up_to_date}
        self._failures = dict[str, PartFailure]()
        self._environments = list(plan.manifest.machines)
        self._kept = self._tried = self._rows_made = 0
        self._made_again = list[str]()
        self.stopped: str | None = None
        self._unknown: str | None = None
        self._next = math.inf  # when to write next; never before the first `write`
        self._lock = threading.RLock()

    def add(self, outcome: Outcome) -> None:
        """Record the outcome of a part. Write the manifest, unless it was written a short time ago."""
        with self._lock:
            self._tried += 1
            if outcome.failure is not None:
                self._failures[outcome.failure.name] = outcome.failure
            if outcome.record is not None:
                made_by = outcome.record.made_by if not outcome.made else self._number_of(outcome.environment)
                more: dict[str, object] = {"made_by": made_by}
                if outcome.lost_workers:
                    more |= {"lost_workers": [*outcome.lost_workers], "made_again_by": outcome.worker}
                    self._made_again.append(outcome.record.name)
                self._records[outcome.record.name] = outcome.record.model_copy(update=more)
                self._rows_made += outcome.record.rows_read if outcome.made else 0
                if outcome.unknown is not None:
                    self._unknown = self._unknown or f"{outcome.record.name}: {outcome.unknown}"
            self._kept += not outcome.made
        if time.monotonic() >= self._next:
            self.write()

    def renewing(self) -> AbstractContextManager[None]:
        """Write the manifest once a minute during the block, so that a long part does not look like a dead run."""
        return repeating(lambda: self.write() if self._next < math.inf else None, _MINUTE, "kafeat-manifest")

    def must_stop(self, most: int | None) -> bool:
        """Return true after over `most` failures. With `most=None`, true if the first 11 parts fail with one error."""
        failed = len(self._failures)
        if most is not None and failed > most:
            self.stopped = f"{failed:,} parts failed, more than --max-failures {most}"
        elif (
            most is None
            and failed == self._tried > _ALIKE
            and len({*map(_cause, self._failures.values())}) == 1
        ):
            self.stopped = (
                f"the first {failed} parts failed alike; --max-failures N goes on until more than N fail"
            )
        return self.stopped is not None

    @property
    def failed(self) -> set[str]:
        """The names of the parts that could not be written."""
        return set(self._failures)

    @property
    def done(self) -> set[str]:
        """The names of the parts in the output folder."""
        return set(self._records)

    def _number_of(self, environment: dict[str, str]) -> int:
        if environment not in self._environments:
            self._environments.append(environment)
        return self._environments.index(environment)

    def write(self, **more: object) -> None:
        """Write the manifest with these fields changed. Before the first call, `add` and `leave` write nothing."""
        started = time.monotonic()
        with self._lock:
            tried = self.done | self.failed
            pending = [name for name in self._manifest.pending if name not in tried]
            waiting = (record for name, record in self._to_check.items() if name not in tried)
            records = [*self._records.values(), *waiting]
            more = {"machines": self._environments, "renewed": now(), "pending": pending, **more}
            manifest = self._manifest.with_parts(records, self._failures.values(), **more)
            manifest.write(self._folder, self._guard)
        ended = time.monotonic()
        self._next = ended + max(_SECONDS, _SHARE * (ended - started))

    def leave(self, error: BaseException, new: bool) -> None:
        """Write the manifest of a run that `error` ends early. If the folder is `new` and empty, remove it instead."""
        if self._next == math.inf:
            return
        if new and not self._failures and all(is_hidden(entry.name) for entry in self._folder.listed()):
            with self._guard():
                self._folder.join(MANIFEST).remove()
        else:
            state, code = ending(error)
            self.write(state=state, exit_code=code, end=now())

    def end(self, seconds: float) -> None:
        """Write the final manifest."""
        code = max((failure.exit_code for failure in self._failures.values()), default=0)
        state = "incomplete" if self._failures else "complete"
        self.write(state=state, exit_code=code, end=now(), seconds=round(seconds, 3), stopped=self.stopped)

    def result(self, kept: int, outputs: Outputs, seconds: float, **files: tuple[str, ...]) -> DatasetResult:
        """Sum up the parts. `files` are three more fields of the result: `removed`, `unknown_files` and `lost`."""
        records = sorted(self._records.values(), key=lambda one: one.name)
        bad = (f"{one.name}: {one.first_bad_row or 'a row'}" for one in records if one.bad_rows)
        drifts = [record.drift for record in records if record.drift is not None]
        return DatasetResult(
            parts=len(records),
            kept=kept + self._kept,
            rows_made=self._rows_made,
            rows=sum(record.rows for record in records),
            rows_read=sum(record.rows_read for record in records),
            bytes=sum(record.output.bytes for record in records),
            columns=outputs.width,
            what=outputs.what,
            scale=outputs.scale,
            seconds=seconds,
            clipped=sum(record.clipped for record in records),
            bad_rows=sum(record.bad_rows for record in records),
            stopped=self.stopped,
            unknown=self._unknown,
            made_again=tuple(self._made_again),
            failed=tuple(self._failures[name] for name in sorted(self._failures)),
            largest_drift=max(drifts, key=lambda drift: drift.share, default=None),
            drifts_known=len(drifts),
            least_p_value=min((one.p_value for one in records if one.p_value is not None), default=None),
            **files,
            without_good=tuple(one.name for one in records if one.rows_read == one.bad_rows),
            first_bad_row=next(bad, None),
        )


def _cause(failure: PartFailure) -> str:
    """Return an error without the name of its part and without digits, so that similar errors have equal texts."""
    return re.sub(r"\d+", "", failure.error.partition(": ")[2])
