"""Run a program on chunks of rows, yield results in order, and reject or set aside bad rows. All transforms use it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.chain.program import Program
from kafeat.chain.tiles import Made, tiles, with_good_rows
from kafeat.contract.tile import InputRows, SparseRows
from kafeat.errors import DataError, InvalidValueError, KafeatWarning, UsageError
from kafeat.io.columns.columns import Columns
from kafeat.io.readers.base import Chunk, Reader
from kafeat.runtime.column_means import column_sums
from kafeat.runtime.column_ranges import LEAST_TOLD, ColumnRanges, SeenCategories
from kafeat.runtime.environment import count_jobs
from kafeat.runtime.ordered_map import ordered_map, prefetch
from kafeat.types import Array, Floats, Mask

Bad = dict[int, InvalidValueError]
"""The errors of the bad rows of a chunk, by the number of the row in the chunk."""


class Target(Protocol):
    """A destination of dense results: it provides memory for each chunk, and is called when the memory is filled."""

    def buffer(self, start: int, rows: int) -> Floats:
        """Return memory for the results of `rows` rows from row `start` on, (rows, width)."""

    def filled(self, start: int, block: Floats) -> None:
        """Handle the filled memory, for example by writing it to a file. The worker's thread calls this."""
        return


@dataclass(frozen=True)
class InMemory(Target):
    """A target that is one array for all rows."""

    out: Floats

    def buffer(self, start: int, rows: int) -> Floats:
        return self.out[start : start + rows]


@dataclass(frozen=True)
class NewArrays(Target):
    """A target with new memory for every chunk, `width` numbers for each row."""

    width: int
    dtype: np.dtype[Any]
    order: Literal["C", "F"] = "C"

    def buffer(self, start: int, rows: int) -> Floats:
        return np.empty((rows, self.width), self.dtype, self.order)


@dataclass(frozen=True)
class RowPolicy:
    """Rules for bad rows and drift.

    Attributes:
        set_aside: True sets bad rows aside, False makes the first one an error.
        column_ranges: Ranges of the columns, to count the values outside; None: do not count.
        sums: True sums the features and the input columns.
        advice: End of the message about a bad row, with its remedy.
        categories: Recorder of known categories, or None.
    """

    set_aside: bool = False
    column_ranges: ColumnRanges | None = None
    sums: bool = False
    advice: str = ""
    categories: SeenCategories | None = None


REFUSE_BAD_ROWS = RowPolicy()


@dataclass(frozen=True)
class Done:
    """A chunk and its results.

    Attributes:
        chunk: The rows of the input.
        features: Features or predictions (rows, width). In bad rows they are NaN or, for sparse rows, arbitrary.
        clipped: Number of values that a step clipped to the range of its training rows.
        bad_rows: Rows that were set aside, numbered within the chunk, and their problems.
        outside: Counts (d,) of values outside of the column ranges, for each input feature; None if not counted.
        ranges: The least and the largest value of each column in this chunk; None if `outside` is None.
        total: Sum (n_components,) of the features in float64; None if the policy has no `sums`.
        inputs: Count and sum (2, d) of the values that are not NaN in each input column; None if `total` is None.
    """

    chunk: Chunk
    features: Floats | SparseRows
    clipped: int
    bad_rows: tuple[InvalidValueError, ...] = ()
    outside: Array | None = None
    ranges: ColumnRanges | None = None
    total: Array | None = None
    inputs: Floats | None = None

    @property
    def floats(self) -> Floats:
        """The results as an array. Raise TypeError if the program is sparse."""
        if isinstance(self.features, SparseRows):
            raise TypeError("expected dense features, got sparse ones")
        return self.features

    @property
    def sparse(self) -> SparseRows:
        """The results as sparse rows. Raise TypeError if the program is not sparse."""
        if not isinstance(self.features, SparseRows):
            raise TypeError("expected sparse features, got dense ones")
        return self.features

    @property
    def good(self) -> Mask | None:
        """A mask (rows,) of the rows that were not set aside, or None if all are good."""
        if not self.bad_rows:
            return None
        return _good(self.chunk.rows, [refused.row for refused in self.bad_rows])


