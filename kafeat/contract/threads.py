"""Work by several threads, and work that can be ended.

A signal is heard only between two steps of the interpreter, and a step may be a minute of LAPACK. So what may take
long runs in a thread of its own (`endable`), and the calling thread does nothing but wait, which a signal cuts short.
The work that is left ends at its next `check`, or with the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import ContextVar, copy_context
from itertools import count
from math import inf
from time import monotonic
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Ended(BaseException):
    """The work was ended: nobody waits for its result."""


# A signal that comes right before a wait does not cut it short.
_LOOK_SECONDS = 0.2
# Work that is ended too late would take the processor from what follows, but may be long in a call of LAPACK.
_END_SECONDS = 2.0
_ended: ContextVar[threading.Event | None] = ContextVar("ended", default=None)


def endable(work: Callable[[], R], seconds: float | None = None) -> R:
    """Return the result of the work. An exception that a signal raises here ends it, and the wait for it at once.

    After so many seconds the work is ended, and TimeoutError raised when it has come to its next `check`.
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
    """Do the work, and give its result or its error to the future, whose waiting thread raises it."""
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)


def check() -> None:
    """Raise `Ended` if this thread works for what was ended. To be called between pieces of about a second."""
    ended = _ended.get()
    if ended is not None and ended.is_set():
        raise Ended


def pool(jobs: int, name: str) -> ThreadPoolExecutor:
    """Return a pool whose threads are ended with the calling one."""
    return ThreadPoolExecutor(jobs, name, initializer=_ended.set, initargs=(_ended.get(),))


def _start(work: Callable[[], None], name: str) -> threading.Thread:
    """Start a thread that is ended with the calling one, and that the end of the process does not wait for."""
    thread = threading.Thread(target=copy_context().run, args=(work,), name=name, daemon=True)
    thread.start()
    return thread


_END = object()


def share_work(make_worker: Callable[[], Callable[[T], R]], items: Iterable[T], jobs: int) -> list[R]:
    """Return `worker(item)` for every item, by `jobs` threads, the calling one among them.

    Futures would take as long as the features of a small chunk. No item is started after an error is seen.
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
                results[place] = worker(item)  # type: ignore[arg-type]  # anything but the end is a T
        except (Exception, Ended) as error:  # raised by the calling thread
            stopped.set()
            errors[place] = error

    _do_together(work, stopped, jobs)
    if errors:
        raise errors[min(errors)]
    return [results[place] for place in sorted(results)]


def _do_together(work: Callable[[], None], stopped: threading.Event, jobs: int) -> None:
    """Do the work in `jobs` threads, the calling one among them, and wait for all."""
    helpers = [_start(work, f"kafeat-worker-{i}") for i in range(1, jobs)]
    try:
        work()
    finally:
        stopped.set()  # the user may have interrupted this thread
        for helper in helpers:
            helper.join()
