"""What a run over parts has done so far: kept in its manifest while it goes on, and summed up at its end."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from kafeat.io.storage.atomic import Guard
from kafeat.io.storage.data_set import MANIFEST, is_hidden
from kafeat.io.storage.locations import join, listed, remove
from kafeat.jobs.dataset.manifest import Drift, Failure, Manifest, Record
from kafeat.jobs.dataset.part import Outcome

# The manifest of a running run costs at most a twentieth of the time.
_SHARE = 20.0
_SECONDS = 2.0


@dataclass(frozen=True)
class Run:
    """What a run over parts did: `parts` are there now, of which `kept` were made by an earlier run.

    `failed` are those that could not be made, `removed` outputs of an earlier run whose inputs are no more, `strange`
    files of the output's folder that no run of kafeat has made. `largest_drift` is that of the `drifts_known` parts,
    kept ones too, whose drift was asked for when they were made.
    """

    parts: int
    kept: int
    rows: int
    rows_read: int
    bytes: int
    columns: int
    seconds: float
    clipped: int
    bad_rows: int
    failed: tuple[Failure, ...]
    removed: tuple[str, ...]
    strange: tuple[str, ...]
    largest_drift: Drift | None
    drifts_known: int


class Journal:
    """What is done so far, in a manifest that says so: a run that is killed loses the last seconds of it."""

    def __init__(self, folder: str, manifest: Manifest, records: list[Record], guard: Guard) -> None:
        self._folder, self._manifest, self._guard = folder, manifest, guard
        self._records, self._failures = {record.name: record for record in records}, dict[str, Failure]()
        self._machines = list(manifest.machines)
        self._kept = 0
        self._next = math.inf  # it is not begun

    def add(self, outcome: Outcome) -> None:
        if outcome.failure is not None:
            self._failures[outcome.failure.name] = outcome.failure
        if outcome.record is not None:
            made_by = outcome.record.made_by if not outcome.again else self._number(outcome.machine)
            self._records[outcome.record.name] = outcome.record.model_copy(update={"made_by": made_by})
        self._kept += not outcome.again
        if time.monotonic() >= self._next:
            self.write()

    @property
    def done(self) -> set[str]:
        """The names of the parts that are there."""
        return set(self._records)

    def _number(self, machine: dict[str, str]) -> int:
        if machine not in self._machines:
            self._machines.append(machine)
        return self._machines.index(machine)

    def write(self, **more: object) -> None:
        """Write it: first when the run begins."""
        started = time.monotonic()
        manifest = self._manifest.with_parts(
            self._records.values(), self._failures.values(), machines=self._machines, **more
        )
        manifest.write(self._folder, self._guard)
        ended = time.monotonic()
        self._next = ended + max(_SECONDS, _SHARE * (ended - started))

    def leave(self, new: bool) -> None:
        """Before its end: what is done is noted; a folder that was empty, and is so still, keeps nothing."""
        if self._next == math.inf:
            return
        if new and not self._failures and all(is_hidden(entry.name) for entry in listed(self._folder)):
            with self._guard():
                remove(join(self._folder, MANIFEST))
        else:
            self.write()

    def end(self, seconds: float) -> None:
        self.write(state="incomplete" if self._failures else "complete", seconds=round(seconds, 3))

    def run(
        self, kept: int, columns: int, seconds: float, removed: tuple[str, ...], strange: tuple[str, ...]
    ) -> Run:
        records = list(self._records.values())
        drifts = [record.drift for record in records if record.drift is not None]
        return Run(
            parts=len(records),
            kept=kept + self._kept,
            rows=sum(record.rows for record in records),
            rows_read=sum(record.rows_read for record in records),
            bytes=sum(record.output.bytes for record in records),
            columns=columns,
            seconds=seconds,
            clipped=sum(record.clipped for record in records),
            bad_rows=sum(record.bad_rows for record in records),
            failed=tuple(self._failures[name] for name in sorted(self._failures)),
            removed=removed,
            strange=strange,
            largest_drift=max(drifts, key=lambda drift: drift.share, default=None),
            drifts_known=len(drifts),
        )
