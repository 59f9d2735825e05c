"""Items that threads share, the calling one among them."""

import threading
import time
from collections.abc import Iterator

import pytest

from kafeat.runtime.ordered_map import ordered_map


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = threading.active_count()
    yield
    assert threading.active_count() == before


def test_every_thread_makes_one_worker_and_the_calling_thread_is_one_of_them():
    made: list[int] = []
    together = threading.Barrier(3, timeout=10)

    def worker():
        made.append(threading.get_ident())
        return lambda i: together.wait() if i < 3 else None

    list(ordered_map(worker, iter(range(20)), 3, joining=True))
    assert len(set(made)) == len(made) == 3
    assert threading.get_ident() in made


def test_a_single_job_starts_no_thread():
    used: set[int] = set()
    list(ordered_map(lambda: lambda i: used.add(threading.get_ident()), iter(range(5)), 1, joining=True))
    assert used == {threading.get_ident()}


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_an_error_of_the_items_comes_after_those_of_items_before_it(jobs):
    def items(bad: bool) -> Iterator[bool]:
        yield False
        yield bad
        raise OSError("the third cannot be read")

    def work(bad: bool) -> None:
        time.sleep(0.02)
        if bad:
            raise ValueError("the second is bad")

    with pytest.raises(OSError, match="third"):
        list(ordered_map(lambda: work, items(False), jobs, joining=True))
    with pytest.raises(ValueError, match="second"):
        list(ordered_map(lambda: work, items(True), jobs, joining=True))


def test_an_interrupted_thread_waits_for_its_helpers_and_starts_nothing_more():
    caller = threading.get_ident()
    both = threading.Barrier(2, timeout=10)
    done: list[int] = []
    lock = threading.Lock()
    begun = 0

    def work(i: int) -> None:
        nonlocal begun
        with lock:
            begun += 1
            first = begun <= 2
        if first:
            both.wait()
        if threading.get_ident() == caller:
            raise KeyboardInterrupt
        time.sleep(0.05)
        done.append(i)

    with pytest.raises(KeyboardInterrupt):
        list(ordered_map(lambda: work, iter(range(100)), 2, joining=True))
    assert len(done) == 1
