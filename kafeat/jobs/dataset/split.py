"""Cut one big input into parts at the borders of chunks, so that the bytes of every row stay the same."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import replace
from itertools import chain, count, islice

from kafeat.errors import KafeatError, UsageError
from kafeat.io.storage.atomic import WrittenFile, check_place
from kafeat.io.storage.data_set import Part, stem
from kafeat.io.storage.formats import OUTPUTS, format_of
from kafeat.io.storage.locations import entry_of, join
from kafeat.io.storage.uri import name_of
from kafeat.io.writers.options import OutputOptions
from kafeat.jobs.dataset.part import Outcome, failure_outcome, record_of, this_environment
from kafeat.jobs.transform.options import InputOptions, RowOptions
from kafeat.jobs.transform.transform import OpenTransform
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.pool import Engine


def ranges(
    source: str, reading: InputOptions, writing: OutputOptions, chunk_rows: int, rows: int
) -> list[Part] | None:
    """Return parts of whole chunks and at most `rows` rows; None if the input must be read from its first row."""
    if rows < chunk_rows:
        raise UsageError(
            f"--rows-per-file: expected at least {chunk_rows:,}, the height of the map's chunks, got {rows:,}"
        )
    entry = None if source == "-" else entry_of(source)
    if entry is None:
        return None
    with reading.open(source, entry.stamp) as opened:
        if opened.rows is None or not opened.seekable:
            return None
        height = rows - rows % chunk_rows
        starts = range(0, max(1, opened.rows), height)
        return [
            Part(
                name_of_part(source, reading, writing, i, len(starts)),
                source,
                entry.bytes,
                entry.stamp,
                (start, min(start + height, opened.rows)),
            )
            for i, start in enumerate(starts)
        ]


def check_pouring(source: str, rules: RowOptions, engine: Engine) -> None:
    """Refuse options that do not work with text, whose rows are cut while they are read."""
    if not engine.in_this_process:
        raise UsageError(
            f"{source}: expected Parquet or NPY for --engine {engine.name}, got text, whose rows cannot be found "
            "without reading all before; --engine threads cuts it"
        )
    if rules.rejects is not None:
        raise UsageError("--rejects: expected Parquet or NPY with --rows-per-file, got text")


def pour_parts(
    fm: FeatureMap,
    source: str,
    target: str,
    reading: InputOptions,
    writing: OutputOptions,
    rules: RowOptions,
    jobs: int | None,
    rows: int,
    may_replace: Callable[[str], bool],
) -> Generator[Outcome]:
    """Cut and transform text from its first row to its last, with the threads of this process."""
    entry = None if source == "-" else entry_of(source)
    whole = Part("", source, entry.bytes if entry else 0, entry.stamp if entry else "")
    format = format_of(name_of_part(source, reading, writing, 0, 1))
    writing = replace(writing, format=format, overwrite=True, sweep=False)
    with reading.open(source, None if entry is None else entry.stamp) as opened:
        stream = OpenTransform(fm, opened, format, writing, rules, jobs)
        chunks = stream.chunks()
        for number in count():
            name = name_of_part(source, reading, writing, number, 0)
            first = None if number == 0 else next(chunks, None)
            if number and first is None:
                return
            at = 0 if first is None else first.start
            group = chain(
                [] if first is None else [first], islice(chunks, rows // fm.chunk_rows - (number > 0))
            )
            started, written = time.perf_counter(), WrittenFile()
            try:
                place = join(target, name)
                check_place(place, may_replace(name))
                counts = stream.pour(group, place, None, None, at, written)
            except KafeatError as error:
                yield failure_outcome(name, str(error), error.exit_code)
                deque(group, maxlen=0)  # skip its other rows; broken text ends here
                continue
            done = counts.result(time.perf_counter() - started, None, written)
            part = replace(whole, name=name, only=(at, at + done.rows_read))
            yield Outcome(record_of(part, done), None, this_environment())


def name_of_part(source: str, reading: InputOptions, writing: OutputOptions, number: int, parts: int) -> str:
    """Return the name of an output part by its number; `parts` is their total, for the number of digits."""
    own = format_of(source, reading.format)
    own = own if own in OUTPUTS else "parquet"
    base = "part" if source == "-" else stem(name_of(source))
    return f"{base}-{number:0{max(5, len(str(parts)))}d}.{writing.format or own}"
