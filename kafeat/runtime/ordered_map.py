"""Apply a function to items in threads, in order, with limits on items read ahead and on waiting results.

If the items are in memory, nothing is read ahead, and the calling thread is one of the workers.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TypeVar

from kafeat.contract import threads
from kafeat.contract.threads import check, share_work

T = TypeVar("T")
R = TypeVar("R")

# Seconds to wait for the end of the reading thread. It may be blocked, for example on a pipe, until the process ends.
_PATIENCE_SECONDS = 5.0


def prefetch(items: Iterator[T], ahead: int) -> Iterator[T]:
    """Yield the items while a thread reads ahead: at most `ahead` items, and one more that it is reading."""
    waiting: queue.SimpleQueue[tuple[T] | BaseException | None] = queue.SimpleQueue()
    room, stop = threading.Semaphore(ahead), threading.Event()

    def read() -> None:
        end: BaseException | None = None
        try:
            for item in items:
                room.acquire()
                if stop.is_set():
                    return
                waiting.put((item,))
        except BaseException as error:  # raised in the thread that consumes the items
            end = error
        waiting.put(end)

    reader = threading.Thread(target=read, name="kafeat-reader", daemon=True)
    reader.start()
    try:
        while (got := waiting.get()) is not None:
            if isinstance(got, BaseException):
                raise got
            room.release()
            yield got[0]
    finally:
        stop.set()
        room.release()
        reader.join(_PATIENCE_SECONDS)


def ordered_map(
    make_worker: Callable[[], Callable[[T], R]],
    items: Iterator[T],
    jobs: int,
    *,
    joining: bool = False,
    pressing: Callable[[T], bool] = lambda _: False,
) -> Iterator[R]:
    """Yield `worker(item)` for every item, in order, using `jobs` threads that each make their own worker.

    At most jobs + 1 items are in progress at any time. The error of the first item that fails is raised, whether a
    worker or the reader raised it, and later items are not started. With `joining`, for items in memory, the calling
    thread is one of the workers: a single job starts no thread, and several jobs make all results before the first is
    yielded. The result of a `pressing` item is yielded before the next item is requested.
    """
    if not joining:
        yield from _by_pool(make_worker, items, jobs, pressing)
    elif jobs == 1:
        yield from map(make_worker(), items)
    else:
        yield from share_work(make_worker, items, jobs)


def _by_pool(
    make_worker: Callable[[], Callable[[T], R]], items: Iterator[T], jobs: int, pressing: Callable[[T], bool]
) -> Iterator[R]:
    own = threading.local()

    def run(item: T) -> R:
        # Workers are not made in the pool's initializer, because the pool would hide an error, such as no memory.
        check()
        if not hasattr(own, "worker"):
            own.worker = make_worker()
        worker: Callable[[T], R] = own.worker
        return worker(item)

    pool = threads.pool(jobs, "kafeat-worker")
    waiting: deque[Future[R]] = deque()
    try:
        unread = list[Exception]()
        for item in _keeping_error(items, unread):
            waiting.append(pool.submit(run, item))
            while len(waiting) > (0 if pressing(item) else jobs):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
        if unread:
            raise unread[0]
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _keeping_error(items: Iterator[T], errors: list[Exception]) -> Iterator[T]:
    """Yield the items. Append an error of the iterator to `errors`, to be raised after all results are yielded."""
    try:
        yield from items
    except Exception as error:
        errors.append(error)
