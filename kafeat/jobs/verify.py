"""Is a finished output what the map makes of the input? Parts of it are made again, and hashes are compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import heappush, heappushpop
from typing import Any, Literal

import numpy as np

from kafeat.errors import DataError, GateError, quoted, spell_row
from kafeat.feature_map import FeatureMap, load
from kafeat.io.columns import Column, Columns
from kafeat.io.files import digest_of, opened
from kafeat.io.selection import match
from kafeat.io.source import Chunk, Field, Source
from kafeat.jobs.options import Input
from kafeat.running import Transformed, Watch
from kafeat.sampling import row_hashes
from kafeat.types import Floats

# Of the largest feature of a row: another processor or library may round otherwise.
TOLERANCE = {"float16": 2e-3, "float32": 1e-4, "float64": 1e-9}
_OF_ARROW = {"halffloat": "float16", "float": "float32", "double": "float64"}


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
    reading: Input | None = None,
    reading_output: Input | None = None,
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
        (reading or Input()).open(source) as given,
        (reading_output or Input()).open(target) as made,
    ):
        if on_bad_rows != "error":
            given.set_aside()
        maker = made.notes.get("map")
        if maker not in (None, fm.digest):
            raise GateError(
                f"{target}: expected an output of {model} ({str(fm.digest)[:12]}), got one of the map {str(maker)[:12]}"
            )
        output = _Rows(made, fm, output_dtype or known.get("output", {}).get("dtype"))
        columns = match(given, fm.columns, ())
        size = None if on_bad_rows == "drop" else max(1, -(-rows // fm.chunk_rows))
        chosen = _Chosen(given.chunks(columns, (), fm.chunk_rows), seed, size)
        compared, largest = 0, 0.0
        for done in fm.run(iter(chosen), output, jobs, Watch(set_aside=True)):
            if on_bad_rows != "drop":
                output.skip_to(done.chunk.start)
            expected = _expected(done, on_bad_rows)
            largest = max(largest, output.compare(expected, done.chunk))
            compared += len(expected)
        output.end()
    expected_rows = output.at if on_bad_rows == "drop" else chosen.rows
    if output.rows != expected_rows:
        raise GateError(f"{target}: expected {expected_rows:,} rows, as {source} tells, got {output.rows:,}")
    return Verified(output.rows, compared, largest, hashes)


def _expected(done: Transformed, on_bad_rows: str) -> Floats:
    if done.aside and on_bad_rows == "error":
        raise done.chunk.located(done.aside[0])
    return done.features[done.good] if done.good is not None and on_bad_rows == "drop" else done.features


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


class _Rows:
    """The features of an output, read from its first row to its last, and memory to make them again."""

    def __init__(self, made: Source, fm: FeatureMap, dtype: str | None) -> None:
        self._made, self._width = made, fm.n_components
        fields = _features(made, fm)
        _check_names(made, fields)
        columns = Columns(
            tuple(Column(field.name, field.width) for field in fields), False, None, missing=True
        )
        self._dtype = np.dtype(dtype or fm.dtype) if made.untyped else _dtype(made, fields)
        lists = fields[0].width is not None
        self._order: Literal["C", "F"] = "C" if made.positional or lists else "F"
        self._chunks = made.chunks(columns, (), fm.chunk_rows)
        self._chunk: Chunk | None = next(self._chunks, None)
        self.at = 0
        self.rows = 0

    def buffer(self, start: int, rows: int) -> Floats:
        """Memory in the order that the output was written in, since the last bit depends on it."""
        del start
        return np.empty((rows, self._width), self._dtype, order=self._order)

    def filled(self, start: int, block: Floats) -> None:
        return

    def skip_to(self, row: int) -> None:
        """The next row to compare is that one."""
        self.at = row

    def compare(self, expected: Floats, made_of: Chunk) -> float:
        """The largest difference of the next rows to these."""
        largest = 0.0
        while len(expected):
            got = self._next(len(expected))
            if not len(got):
                raise GateError(
                    f"{self._made.place}: expected more than {self.at:,} rows, as {made_of.place} has them, got no more"
                )
            largest = max(largest, self._difference(expected[: len(got)], got))
            expected = expected[len(got) :]
            self.at += len(got)
        return largest

    def _next(self, most: int) -> Floats:
        chunk = self._chunk
        while chunk is not None and chunk.start + chunk.rows <= self.at:
            self.rows = chunk.start + chunk.rows
            chunk = self._chunk = next(self._chunks, None)
        if chunk is None:
            return np.empty((0, self._width))
        first = self.at - chunk.start
        return chunk.matrix(np.dtype(np.float64))[first : first + most]

    def _difference(self, expected: Floats, got: Floats) -> float:
        rounded = got.astype(self._dtype)
        with np.errstate(invalid="ignore"):
            apart = np.abs(rounded.astype(np.float64) - expected)
        apart[np.isnan(rounded) & np.isnan(expected)] = 0.0
        size = np.maximum(np.nan_to_num(np.abs(expected)).max(axis=1), np.finfo(np.float32).tiny)
        relative = apart.max(axis=1) / size
        wrong = ~(relative <= TOLERANCE[self._dtype.name])
        if wrong.any():
            row = int(np.argmax(wrong))
            column = int(np.argmax(np.where(np.isnan(apart[row]), np.inf, apart[row])))
            raise GateError(
                f"{self._made.place}: {spell_row(self.at + row)}, feature {column}: expected "
                f"{expected[row, column]:.9g}, got {rounded[row, column]:.9g}"
            )
        return float(relative.max(initial=0.0))

    def end(self) -> None:
        """Count the rows that are left."""
        while self._chunk is not None:
            self.rows = self._chunk.start + self._chunk.rows
            self._chunk = next(self._chunks, None)


def _dtype(made: Source, fields: list[Field]) -> np.dtype[Any]:
    """That of the features; `fixed_size_list<element: float>[4]` is one of float."""
    spelled = {
        name for field in fields for name in re.findall(r"halffloat|float(?:16|32|64)?|double", field.spelled)
    }
    if len(spelled) != 1:
        raise DataError(
            f"{made.place}: expected features of one floating type, got {', '.join(sorted(spelled))}"
        )
    name = spelled.pop()
    dtype: np.dtype[Any] = np.dtype(_OF_ARROW.get(name, name))
    return dtype


def _features(made: Source, fm: FeatureMap) -> list[Field]:
    """The fields that hold the features: the last ones, behind the kept columns."""
    fields = list(made.fields)
    last = fields[-1:]
    if last and last[0].kind == "list" and last[0].width in (None, fm.n_components):
        return [replace(last[0], width=fm.n_components)]
    if len(fields) < fm.n_components:
        raise GateError(
            f"{made.place}: expected {fm.n_components:,} columns of features, got {len(fields):,} columns"
        )
    return fields[-fm.n_components :]


def _check_names(made: Source, fields: list[Field]) -> None:
    """Features are named by their numbers, whatever stands before these."""
    names = [field.name for field in fields]
    prefix = names[0][:-1]
    if not made.positional and len(names) > 1 and names != [f"{prefix}{i}" for i in range(len(names))]:
        raise GateError(
            f"{made.place}: expected the columns of the features in their order, as {prefix}0 ... "
            f"{prefix}{len(names) - 1}, got {quoted(names[0])} ... {quoted(names[-1])}"
        )


def _read_stats(path: str) -> dict[str, Any]:
    with opened(path) as file:
        try:
            content = json.loads(file.readall())
            sections = [content[name] for name in ("model", "input", "output")]
            if all(isinstance(section, dict) for section in sections):
                return dict(content)
        except (ValueError, KeyError, TypeError):
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
