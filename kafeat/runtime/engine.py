"""Work through an engine: everything comes back once, whatever becomes of the workers."""

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
"""Times that an item is done beside others; if its worker died every time, it gets a last one by itself."""

_LOOK_SECONDS = 0.5
_LONGEST = 100


def completed(
    pool: Pool, work: Callable[[T], R], items: Sequence[T], given_up: Callable[[T, str], R]
) -> Iterator[R]:
    """What `work` made of every item, as they are done, in any order.

    An item whose worker dies is done again, the last time while nothing else is, so that one that takes all memory
    harms no other. `given_up(item, why)` stands for one whose workers always died. `work` must be a function of a
    module, may run twice, and must not raise.
    Raises `SystemRefusedError` if the engine is lost.
    """
    left = deque(range(len(items)))
    died: Counter[int] = Counter()
    at_work: dict[Future[R], int] = {}
    ended: SimpleQueue[Future[R]] = SimpleQueue()
    while left or at_work:
        while left and len(at_work) < pool.at_once:
            if at_work and died[left[0]] == ATTEMPTS:
                break
            number = left.popleft()
            future = pool.submit(work, items[number])
            at_work[future] = number
            future.add_done_callback(ended.put)
        try:
            future = ended.get(timeout=_LOOK_SECONDS)
        except Empty:
            pool.look()
            continue
        number = at_work.pop(future)
        error = _error_of(future)
        if error is None:
            yield future.result()
            continue
        if isinstance(error, KafeatError):
            raise error
        pool.look()  # if all is lost, that is what is to be told
        died[number] += 1
        if died[number] > ATTEMPTS:
            yield given_up(items[number], f"{type(error).__name__}: {first_line(error)[:_LONGEST]}")
        elif died[number] == ATTEMPTS:
            left.append(number)
        else:
            left.appendleft(number)


def _error_of(future: Future[R]) -> BaseException | None:
    try:
        return future.exception()
    except CancelledError as error:
        return error
