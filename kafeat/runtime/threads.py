"""Transform chunks of rows by threads: yield features in order, or refuse a bad row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.chain.tiles import TileLoop
from kafeat.contract.step import Transform
from kafeat.contract.tile import Rows, SparseRows
from kafeat.errors import DataError, InvalidValueError
from kafeat.io.readers.base import Chunk
from kafeat.runtime.column_ranges import ColumnRanges
from kafeat.runtime.ordered_map import ordered_map, prefetch, share_work
from kafeat.types import Array, Floats, Mask

T = TypeVar("T", bound="TransformedChunk")


class FeatureTarget(Protocol):
    """A target of features: it provides memory for them, and learns when that is filled."""

    def buffer(self, start: int, rows: int) -> Floats:
        """Return memory for the features of `rows` rows from row `start` on, (rows, n_components)."""

    def filled(self, start: int, block: Floats) -> None:
        """Note that the memory is filled; called in the thread of the worker."""


@dataclass(frozen=True)
class InMemory:
    """An array as the target of features."""

    out: Floats

    def buffer(self, start: int, rows: int) -> Floats:
        return self.out[start : start + rows]

    def filled(self, start: int, block: Floats) -> None:
        return


@dataclass(frozen=True)
class NewArrays:
    """A target of numbers, `width` of each row: new memory for every chunk."""

    width: int
    dtype: np.dtype[Any]

    def buffer(self, start: int, rows: int) -> Floats:
        return np.empty((rows, self.width), self.dtype)

    def filled(self, start: int, block: Floats) -> None:
        return


@dataclass(frozen=True)
class RowPolicy:
    """Rules for bad rows and drift.

    Attributes:
        set_aside: True sets bad rows aside, False makes the first one an error.
        column_ranges: Ranges outside of which values are counted; None counts none.
        sums: True adds up the features.
        advice: End of the message about a bad row, with its remedy.
    """

    set_aside: bool = False
    column_ranges: ColumnRanges | None = None
    sums: bool = False
    advice: str = ""

    def observe(self, done: T, X: Rows) -> T:
        """Return the chunk with its counts and sums; `X` are the rows that were transformed. Bad rows do not count."""
        if self.column_ranges is None and not self.sums:
            return done
        good, outside, total = done.good, None, None
        if self.column_ranges is not None:
            outside = self.column_ranges.outside(X if good is None else X[good])
        if self.sums:
            total = done.total_of(good)
        return replace(done, outside=outside, total=total)


@dataclass(frozen=True, kw_only=True)
class TransformedChunk(ABC):
    """A chunk that was transformed, without its features.

    Attributes:
        chunk: The rows of the input.
        clipped: Values outside of the range that a step was fitted on, which were replaced by its nearest end.
        bad_rows: Rows that were set aside, numbered within the chunk, and their problems.
        outside: Counts (d,) of values outside of the column ranges, for each input feature; None if not counted.
        total: Sum (n_components,) of the features in float64; None if not asked for.
    """

    chunk: Chunk
    clipped: int
    bad_rows: tuple[InvalidValueError, ...] = ()
    outside: Array | None = None
    total: Array | None = None

    @property
    def good(self) -> Mask | None:
        """A mask (rows,) of the rows that were not set aside; None if all are good."""
        if not self.bad_rows:
            return None
        good = np.ones(self.chunk.rows, dtype=bool)
        good[[refused.row for refused in self.bad_rows]] = False
        return good

    @abstractmethod
    def total_of(self, good: Mask | None) -> Array:
        """Return the sum (n_components,) of the features of good rows in float64."""


@dataclass(frozen=True, kw_only=True)
class Transformed(TransformedChunk):
    """A chunk and its features (rows, n_components), which are NaN for bad rows."""

    features: Floats

    def total_of(self, good: Mask | None) -> Array:
        features = self.features if good is None else self.features[good]
        total: Array = features.sum(axis=0, dtype=np.float64)
        return total


@dataclass(frozen=True, kw_only=True)
class SparselyTransformed(TransformedChunk):
    """A chunk and its features as sparse rows; those of bad rows mean nothing."""

    features: SparseRows

    def total_of(self, good: Mask | None) -> Array:
        features = self.features if good is None else self.features[good]
        return np.bincount(features.columns, features.values.astype(np.float64), features.width)


REFUSE_BAD_ROWS = RowPolicy()


def run(
    transform: Transform,
    dtype: np.dtype[Any],
    chunks: Iterator[Chunk],
    target: FeatureTarget,
    jobs: int,
    policy: RowPolicy = REFUSE_BAD_ROWS,
) -> Iterator[Transformed]:
    """Transform chunks by `jobs` threads, read by a further one, and yield them in order.

    The policy decides if the first bad row is an error, or if all bad rows are set aside.
    """
    worker = partial(_worker, transform, dtype, target, policy)
    with one_blas_thread():
        items = ((chunk, target.buffer(chunk.start, chunk.rows)) for chunk in prefetch(chunks, 2))
        yield from ordered_map(worker, items, jobs)


def run_in_memory(
    transform: Transform, dtype: np.dtype[Any], chunks: Iterator[Chunk], out: Floats, jobs: int
) -> None:
    """Fill `out` with the features of chunks that are in memory, by this thread and `jobs` − 1 more.

    No thread reads ahead and none hands results on: for small inputs that would take as long as the features.
    """
    target = InMemory(out)
    items = ((chunk, target.buffer(chunk.start, chunk.rows)) for chunk in chunks)
    with one_blas_thread():
        share_work(partial(_worker, transform, dtype, target, REFUSE_BAD_ROWS), items, jobs)


def run_in_this_thread(
    transform: Transform, dtype: np.dtype[Any], chunks: Iterator[Chunk], target: FeatureTarget
) -> Iterator[Transformed]:
    """Transform chunks without threads, for engines that give each thread one core."""
    with one_blas_thread():
        work = _worker(transform, dtype, target, REFUSE_BAD_ROWS)
        for chunk in chunks:
            yield work((chunk, target.buffer(chunk.start, chunk.rows)))


def _worker(
    transform: Transform, dtype: np.dtype[Any], target: FeatureTarget, policy: RowPolicy
) -> Callable[[tuple[Chunk, Floats]], Transformed]:
    loop, reads = TileLoop(transform, dtype), transform.reads(dtype)
    work = _transform_setting_aside if policy.set_aside else _transform_or_refuse

    def run_one(item: tuple[Chunk, Floats]) -> Transformed:
        chunk, out = item
        done = work(loop, chunk, reads, out, policy)
        target.filled(chunk.start, out)
        return done

    return run_one


def _transform_or_refuse(
    loop: TileLoop, chunk: Chunk, reads: np.dtype[Any], out: Floats, policy: RowPolicy
) -> Transformed:
    try:
        X, sound = chunk.decode(reads)
        if not sound:
            raise next(chunk.invalid_values(X))
        clipped = loop(X, out)
    except InvalidValueError as refused:
        raise DataError(f"{chunk.located(refused)}{policy.advice}") from None
    return policy.observe(Transformed(chunk=chunk, features=out, clipped=clipped), X)


def _transform_setting_aside(
    loop: TileLoop, chunk: Chunk, reads: np.dtype[Any], out: Floats, policy: RowPolicy
) -> Transformed:
    """Replace each bad row by a good one of its tile, and transform the tile again.

    The good rows keep their places in the tile, and so their bytes.
    """
    X, sound = chunk.decode(reads)
    bad_rows = {} if sound else {refused.row: refused for refused in chunk.invalid_values(X)}
    clipped = 0
    for start in range(0, chunk.rows, loop.rows):
        stop = min(start + loop.rows, chunk.rows)
        clipped += _tile(loop, X[start:stop], out[start:stop], start, bad_rows)
    done = Transformed(
        chunk=chunk,
        features=out,
        clipped=clipped,
        bad_rows=tuple(bad_rows[row] for row in sorted(bad_rows)),
    )
    if bad_rows:
        out[sorted(bad_rows)] = np.nan
    return policy.observe(done, X)


def _tile(loop: TileLoop, X: Rows, out: Floats, start: int, bad_rows: dict[int, InvalidValueError]) -> int:
    good = np.array([start + i not in bad_rows for i in range(len(X))])
    while good.any():
        if not good.all():
            X = X[np.where(good, np.arange(len(X)), good.argmax())]
        try:
            clipped, counts = loop(X, out), loop.counts
            return clipped if counts is None else int(counts[: len(X)][good].sum())
        except InvalidValueError as refused:
            # A refused replacement means that the first good row is bad itself.
            row = refused.row if good[refused.row] else int(good.argmax())
            bad_rows[start + row] = InvalidValueError(start + row, refused.column, refused.problem)
            good[row] = False
    return 0