def run(
    program: Program,
    chunks: Iterator[Chunk],
    target: Target | None,
    jobs: int,
    policy: RowPolicy = REFUSE_BAD_ROWS,
    *,
    in_memory: bool = False,
) -> Iterator[Done]:
    """Run a program on chunks with `jobs` threads, and yield the results in order.

    The policy decides if the first bad row is an error, or if all bad rows are set aside. A sparse program has None as
    its target. An extra thread reads ahead, unless the chunks are in memory: then the calling thread is one of the
    workers, and a single job starts no thread.
    """
    worker = partial(_Worker, program, target, policy)
    with one_blas_thread():
        read = chunks if in_memory else prefetch(chunks, 2)
        items = ((c, None if target is None else target.buffer(c.start, c.rows)) for c in read)
        yield from ordered_map(worker, items, jobs, joining=in_memory, pressing=lambda item: item[0].pressing)


def fill(
    program: Program,
    source: Reader,
    columns: Columns,
    chunk_rows: int,
    jobs: int | None = None,
    out: Floats | None = None,
) -> Floats:
    """Return the results of all rows of a source, written to `out` if `out` is not None."""
    if source.rows is None:
        raise TypeError("expected a source with a known number of rows")
    shape = (source.rows, program.width)
    if out is None:
        out = np.empty(shape, program.dtype)
    elif out.shape != shape or out.dtype.kind != "f" or not out.flags.writeable:
        raise UsageError(
            f"out: expected a writeable array of floats of shape {shape}, "
            f"got shape {out.shape} and dtype {out.dtype}"
        )
    height, jobs = shared_work(program, chunk_rows, source.rows, jobs)
    seen = SeenCategories(columns) if source.rows >= LEAST_TOLD else None
    chunks, policy = source.chunks(columns, (), height), RowPolicy(categories=seen)
    for _ in run(program, chunks, InMemory(out), jobs, policy, in_memory=source.in_memory):
        pass
    unknown = seen and seen.unknown(source.rows)
    if unknown:
        warnings.warn(f"{source.location}: {unknown}", KafeatWarning, stacklevel=4)
    return out


def chosen(chunks: Iterator[Chunk], rows: Mask) -> Iterator[tuple[Array, Chunk]]:
    """Read ahead. From each chunk, yield the numbers of the rows in a mask of all rows, and a chunk of these rows."""
    for chunk in prefetch(chunks, 2):
        taken = rows[chunk.start : chunk.start + chunk.rows]
        if taken.any():
            yield chunk.start + np.flatnonzero(taken), chunk if taken.all() else chunk.selected(taken)


def fill_chunk(
    program: Program, chunk: Chunk, chunk_rows: int, jobs: int | None, dtype: np.dtype[Any]
) -> Floats:
    """Return the results of the rows of one chunk in `dtype`. The threads share its rows."""
    height, jobs = shared_work(program, chunk_rows, chunk.rows, jobs)
    made = run(program, chunk.pieces(height), NewArrays(program.width, dtype), jobs, in_memory=True)
    return np.concatenate([done.floats for done in made])


