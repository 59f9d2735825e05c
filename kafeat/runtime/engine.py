"""Engines, and work on them with retries: every item gets exactly one result, even if workers die."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from kafeat.errors import KafeatError, UsageError, first_line

ENGINES = ("threads", "processes", "dask")


@dataclass(frozen=True)
class Engine:
    """The name and options of an engine, which runs the parts of a data set.

    Attributes:
        name: One of `ENGINES`.
        address: Address of the Dask scheduler.
        jobs: Number of items that run at once; None: as many as there are cores or workers.
    """

    name: str = "threads"
    address: str | None = None
    jobs: int | None = None

    @property
    def in_this_process(self) -> bool:
        """True if its workers are threads of this process."""
        return self.name == "threads"

    @property
    def ends_workers(self) -> bool:
        """True if no worker outlives the engine. Workers of a cluster may go on for a while."""
        return self.name != "dask"

    def check(self) -> None:
        """Raise UsageError for an unknown name, and for a missing or superfluous address."""
        if self.name not in ENGINES:
            raise UsageError(f"--engine: expected threads, processes or dask, got {self.name!r}")
        if self.address is not None and self.name != "dask":
            raise UsageError(f"--scheduler: expected --engine dask with an address, got --engine {self.name}")
        if self.name == "dask" and self.address is None:
            raise UsageError(
                "--engine dask: expected --scheduler with its address, such as tcp://host:8786, got none"
            )


_PATIENCE_SECONDS = 10.0
"""Seconds to wait until stopped work has ended."""


class Stop:
    """A flag that makes running work stop. Unpickling it in another process returns the flag of that process."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._changed = threading.Condition()
        self._at_work = 0

    def __reduce__(self) -> tuple[Callable[[], Stop], tuple[()]]:
        return of_this_process, ()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count the work in the block, so that `ask` waits for its end."""
        with self._changed:
            self._at_work += 1
        try:
            yield
        finally:
            with self._changed:
                self._at_work -= 1
                self._changed.notify_all()

    def check(self) -> None:
        """Raise `InterruptedError` if the work has to stop. The work calls this from time to time."""
        if self._asked.is_set():
            raise InterruptedError("the run has ended")

    def ask(self) -> None:
        """Stop all work, and return when it has stopped, or after some seconds."""
        self._asked.set()
        with self._changed:
            self._changed.wait_for(lambda: not self._at_work, _PATIENCE_SECONDS)


_of_this_process = Stop()


def of_this_process() -> Stop:
    """Return the flag of this process, for work that another process sent."""
    return _of_this_process


@dataclass(frozen=True)
class Pool:
    """A running engine.

    Attributes:
        submit: `submit(work, item)` returns a future. An error in it means that the worker died: `work` raises none.
        at_once: Number of items to submit at once.
        check: Raises an error if the engine is lost.
        stop: The flag that stops work in this process if the engine ends early.
        lost: Items whose worker was lost, each with the address of the worker or the error.
    """

    submit: Callable[[Callable[[Any], Any], Any], Future[Any]]
    at_once: int
    check: Callable[[], None] = lambda: None
    stop: Stop = field(default_factory=Stop)
    lost: SimpleQueue[tuple[Any, str]] = field(default_factory=SimpleQueue)


T = TypeVar("T")
R = TypeVar("R")

ATTEMPTS = 2
"""Attempts at an item while other items run. If its worker dies each time, one more attempt follows at the end."""

_CHECK_SECONDS = 0.5
_LONGEST = 100


def run_all(
    pool: Pool, work: Callable[[T], R], items: Sequence[T], lost: Callable[[T, str], R]
) -> Iterator[R]:
    """Yield `work(item)` for every item as soon as it is done, in any order.

    An item whose worker dies is tried again. In its last attempt, no other item runs, so that an item that uses up the
    memory harms no other. If that worker dies too, the result is `lost(item, reason)`. `work` must be defined in a
    module, must raise nothing, and may run twice for an item. Raises `SystemRefusedError` if the engine is lost.
    """
    left = deque(range(len(items)))
    died: Counter[int] = Counter()
    running: dict[Future[R], int] = {}
    ended: SimpleQueue[Future[R]] = SimpleQueue()
    while left or running:
        while left and len(running) < pool.at_once and not (running and died[left[0]] == ATTEMPTS):
            number = left.popleft()
            future = pool.submit(work, items[number])
            running[future] = number
            future.add_done_callback(ended.put)
        future = _next_of(ended, pool)
        number = running.pop(future)
        error = _error_of(future)
        if error is None:
            yield future.result()
            continue
        if isinstance(error, KafeatError):
            raise error
        pool.check()  # raises an error if the whole engine is lost, not only a worker
        died[number] += 1
        why = f"{type(error).__name__}: {first_line(error)[:_LONGEST]}"
        pool.lost.put((items[number], why))
        if died[number] > ATTEMPTS:
            yield lost(items[number], why)
        else:  # the last attempt comes after all other items
            left.insert(len(left) if died[number] == ATTEMPTS else 0, number)


def _next_of(ended: SimpleQueue[Future[R]], pool: Pool) -> Future[R]:
    """Return the next future that ends, or raise an error if the engine is lost meanwhile."""
    while True:
        try:
            return ended.get(timeout=_CHECK_SECONDS)
        except Empty:
            pool.check()


def _error_of(future: Future[R]) -> BaseException | None:
    try:
        return future.exception()
    except CancelledError as error:
        return error
