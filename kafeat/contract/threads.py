"""Work in several threads, and work that can be stopped early.

Python handles a signal only between two steps of the interpreter, and one step may be a minute of LAPACK. So long work
runs in its own thread (`endable`), and a signal can interrupt the calling thread, which only waits. The abandoned work
ends at its next `check`, or with the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from itertools import count
from math import inf
from time import monotonic
from typing import TypeVar

from kafeat.errors import KafeatError

T = TypeVar("T")
R = TypeVar("R")


class Ended(BaseException):
    """Raised by `check` in a thread whose work was stopped, to end the thread. Nobody waits for the result."""


# Seconds of each wait for the work. Waits are short, because a signal right before a wait does not interrupt it.
_LOOK_SECONDS = 0.2
# Seconds to wait until stopped work ends, so that it does not slow down what follows. LAPACK may need longer.
_END_SECONDS = 2.0
_ended: ContextVar[threading.Event | None] = ContextVar("ended", default=None)


def endable(work: Callable[[], R], seconds: float | None = None) -> R:
    """Return the result of the work. If a signal raises an exception here, stop the work and do not wait for it.

    After `seconds`, stop the work, wait up to two seconds until it reaches its next `check`, and raise TimeoutError.
    """
    ended, future = threading.Event(), Future[R]()

    def run() -> None:
        _ended.set(ended)
        settle(future, work)

    try:
        _start(run, "kafeat-work")
        until = inf if seconds is None else monotonic() + seconds
        while not future.done():
            wait([future], _LOOK_SECONDS)
            if monotonic() > until:
                ended.set()
                wait([future], _END_SECONDS)
                raise TimeoutError
        return future.result()
    except BaseException:
        ended.set()
        raise


def settle(future: Future[R], work: Callable[[], R]) -> None:
    """Do the work, and pass its result or its error to the future. Threads that wait for the future get the error."""
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)


def check() -> None:
    """Raise `Ended` if the work of this thread was stopped. Call it between pieces of about a second."""
    ended = _ended.get()
    if ended is not None and ended.is_set():
        raise Ended


@contextmanager
def repeating(call: Callable[[], None], seconds: float, name: str) -> Iterator[None]:
    """Call a function every `seconds` seconds during the block, in a thread. Errors of a call do not end the series."""
    ended = threading.Event()

    def go_on() -> None:
        while not ended.wait(seconds):
            with suppress(OSError, KafeatError):
                call()

    thread = threading.Thread(target=go_on, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def pool(jobs: int, name: str) -> ThreadPoolExecutor:
    """Return a pool whose threads stop when the calling thread is stopped."""
    return ThreadPoolExecutor(jobs, name, initializer=_ended.set, initargs=(_ended.get(),))


def _start(work: Callable[[], None], name: str) -> threading.Thread:
    """Start a daemon thread whose `check` also raises an error when the calling thread is stopped."""
    thread = threading.Thread(target=copy_context().run, args=(work,), name=name, daemon=True)
    thread.start()
    return thread


_END = object()


def share_work(make_worker: Callable[[], Callable[[T], R]], items: Iterable[T], jobs: int) -> list[R]:
    """Return `worker(item)` for every item, using `jobs` threads including the calling one.

    It does not use futures, which would cost as much time as a small chunk. After an error, no further item is started.
    """
    items = iter(items)
    lock, stopped, places = threading.Lock(), threading.Event(), count()
    results, errors = dict[int, R](), dict[int, BaseException]()

    def work() -> None:
        """Take items in turn until there are no more."""
        place = -1
        try:
            worker = make_worker()
            while True:
                check()
                with lock:
                    if stopped.is_set():
                        return
                    place = next(places)
                    item = next(items, _END)
                if item is _END:
                    return
                results[place] = worker(item)  # type: ignore[arg-type]  # `item` is not _END here
        except (Exception, Ended) as error:  # the calling thread raises it
            stopped.set()
            errors[place] = error

    _do_together(work, stopped, jobs)
    if errors:
        raise errors[min(errors)]
    return [results[place] for place in sorted(results)]


def _do_together(work: Callable[[], None], stopped: threading.Event, jobs: int) -> None:
    """Do the work in `jobs` threads including the calling one, and wait for all of them."""
    helpers = [_start(work, f"kafeat-worker-{i}") for i in range(1, jobs)]
    try:
        work()
    finally:
        stopped.set()  # If a signal interrupts `work` here, the other threads must stop as well.
        for helper in helpers:
            helper.join()
