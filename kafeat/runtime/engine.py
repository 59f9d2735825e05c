"""Run work on an engine, with retries: every item gets exactly one result, even if workers die."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from queue import Empty, SimpleQueue
from typing import TypeVar

from kafeat.errors import KafeatError, first_line
from kafeat.runtime.pool import Pool

T = TypeVar("T")
R = TypeVar("R")

ATTEMPTS = 2
"""Attempts beside other items; an item whose worker died every time gets a last attempt alone."""

_CHECK_SECONDS = 0.5
_LONGEST = 100


def run_all(
    pool: Pool, work: Callable[[T], R], items: Sequence[T], lost: Callable[[T, str], R]
) -> Iterator[R]:
    """Yield `work(item)` for every item, as soon as each is done, in any order.

    An item whose worker dies is tried again. Its last attempt runs alone, so that an item that takes all memory harms
    no other. If that worker dies too, the result is `lost(item, reason)`. `work` must be a function of a module that
    may run twice and raises nothing. Raises `SystemRefusedError` if the engine is lost.
    """
    left = deque(range(len(items)))
    died: Counter[int] = Counter()
    running: dict[Future[R], int] = {}
    ended: SimpleQueue[Future[R]] = SimpleQueue()
    while left or running:
        while left and len(running) < pool.at_once:
            if running and died[left[0]] == ATTEMPTS:
                break
            number = left.popleft()
            future = pool.submit(work, items[number])
            running[future] = number
            future.add_done_callback(ended.put)
        try:
            future = ended.get(timeout=_CHECK_SECONDS)
        except Empty:
            pool.check()
            continue
        number = running.pop(future)
        error = _error_of(future)
        if error is None:
            yield future.result()
            continue
        if isinstance(error, KafeatError):
            raise error
        pool.check()  # a lost engine is the more important error
        died[number] += 1
        if died[number] > ATTEMPTS:
            yield lost(items[number], f"{type(error).__name__}: {first_line(error)[:_LONGEST]}")
        elif died[number] == ATTEMPTS:
            left.append(number)
        else:
            left.appendleft(number)


def _error_of(future: Future[R]) -> BaseException | None:
    try:
        return future.exception()
    except CancelledError as error:
        return error
