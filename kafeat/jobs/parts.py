"""Stream a data set of many files through a map to a folder: each part by itself, complete or not there."""

from __future__ import annotations

from dataclasses import replace

from kafeat.errors import SystemRefusedError, UsageError
from kafeat.feature_map import FeatureMap
from kafeat.io.locations import kind_of, making
from kafeat.io.ownership import owning
from kafeat.io.parts import Parts, is_data_set, list_parts, renamed
from kafeat.io.uri import shown
from kafeat.jobs.earlier import Earlier
from kafeat.jobs.journal import Run
from kafeat.jobs.options import STRICT, Input, Output, Rules
from kafeat.jobs.overlaps import Read, Written, refuse_overlaps
from kafeat.jobs.parts_job import Announce, PartsJob
from kafeat.jobs.split import check_pouring, ranges
from kafeat.pool import Engine
from kafeat.shared_map import shared


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
    reading, writing, engine = reading or Input(), writing or Output(), engine or Engine()
    engine.check()
    _refuse(reading, target, resume, overwrite)
    travelling = shared(model)
    rules.check(travelling.map)
    found = _found(source, reading, rows_per_file)
    _refuse_overlaps(source, found, model, target, rules.rejects, stats)
    parts = (
        ranges(source, reading, writing, travelling.map.chunk_rows, rows_per_file or 0)
        if found is None
        else renamed(found.parts, writing.format, reading.format)
    )
    if parts is None:
        check_pouring(source, rules, engine)
    folders = [folder for folder in (target, rules.rejects) if folder is not None]
    with making(*folders) as make, owning(*folders) as token:
        earlier = Earlier.of(target, resume, overwrite, rules.rejects)
        writing = replace(writing, guard=token.publishing)
        job = PartsJob(
            travelling, source, target, reading, writing, rules, engine, rows_per_file, parts, earlier, make
        )
        return job.run(announce or (lambda _parts: lambda _done: None))


def _refuse(reading: Input, target: str, resume: bool, overwrite: bool) -> None:
    if reading.limit is not None:
        raise UsageError(
            "--limit: expected one file, got many or --rows-per-file: try it on one of the parts"
        )
    if target == "-":
        raise UsageError("-: expected a folder for the parts of the output, got standard output")
    if resume and overwrite:
        raise UsageError("--resume: expected it or --overwrite, got both: only one keeps what is done")
    if kind_of(target) not in (None, "folder"):
        raise SystemRefusedError(f"{target}: expected a folder for the parts of the output, got a file")


def _refuse_overlaps(
    source: str, found: Parts | None, model: object, target: str, rejects: str | None, stats: str | None
) -> None:
    """Refuse what would be replaced, or be read as a part by the next run; `found` None is one file."""
    if rejects == "-":
        raise UsageError("--rejects: expected a folder for the rejects of the parts, got standard output")
    if rejects is not None and kind_of(rejects) not in (None, "folder"):
        raise SystemRefusedError(f"{rejects}: expected a folder for the rejects of the parts, got a file")
    parts = () if found is None else found.parts
    read = [Read("the input", (source, *(part.place for part in parts)), found)]
    read += [Read("the model", (model,))] if isinstance(model, str) else []
    written = [Written("an output", target, folder=True)]
    written += [] if rejects is None else [Written("--rejects", rejects, folder=True)]
    written += [] if stats is None else [Written("--stats", stats)]
    refuse_overlaps(read, written)


def _found(source: str, reading: Input, rows_per_file: int | None) -> Parts | None:
    """The files of the input; None for one that is cut."""
    if rows_per_file is None:
        return list_parts(source, reading.format)
    if source != "-" and is_data_set(source):
        raise UsageError(
            f"--rows-per-file: expected one file to cut, got many: {shown(source)}; each of them is a part without it"
        )
    return None
