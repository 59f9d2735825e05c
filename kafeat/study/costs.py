"""Seconds and memory of work.

Short work is repeated, and memory is traced in a run that is not timed.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import TracebackType
from typing import Self

import numpy as np

# Short work is run up to five times, for about a tenth of a second.
_RUNS, _ENOUGH = 5, 0.1
# Longer work is run once, as its seconds vary little.
_LONG = 2.0
MOST_TRACED = 5.0
"""Tracing slows down work that makes many small objects, so that work of so many seconds is not traced."""


def repeated(first: Callable[[], float], again: Callable[[], float] | None = None) -> float:
    """Return the median of the seconds of the runs of some work, each of which returns its own seconds.

    The first run, which finds cold caches and may be traced, counts only if it is long.
    """
    started = time.perf_counter()
    seconds = first()
    if time.perf_counter() - started >= _LONG:
        return seconds
    runs: list[float] = []
    started = time.perf_counter()
    while not runs or (len(runs) < _RUNS and time.perf_counter() - started < _ENOUGH):
        runs.append((again or first)())
    return float(np.median(runs))


def cost_of(
    first: Callable[[], float], again: Callable[[], float], memory: PeakMemory, traced: bool = False
) -> tuple[float, int | None]:
    """Return the seconds and the peak of memory of some work, each run of which returns its own seconds.

    The memory is that of the first run if this may be `traced`. Else it is that of a run of its own, which is not
    timed, and None for long work.
    """

    def first_run() -> float:
        with memory if traced else nullcontext():
            return first()

    seconds = repeated(first_run, again)
    if not traced and seconds >= MOST_TRACED:
        return seconds, None
    if not traced:
        with memory:
            again()
    return seconds, memory.bytes


def timed(work: Callable[[], object]) -> Callable[[], float]:
    """Return a call that does the work and returns its seconds."""

    def run() -> float:
        started = time.perf_counter()
        work()
        return time.perf_counter() - started

    return run


class PeakMemory:
    """The most bytes that NumPy and Python hold at once of what they allocate inside, in `bytes`.

    Memory that a library allocates without them, such as the cache of libsvm, is not seen.
    """

    def __init__(self) -> None:
        self.bytes = 0

    def __enter__(self) -> Self:
        self._starts = not tracemalloc.is_tracing()
        if self._starts:
            tracemalloc.start()
        self._before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        return self

    @contextmanager
    def skipping(self) -> Iterator[None]:
        """Do not count the peak of what happens inside."""
        self._note()
        yield
        if tracemalloc.is_tracing():
            tracemalloc.reset_peak()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._note()
        if self._starts:
            tracemalloc.stop()

    def _note(self) -> None:
        if not tracemalloc.is_tracing():
            return
        self.bytes = max(self.bytes, tracemalloc.get_traced_memory()[1] - self._before)
