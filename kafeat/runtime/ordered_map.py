"""A bounded, ordered map over items by threads: the numbers of items read ahead and of waiting results are limited."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

# Seconds to wait for a reader that is blocked, for example on a pipe; it then ends with the process.
_PATIENCE_SECONDS = 5.0


def prefetch(items: Iterator[T], ahead: int) -> Iterator[T]:
    """Yield the items, read by a thread: at most `ahead` wait, and the thread holds one more."""
    waiting: queue.Queue[tuple[str, T | BaseException | None]] = queue.Queue(maxsize=ahead)
    stop = threading.Event()

    def put(entry: tuple[str, T | BaseException | None]) -> None:
        while not stop.is_set():
            with contextlib.suppress(queue.Full):
                waiting.put(entry, timeout=0.05)
                return

    def read() -> None:
        try:
            for item in items:
                put(("item", item))
                if stop.is_set():
                    return
        except BaseException as error:  # raised in the thread that consumes the items
            put(("error", error))
        else:
            put(("end", None))

    reader = threading.Thread(target=read, name="kafeat-reader", daemon=True)
    reader.start()
    try:
        while True:
            what, content = waiting.get()
            if what == "end":
                return
            if isinstance(content, BaseException) and what == "error":
                raise content
            yield content  # type: ignore[misc]  # an "item" is a T
    finally:
        stop.set()
        reader.join(_PATIENCE_SECONDS)


def ordered_map(
    make_worker: Callable[[], Callable[[T], R]], items: Iterator[T], jobs: int, *, joining: bool = False
) -> Iterator[R]:
    """Yield `worker(item)` for every item, in order, by `jobs` threads that each make their own worker.

    At most jobs + 1 items are in progress at any time. The first error in the order of the items is raised, be it a
    worker's or the reader's. Items after it are not started. With `joining`, the calling thread is one of the workers,
    so a single job starts no thread.
    """
    own = threading.local()

    def run(item: T) -> R:
        # Not by the pool's initializer: the pool would hide its error, such as too little memory.
        if not hasattr(own, "worker"):
            own.worker = make_worker()
        worker: Callable[[T], R] = own.worker
        return worker(item)

    if joining and jobs == 1:
        yield from map(run, items)
        return
    pool = ThreadPoolExecutor(max_workers=jobs - joining, thread_name_prefix="kafeat-worker")
    waiting: deque[_Task[T, R]] = deque()
    try:
        unread: Exception | None = None
        while True:
            try:
                item = next(items)
            except StopIteration:
                break
            except Exception as error:  # raised after the results of all items before it
                unread = error
                break
            waiting.append(_Task(item, pool.submit(run, item)))
            if len(waiting) > jobs:
                yield _first(waiting, run if joining else None)
        while waiting:
            yield _first(waiting, run if joining else None)
        if unread is not None:
            raise unread
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@dataclass
class _Task(Generic[T, R]):
    """An item, and what will be its result."""

    item: T
    result: Future[R]


def _first(waiting: deque[_Task[T, R]], help_by: Callable[[T], R] | None) -> R:
    """Return the oldest result. Until it is there, do the newest items that no thread has begun by `help_by`."""
    while help_by is not None and not waiting[0].result.done():
        free = next((task for task in reversed(waiting) if task.result.cancel()), None)
        if free is None:
            break
        free.result = Future()
        try:
            free.result.set_result(help_by(free.item))
        except Exception as error:  # raised when its turn comes
            free.result.set_exception(error)
    return waiting.popleft().result.result()
