"""Is a finished output what the map makes of the input? Parts of it are made again, and hashes are compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappush, heappushpop
from typing import Any, Literal

from kafeat.errors import DataError, GateError
from kafeat.io.columns.selection import match
from kafeat.io.readers.base import Chunk
from kafeat.io.storage.files import digest_of, opened
from kafeat.io.writers.passthrough_compare import KeptRows, taken
from kafeat.jobs.transform.options import InputOptions
from kafeat.jobs.verify.output_rows import OutputRows
from kafeat.maths.row_sample import row_hashes
from kafeat.model.feature_map import FeatureMap, load
from kafeat.runtime.threads import RowPolicy, Transformed
from kafeat.types import Floats


@dataclass(frozen=True)
class Verified:
    """What was looked at: rows of the output, how many of them were made again, and how far they were off.

    `largest_difference` is relative to the largest feature of its row; 0 means equal to the last bit. `hashes` names
    what has the hash that the stats file tells.
    """

    rows: int
    rows_compared: int
    largest_difference: float
    hashes: tuple[str, ...]


def verify_file(
    model: str,
    source: str,
    target: str,
    *,
    reading: InputOptions | None = None,
    reading_output: InputOptions | None = None,
    rows: int = 100_000,
    seed: int = 0,
    stats: str | None = None,
    on_bad_rows: Literal["error", "drop", "null"] = "error",
    output_dtype: str | None = None,
    jobs: int | None = None,
) -> Verified:
    """Make random chunks of about `rows` rows again, and count all rows; `GateError` where the output is not right.

    `output_dtype` is that of a text output, which does not tell it; the map's if nothing does. With `drop` all rows are
    made again, as nothing else tells where a row has gone.
    """
    fm = load(model)
    known = {} if stats is None else _read_stats(stats)
    hashes = _check_hashes(known, fm, model, source, target)
    with (
        (reading or InputOptions()).open(source) as given,
        (reading_output or InputOptions()).open(target) as made,
    ):
        maker = made.notes.get("map")
        if maker not in (None, fm.digest):
            raise GateError(
                f"{target}: expected an output of {model} ({str(fm.digest)[:12]}), got one of the map {str(maker)[:12]}"
            )
        output = OutputRows(made, given, fm, output_dtype or known.get("output", {}).get("dtype"))
        columns = match(given, fm.columns, ())
        size = None if on_bad_rows == "drop" else max(1, -(-rows // fm.chunk_rows))
        aside = on_bad_rows != "error"
        chunks = given.chunks(
            columns, output.keep, fm.chunk_rows, typed_passthrough=output.typed, set_aside=aside
        )
        chosen = _Chosen(chunks, seed, size)
        compared, largest = 0, 0.0
        for done in fm.run(iter(chosen), output, jobs, RowPolicy(set_aside=True)):
            if on_bad_rows != "drop":
                output.skip_to(done.chunk.start)
            expected, kept = _expected(done, on_bad_rows)
            largest = max(largest, output.compare(expected, kept, done.chunk))
            compared += len(expected)
        output.end()
        given.check_unchanged()
        made.check_unchanged()
    expected_rows = output.at if on_bad_rows == "drop" else chosen.rows
    if output.rows != expected_rows:
        raise GateError(f"{target}: expected {expected_rows:,} rows, as {source} tells, got {output.rows:,}")
    return Verified(output.rows, compared, largest, hashes)


def _expected(done: Transformed, on_bad_rows: str) -> tuple[Floats, KeptRows | None]:
    if done.aside and on_bad_rows == "error":
        raise done.chunk.located(done.aside[0])
    kept = done.chunk.passthrough
    if done.good is None or on_bad_rows != "drop":
        return done.features, kept
    return done.features[done.good], None if kept is None else taken(kept, done.good)


class _Chosen:
    """`size` random chunks of a source (all if None), with the first and the last; all rows are counted.

    Those with the smallest hashes of what has been read are taken, so some more are: the source need not tell its rows.
    """

    def __init__(self, chunks: Iterator[Chunk], seed: int, size: int | None) -> None:
        self._chunks, self._seed, self._size = chunks, seed, size
        self._smallest: list[int] = []
        self.rows = 0

    def __iter__(self) -> Iterator[Chunk]:
        last: Chunk | None = None
        for number, chunk in enumerate(self._chunks):
            self.rows += chunk.rows
            last = chunk
            if self._picks(number):
                last = None
                yield chunk
        if last is not None:
            yield last

    def _picks(self, number: int) -> bool:
        if self._size is None:
            return True
        smallness = -int(row_hashes(self._seed, number, 1)[0])
        if len(self._smallest) < self._size:
            heappush(self._smallest, smallness)
            return True
        return heappushpop(self._smallest, smallness) != smallness


def _read_stats(path: str) -> dict[str, Any]:
    with opened(path) as file:
        try:
            content = json.loads(file.readall())
            sections = [content[name] for name in ("model", "input", "output")]
            if all(isinstance(section, dict) for section in sections):
                return dict(content)
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
    raise DataError(f"{path}: expected a file made by kafeat transform --stats, got another")


def _check_hashes(
    known: dict[str, Any], fm: FeatureMap, model: str, source: str, target: str
) -> tuple[str, ...]:
    """Which files have the hashes that the stats tell; one that has another is refused."""
    found = []
    for what, place in (("model", model), ("input", source), ("output", target)):
        expected = known.get(what, {}).get("sha256")
        if expected is None or place == "-":  # standard input is read but once
            continue
        got = fm.digest if what == "model" else digest_of(place)
        if got != expected:
            raise GateError(
                f"{place}: expected the {what} with SHA-256 {str(expected)[:12]}…, got {str(got)[:12]}…"
            )
        found.append(what)
    return tuple(found)
