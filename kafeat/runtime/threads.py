"""Chunks of rows through a transform, by threads: features in order, or what is wrong with a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.chain.tiles import TileLoop
from kafeat.contract.sparse_rows import Rows
from kafeat.contract.step import Transform
from kafeat.errors import DataError, InvalidValueError
from kafeat.io.readers.base import Chunk
from kafeat.runtime.column_ranges import ColumnRanges
from kafeat.runtime.ordered_map import ordered_map, prefetch
from kafeat.types import Array, Floats, Mask


class FeatureTarget(Protocol):
    """Where features go."""

    def buffer(self, start: int, rows: int) -> Floats:
        """The memory that takes the features of `rows` rows from row `start` on, (rows, n_components)."""

    def filled(self, start: int, block: Floats) -> None:
        """Called in the worker's thread when that memory is filled."""


@dataclass(frozen=True)
class InMemory:
    """An array as a target."""

    out: Floats

    def buffer(self, start: int, rows: int) -> Floats:
        return self.out[start : start + rows]

    def filled(self, start: int, block: Floats) -> None:
        return


@dataclass(frozen=True)
class RowPolicy:
    """What is done beside transforming: bad rows are set aside, and values outside of `seen` are counted.

    Where bad rows are errors, `advice` says what may be done about them.
    """

    set_aside: bool = False
    seen: ColumnRanges | None = None
    advice: str = ""


@dataclass(frozen=True)
class Transformed:
    """A chunk and its features (rows, n_components).

    `clipped` counts values that lay beyond what a step had seen, and were taken for the last it had. `aside` are the
    rows, counted within the chunk, that were set aside, and why: their features are NaN. `outside` (d,) counts for
    each feature of the input the values outside of what the fit had seen.
    """

    chunk: Chunk
    features: Floats
    clipped: int
    aside: tuple[InvalidValueError, ...] = ()
    outside: Array | None = None

    @property
    def good(self) -> Mask | None:
        """The rows that were not set aside, (rows,); None if none was."""
        if not self.aside:
            return None
        good = np.ones(self.chunk.rows, dtype=bool)
        good[[refused.row for refused in self.aside]] = False
        return good


NOTHING_ELSE = RowPolicy()


def run(
    transform: Transform,
    dtype: np.dtype[Any],
    chunks: Iterator[Chunk],
    target: FeatureTarget,
    jobs: int,
    watch: RowPolicy = NOTHING_ELSE,
) -> Iterator[Transformed]:
    """Every chunk, by `jobs` threads, read by a further one; in order, as they are done.

    The first row that is refused is an error, or is set aside with all others that are.
    """

    worker = partial(_worker, transform, dtype, target, watch)
    with one_blas_thread():
        items = ((chunk, target.buffer(chunk.start, chunk.rows)) for chunk in prefetch(chunks, 2))
        yield from ordered_map(worker, items, jobs)


def run_here(
    transform: Transform, dtype: np.dtype[Any], chunks: Iterator[Chunk], target: FeatureTarget
) -> Iterator[Transformed]:
    """The same without threads, for an engine that has given this thread its one core."""
    with one_blas_thread():
        work = _worker(transform, dtype, target, NOTHING_ELSE)
        for chunk in chunks:
            yield work((chunk, target.buffer(chunk.start, chunk.rows)))


def _worker(
    transform: Transform, dtype: np.dtype[Any], target: FeatureTarget, watch: RowPolicy
) -> Callable[[tuple[Chunk, Floats]], Transformed]:
    loop, reads = TileLoop(transform, dtype), transform.reads(dtype)
    work = _setting_aside if watch.set_aside else _refusing

    def run_one(item: tuple[Chunk, Floats]) -> Transformed:
        chunk, out = item
        done = work(loop, chunk, reads, out, watch)
        target.filled(chunk.start, out)
        return done

    return run_one


def _refusing(
    loop: TileLoop, chunk: Chunk, reads: np.dtype[Any], out: Floats, watch: RowPolicy
) -> Transformed:
    try:
        X, sound = chunk.decode(reads)
        if not sound:
            raise next(chunk.invalid_values(X))
        clipped = loop(X, out)
    except InvalidValueError as refused:
        raise DataError(f"{chunk.located(refused)}{watch.advice}") from None
    return Transformed(chunk, out, clipped, outside=None if watch.seen is None else watch.seen.outside(X))


def _setting_aside(
    loop: TileLoop, chunk: Chunk, reads: np.dtype[Any], out: Floats, watch: RowPolicy
) -> Transformed:
    """A row that is refused gives its place to one that is not, and its tile is done once more.

    The others keep their places in their tiles, and so their bytes.
    """
    X, sound = chunk.decode(reads)
    aside = {} if sound else {refused.row: refused for refused in chunk.invalid_values(X)}
    clipped = 0
    for start in range(0, chunk.rows, loop.rows):
        stop = min(start + loop.rows, chunk.rows)
        clipped += _tile(loop, X[start:stop], out[start:stop], start, aside)
    done = Transformed(chunk, out, clipped, tuple(aside[row] for row in sorted(aside)))
    if aside:
        out[sorted(aside)] = np.nan
    if watch.seen is None:
        return done
    return replace(done, outside=watch.seen.outside(X if done.good is None else X[done.good]))


def _tile(loop: TileLoop, X: Rows, out: Floats, start: int, aside: dict[int, InvalidValueError]) -> int:
    good = np.array([start + i not in aside for i in range(len(X))])
    while good.any():
        if not good.all():
            X = X[np.where(good, np.arange(len(X)), good.argmax())]
        try:
            clipped, counts = loop(X, out), loop.counts
            return clipped if counts is None else int(counts[: len(X)][good].sum())
        except InvalidValueError as refused:
            # In the place of a row set aside stands the first that was not: if that one is refused, it is its turn.
            row = refused.row if good[refused.row] else int(good.argmax())
            aside[start + row] = InvalidValueError(start + row, refused.column, refused.problem)
            good[row] = False
    return 0
