"""Stream a data set of many files through a map to a folder: each part by itself, complete or not there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from kafeat.backends import Engine
from kafeat.blas import one_blas_thread
from kafeat.engine import completed, reach
from kafeat.feature_map import FeatureMap
from kafeat.io.drafts import remove_dead_below
from kafeat.io.formats import format_of
from kafeat.io.locations import absolute, join, make_folder
from kafeat.io.parts import Part
from kafeat.io.uri import parent, shown
from kafeat.jobs.beginning import Asked, Beginning
from kafeat.jobs.journal import Journal, Run
from kafeat.jobs.manifest import Record
from kafeat.jobs.options import STRICT, Input, Output, Rules
from kafeat.jobs.part import Outcome, Stop, Task, do_part, failed
from kafeat.jobs.rejects import rejects_of
from kafeat.jobs.split import pour_parts
from kafeat.running import count_jobs
from kafeat.shared_map import SharedMap, shared

Progress = Callable[[int], None]
Announce = Callable[[int | None], Progress]


def transform_parts(
    model: str | FeatureMap,
    source: str,
    target: str,
    *,
    reading: Input | None = None,
    writing: Output | None = None,
    rules: Rules = STRICT,
    engine: Engine | None = None,
    rows_per_file: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    stats: str | None = None,
    announce: Announce | None = None,
) -> Run:
    """Write the features of every part of `source` to a part of the same name below the folder `target`.

    `source` is a folder, a glob or a list of names; with `rows_per_file` one file, which is cut into parts of so many
    rows at most. `resume` keeps parts that the manifest of an earlier run proves done and unchanged. A part that fails
    does not end the others. `stats` is a file that the caller writes: it is refused among the parts.
    `announce(parts)` returns what is told of each part that is done.
    """
    engine = engine or Engine()
    asked = Asked(
        model, source, target, reading or Input(), writing or Output(), rules, engine, rows_per_file, resume,
        overwrite, stats,
    )  # fmt: skip
    asked.check()
    started = time.perf_counter()
    travelling = shared(model)
    fm, start = travelling.map, Beginning.of(asked, travelling)
    parts, earlier, proven = start.parts, start.earlier, start.proven
    if earlier.manifest is not None and not engine.here:
        reach(engine)  # before anything is removed
    make_folder(target)
    remove_dead_below(target)
    wanted = None if parts is None else {part.name for part in parts}
    removed = earlier.remove_stale(target, rules.rejects, wanted, {*proven, *start.known})
    journal = Journal(target, start.manifest, list(proven.values()))
    told = announce(None if parts is None else len(parts)) if announce else (lambda _done: None)
    told(len(proven))
    stop = Stop()
    if parts is None and not proven:
        rows = rows_per_file or 0
        outcomes = pour_parts(fm, source, target, asked.reading, asked.writing, rules, engine, rows, stop)
    else:
        plan = _Plan(
            travelling, target, asked.reading, asked.writing, rules, engine, stop if engine.here else None
        )
        outcomes = plan.outcomes([part for part in parts or () if part.name not in proven], start.known)
    try:
        # closed before anything else: then no worker is left that writes
        with one_blas_thread(), closing(outcomes):
            for outcome in outcomes:
                journal.add(outcome)
                told(1)
    except BaseException as error:
        if parts is not None and journal.done:
            done = f"{len(journal.done):,} of {len(parts):,} parts are done"
            error.add_note(f"{done}: --resume goes on with the others")
        stop.ask()
        remove_dead_below(target)
        journal.leave(new=not earlier.entries)
        raise
    seconds = time.perf_counter() - started
    journal.end(seconds)
    remove_dead_below(target)
    strange = earlier.strange(journal.done)
    return journal.run(len(proven), fm.n_components, seconds, tuple(removed), strange)


@dataclass(frozen=True)
class _Plan:
    map: SharedMap
    target: str
    reading: Input
    writing: Output
    rules: Rules
    engine: Engine
    stop: Stop | None

    def outcomes(self, parts: Sequence[Part], known: dict[str, Record]) -> Generator[Outcome]:
        """What becomes of the parts, in the order in which they are done."""
        if not parts:
            return
        engine, inner = self.engine, 1
        if engine.here:
            at_once = min(count_jobs(engine.jobs), len(parts))
            engine, inner = replace(engine, jobs=at_once), max(1, count_jobs(engine.jobs) // at_once)
        for folder in {os.path.dirname(part.name) for part in parts}:
            make_folder(join(self.target, folder) if folder else self.target)
        tasks = [self._task(part, inner, known.get(part.name)) for part in parts]
        for task, outcome in completed(engine, do_part, tasks):
            yield outcome or failed(
                task.part.name,
                f"{shown(task.part.place)}: expected a worker to finish, got none: it died every time; is there memory "
                "enough?",
                5,
            )

    def _task(self, part: Part, jobs: int, known: Record | None) -> Task:
        writing = replace(self.writing, format=format_of(part.name), overwrite=True, sweep=False)
        rules = self.rules
        if rules.rejects is not None:
            rejects = absolute(rejects_of(rules.rejects, part.name))
            make_folder(parent(rejects))
            rules = replace(rules, rejects=rejects)
        target = join(self.target, part.name)
        if not self.engine.here:  # a worker may stand in another folder
            part, target = replace(part, place=absolute(part.place)), absolute(target)
        return Task(part, self.map, target, self.reading, writing, rules, jobs, known, self.stop)
