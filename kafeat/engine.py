"""Where parts of work run: threads of this process, or any backend of joblib, Dask, Ray and Spark among them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

import joblib

from kafeat.backends import Died, Engine, Running, started
from kafeat.errors import KafeatError

T = TypeVar("T")
R = TypeVar("R")

ATTEMPTS = 2
"""Times that work is handed out before what has died with its workers is done item by item."""

_LOOK_SECONDS = 0.5


def completed(
    engine: Engine, work: Callable[[T], R], items: Sequence[T], attempts: int = ATTEMPTS
) -> Iterator[tuple[T, R | None]]:
    """Every item and what `work` made of it, as they are done, in any order; None where its workers always died.

    What is not done when a worker dies is handed out again, up to `attempts` times in all, and then item by item, so
    that one that kills its worker harms no other. `work` must be a function of a module, may run twice, and must not
    raise.
    Raises `SystemRefusedError` if the engine cannot be reached, or is lost.
    """
    engine.check()
    left = dict(enumerate(items))
    for _ in range(attempts):
        with suppress(Died), started(engine) as running:
            for number, result in _handed_out(running, work, left):
                yield left.pop(number), result
        if not left:
            return
    for number, item in left.items():
        result_of_one = None
        with suppress(Died), started(engine) as running:
            ((_, result_of_one),) = _handed_out(running, work, {number: item})
        yield item, result_of_one


def reach(engine: Engine) -> None:
    """Start an engine and end it: what is wrong with it is told before anything depends on it."""
    with started(engine):
        pass


def _handed_out(running: Running, work: Callable[[T], R], items: dict[int, T]) -> Iterator[tuple[int, R]]:
    """Through joblib, in a thread of its own: it waits for ever for what some engines have lost."""
    found: queue.Queue[tuple[int, R] | BaseException | None] = queue.Queue()

    def hand_out() -> None:
        try:
            for batch in _batches(list(items.items()), running):
                with joblib.parallel_config(**running.options):
                    results = joblib.Parallel(batch_size=1, return_as=_returning())(
                        joblib.delayed(kafeat_part)(work, number, item) for number, item in batch
                    )
                    for result in results:
                        found.put(result)
        except BaseException as error:
            found.put(error)
        else:
            found.put(None)

    threading.Thread(target=hand_out, name="kafeat-engine", daemon=True).start()
    while True:
        try:
            result = found.get(timeout=_LOOK_SECONDS)
        except queue.Empty:
            running.look()
            continue
        if result is None:
            return
        if isinstance(result, KafeatError | KeyboardInterrupt):
            raise result
        if isinstance(result, BaseException):
            running.look()  # if all is lost, that is what is to be told
            raise Died(str(result)) from result
        yield result


def kafeat_part(work: Callable[[T], R], number: int, item: T) -> tuple[int, R]:
    """What the boards of an engine show: they name tasks by their functions."""
    return number, work(item)


def _returning() -> str:
    backend, _ = joblib.parallel.get_active_backend()
    return "generator_unordered" if backend.supports_return_generator else "list"


def _batches(items: list[T], running: Running) -> Iterator[list[T]]:
    """All at once; where an engine tells nothing before everything is done, some at a time."""
    with joblib.parallel_config(**running.options):
        backend, jobs = joblib.parallel.get_active_backend()
        size = len(items) if backend.supports_return_generator else 4 * max(1, backend.effective_n_jobs(jobs))
    for start in range(0, len(items), size):
        yield items[start : start + size]
