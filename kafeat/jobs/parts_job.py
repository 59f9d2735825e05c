"""A run over parts, when all is checked and its folders are its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from kafeat.backends import started
from kafeat.blas import one_blas_thread
from kafeat.engine import completed
from kafeat.io.drafts import remove_dead_below
from kafeat.io.formats import format_of
from kafeat.io.locations import absolute, entry_of, join
from kafeat.io.parts import Part
from kafeat.io.uri import shown
from kafeat.jobs.earlier import Earlier
from kafeat.jobs.journal import Journal, Run
from kafeat.jobs.manifest import Manifest, Record
from kafeat.jobs.options import Input, Output, Rules
from kafeat.jobs.part import Outcome, Task, failed, kafeat_part
from kafeat.jobs.split import pour_parts
from kafeat.machine import count_jobs
from kafeat.pool import Engine, Pool
from kafeat.shared_map import SharedMap
from kafeat.stop import Stop

Progress = Callable[[int], None]
Announce = Callable[[int | None], Progress]


@dataclass(frozen=True)
class PartsJob:
    """What was asked for, and what there is already.

    `parts` is None for a text, which is cut as it is read. `writing.guard` is held around all that is written or
    removed. `make` makes a folder.
    """

    map: SharedMap
    source: str
    target: str
    reading: Input
    writing: Output
    rules: Rules
    engine: Engine
    rows_per_file: int | None
    parts: list[Part] | None
    earlier: Earlier
    make: Callable[[str], None]

    def run(self, announce: Announce) -> Run:
        """Make the parts that the earlier run does not prove done."""
        began, earlier, manifest = time.perf_counter(), self.earlier, self._manifest()
        proven, known = self._kept(manifest)
        if (proven or known) and earlier.manifest is not None:
            manifest = manifest.model_copy(update={"machines": earlier.manifest.machines})
        journal = Journal(self.target, manifest, list(proven.values()), self.writing.guard)
        try:
            with started(self._engine) as pool, one_blas_thread():  # it is up before anything is removed
                removed = self._clear({*proven, *known})
                journal.write()
                told = announce(None if self.parts is None else len(self.parts))
                told(len(proven))
                with closing(self._outcomes(pool, proven, known)) as outcomes:
                    for outcome in outcomes:
                        journal.add(outcome)
                        told(1)
        except BaseException:
            self._sweep()
            journal.leave(new=not earlier.entries and self.engine.ends)
            raise
        self._sweep()
        seconds = time.perf_counter() - began
        journal.end(seconds)
        gone = [] if self.parts is None else sorted({*removed} - {part.name for part in self.parts})
        strange = earlier.strange(self.target, {*journal.done, *removed})
        return journal.run(len(proven), self.map.map.n_components, seconds, tuple(gone), strange)

    def _manifest(self) -> Manifest:
        return Manifest(
            input=shown(self.source),
            map=self.map.digest,
            settings=self._settings(),
            engine=self.engine.name,
            foreign=sorted(self.earlier.foreign),
        )

    def _settings(self) -> dict[str, object]:
        """All that the bytes of the parts depend on, besides the map and the input."""
        reading, writing = self.reading, self.writing
        return {
            "input_format": reading.format,
            "delimiter": reading.delimiter,
            "header": reading.header,
            "format": writing.format,
            "keep": None if writing.keep is None else list(writing.keep),
            "layout": writing.layout,
            "prefix": writing.prefix,
            "compression": writing.compression,
            "dtype": writing.dtype,
            "on_bad_rows": self.rules.on_bad_rows,
            "rows_per_file": self.rows_per_file,
        }

    def _kept(self, manifest: Manifest) -> tuple[dict[str, Record], dict[str, Record]]:
        """Parts that are proven done, and those of which hashes must tell."""
        if self.parts is not None:
            return self.earlier.of_parts(manifest, self.parts, self.rules)
        entry = None if self.source == "-" else entry_of(self.source)
        return self.earlier.whole(manifest, entry, self.rules), {}

    @property
    def _engine(self) -> Engine:
        """Here no more parts are made at once than there are: they share the threads."""
        if not self.engine.here:
            return self.engine
        parts = len(self.parts) if self.parts else 1
        return replace(self.engine, jobs=min(count_jobs(self.engine.jobs), parts))

    def _clear(self, good: set[str]) -> list[str]:
        """Remove what is left of earlier runs, but for good parts; returns the parts that are no more."""
        with self.writing.guard():
            self._sweep()
            return self.earlier.remove_stale(self.target, self.rules.rejects, good)

    def _sweep(self) -> None:
        for folder in (self.target, self.rules.rejects):
            if folder is not None:
                remove_dead_below(folder)

    def _outcomes(
        self, pool: Pool, proven: Mapping[str, Record], known: Mapping[str, Record]
    ) -> Generator[Outcome]:
        """What becomes of the parts, in the order in which they are done."""
        if self.parts is not None:
            parts = [part for part in self.parts if part.name not in proven]
            yield from completed(pool, kafeat_part, self._tasks(parts, known, pool.stop), _given_up)
        elif not proven:
            yield from pour_parts(
                self.map.map, self.source, self.target, self.reading, self.writing, self.rules, self.engine.jobs,
                self.rows_per_file or 0, self.earlier.may_replace,
            )  # fmt: skip

    def _tasks(self, parts: list[Part], known: Mapping[str, Record], stop: Stop) -> list[Task]:
        for below in {os.path.dirname(part.name) for part in parts} - {""}:
            for folder in (self.target, self.rules.rejects):
                if folder is not None:
                    self.make(join(folder, below))
        here = self.engine.here
        jobs = max(1, count_jobs(self.engine.jobs) // max(1, len(parts))) if here else 1
        # a worker may stand in another folder
        place = (lambda name: name) if here else absolute
        rejects = None if self.rules.rejects is None else place(self.rules.rejects)
        return [
            Task(
                replace(part, place=place(part.place)),
                self.map,
                place(self.target),
                self.reading,
                replace(
                    self.writing,
                    format=format_of(part.name),
                    overwrite=self.earlier.may_replace(part.name),
                    sweep=False,
                ),
                replace(self.rules, rejects=rejects),
                jobs,
                stop,
                known.get(part.name),
            )
            for part in parts
        ]


def _given_up(task: Task, why: str) -> Outcome:
    return failed(
        task.part.name,
        f"{shown(task.part.place)}: expected a worker to finish, got none that did ({why}); is there memory enough, "
        "and the same kafeat?",
        5,
    )