def shared_work(program: Program, chunk_rows: int, rows: int, jobs: int | None) -> tuple[int, int]:
    """Return the number of rows in a chunk, such that each worker gets about four chunks, and the number of workers.

    The chunks consist of whole tiles, so that the results have the same bytes as with chunks of `chunk_rows` rows.
    """
    jobs = 1 if jobs is None and rows <= program.rows else count_jobs(jobs)
    tiles = -(-rows // (4 * jobs * program.rows))
    height = chunk_rows if chunk_rows % program.rows else min(chunk_rows, max(1, tiles) * program.rows)
    return height, max(1, min(jobs, -(-rows // height)))


class _Worker:
    """Transforms whole chunks with buffers of its own. To set bad rows aside, it transforms tile by tile."""

    def __init__(self, program: Program, target: Target | None, policy: RowPolicy) -> None:
        self._program, self._target, self._policy = program, target, policy
        self._work = program.worker()

    def __call__(self, item: tuple[Chunk, Floats | None]) -> Done:
        chunk, out = item
        bad: dict[int, InvalidValueError] = {}
        try:
            X, sound = chunk.decode(self._program.reads)
            for refused in () if sound else chunk.invalid_values(X):
                if not self._policy.set_aside:
                    raise refused
                bad[refused.row] = refused
            above = chunk.above % self._program.rows
            aside = self._policy.set_aside
            made = self._setting_aside(X, out, above, bad) if aside else self._work(X, out, above)
        except InvalidValueError as refused:
            raise DataError(f"{chunk.located(refused)}{self._policy.advice}") from None
        done = self._done(chunk, X, made, bad)
        if self._target is not None and out is not None:
            self._target.filled(chunk.start, out)
        return done

    def _setting_aside(self, X: InputRows, out: Floats | None, above: int, bad: Bad) -> Made:
        """Transform tile by tile, with a good row in place of each bad row, and add the bad rows to `bad`.

        `above` is the position of the first row of X in its tile."""
        pieces, clipped = list[Any](), np.zeros(len(X), np.int64)
        for tile, place in tiles(len(X), self._program.rows, above):
            made = self._tile(X[tile], None if out is None else out[tile], tile.start, place, bad)
            pieces.append(made.features)
            clipped[tile] = 0 if made.clipped is None else made.clipped
        stacked = SparseRows.stacked(pieces, self._program.width, self._program.dtype) if out is None else out
        return Made(stacked, clipped)

    def _tile(self, X: InputRows, out: Floats | None, start: int, above: int, bad: Bad) -> Made:
        good = _good(len(X), [row - start for row in bad if 0 <= row - start < len(X)])
        made, refusals = with_good_rows(
            good, lambda rows: self._work(X if good.all() else X[rows], out, above)
        )
        bad.update((start + one.row, one.at(start + one.row)) for one in refusals)
        if made is not None:
            return made
        nothing = SparseRows(np.empty(0), np.empty(0, np.int64), np.zeros(len(X) + 1, np.int64), 0)
        return Made(nothing if out is None else out, None)

    def _done(self, chunk: Chunk, X: InputRows, made: Made, bad: Bad) -> Done:
        """Return the results of a chunk, with the counts and sums of good rows that the policy requests."""
        features, clipped = made
        good: Any = _good(len(X), list(bad)) if bad else slice(None)
        if isinstance(features, np.ndarray) and bad:
            features[list(bad)] = np.nan
        outside = ranges = total = inputs = None
        if self._policy.column_ranges is not None:
            rows = X[good]
            outside = self._policy.column_ranges.outside(rows)
            ranges = ColumnRanges.empty(rows.shape[1]).adding(rows)
        if self._policy.categories is not None:
            self._policy.categories.add(X[good])
        if self._policy.sums:
            total, inputs = _total(features[good]), column_sums(X[good])
        if self._program.behind and isinstance(features, np.ndarray):
            width = self._program.width
            features, total = features[:, :width], None if total is None else total[width:]
        n_clipped = 0 if clipped is None else int(clipped[good].sum())
        return Done(
            chunk, features, n_clipped, tuple(bad[row] for row in sorted(bad)), outside, ranges, total, inputs
        )


def _total(features: Floats | SparseRows) -> Array:
    if isinstance(features, SparseRows):
        return np.bincount(features.columns, features.values.astype(np.float64), features.width)
    return features.sum(axis=0, dtype=np.float64)


def _good(rows: int, bad: list[int]) -> Mask:
    good = np.ones(rows, dtype=bool)
    good[bad] = False
    return good
