"""The bounded, ordered map and the reader ahead of it."""

import threading
import time
from collections.abc import Iterator

import pytest

from kafeat.runtime.ordered_map import ordered_map, prefetch

JOBS = (1, 2, 4)
whoever_works = pytest.mark.parametrize("joining", [False, True], ids=["apart", "joining"])
"""Also with the calling thread among the workers."""


@pytest.fixture(autouse=True)
def no_thread_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Threads that the calling one works with have ended when it goes on; others may need a moment."""
    before = threading.active_count()
    yield
    for _ in range(0 if "joining" in request.node.name else 100):
        if threading.active_count() <= before:
            return
        time.sleep(0.05)
    assert threading.active_count() <= before


@whoever_works
@pytest.mark.parametrize("jobs", JOBS)
def test_order_is_kept_although_the_first_is_the_slowest(jobs, joining):
    def worker():
        def work(i: int) -> int:
            time.sleep(0.02 if i % 4 == 0 else 0.0)
            return i * i

        return work

    assert list(ordered_map(worker, iter(range(30)), jobs, joining=joining)) == [i * i for i in range(30)]


@whoever_works
@pytest.mark.parametrize("jobs", JOBS)
def test_a_worker_that_cannot_be_made_says_why(jobs, joining):
    def worker():
        raise MemoryError("no room for its buffers")

    with pytest.raises(MemoryError, match="no room for its buffers"):
        list(ordered_map(worker, iter(range(30)), jobs, joining=joining))


@whoever_works
@pytest.mark.parametrize("jobs", JOBS)
def test_no_items_no_results(jobs, joining):
    assert list(ordered_map(lambda: lambda i: i, iter(()), jobs, joining=joining)) == []


@whoever_works
def test_every_thread_makes_one_worker_of_its_own(joining):
    made: list[int] = []
    together = threading.Barrier(3, timeout=10)

    def worker():
        made.append(threading.get_ident())

        def work(i: int) -> int:
            if i < 3:
                together.wait()
            return threading.get_ident()

        return work

    used = set(ordered_map(worker, iter(range(20)), 3, joining=joining))
    assert len(made) == len(set(made)) == 3
    assert used <= set(made)
    assert (threading.get_ident() in made) == joining


def test_a_single_job_starts_no_thread_when_joining():
    used = set(ordered_map(lambda: lambda _: threading.get_ident(), iter(range(5)), 1, joining=True))
    assert used == {threading.get_ident()}


@pytest.mark.parametrize("jobs", JOBS)
def test_look_ahead_is_bounded(jobs):
    pulled, worst, done = 0, 0, 0

    def items() -> Iterator[int]:
        nonlocal pulled, worst
        for i in range(50):
            pulled += 1
            worst = max(worst, pulled - done)
            yield i

    for _ in ordered_map(lambda: lambda i: i, items(), jobs):
        done += 1
    assert worst <= jobs + 1


@whoever_works
@pytest.mark.parametrize("jobs", JOBS)
def test_the_first_error_in_order_is_raised(jobs, joining):
    def worker():
        def work(i: int) -> int:
            if i == 3:
                time.sleep(0.1)  # later than the other one, and still first in order
            if i >= 3:
                raise ValueError(f"item {i}")
            return i

        return work

    got = []
    with pytest.raises(ValueError, match="item 3"):
        got.extend(ordered_map(worker, iter(range(30)), jobs, joining=joining))
    results = ordered_map(worker, iter(range(30)), jobs)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    results.close()


@pytest.mark.parametrize("jobs", JOBS)
def test_items_far_behind_an_error_are_not_started(jobs):
    started: list[int] = []

    def worker():
        def work(i: int) -> int:
            started.append(i)
            if i == 2:
                raise ValueError("item 2")
            return i

        return work

    with pytest.raises(ValueError, match="item 2"):
        list(ordered_map(worker, iter(range(100)), jobs))
    assert max(started) <= 2 + jobs


@whoever_works
@pytest.mark.parametrize("jobs", JOBS)
def test_an_error_of_the_items_comes_after_what_came_before_it(jobs, joining):
    # rows 1 … 8192 hold a bad value, rows 8193 … cannot be read: the first of both is reported, whatever `jobs`
    def items() -> Iterator[int]:
        yield 0
        yield 1
        raise OSError("cannot read item 2")

    got = []
    with pytest.raises(OSError, match="cannot read item 2"):
        for result in ordered_map(lambda: lambda i: i, items(), jobs, joining=joining):
            got.append(result)  # noqa: PERF402
    assert joining or got == [0, 1]

    def work(i: int) -> None:
        time.sleep(0.02)
        if i == 1:
            raise ValueError("item 1")

    with pytest.raises(ValueError, match="item 1"):
        list(ordered_map(lambda: work, items(), jobs, joining=joining))


def test_an_interrupted_thread_waits_for_its_helpers_and_starts_nothing_more_when_joining():
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


@pytest.mark.parametrize("jobs", JOBS)
def test_leaving_early_ends_the_threads(jobs):
    results = ordered_map(lambda: lambda i: i, iter(range(1000)), jobs)
    assert next(results) == 0
    results.close()


@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_prefetch_reads_ahead_and_not_too_far(ahead):
    pulled = 0

    def items() -> Iterator[int]:
        nonlocal pulled
        for i in range(100):
            pulled += 1
            yield i

    reader = prefetch(items(), ahead)
    worst = 0
    for taken, _ in enumerate(reader, 1):
        if taken <= 5:
            time.sleep(0.05)  # time enough to read everything
            assert pulled - taken >= min(ahead, 100 - taken)
        worst = max(worst, pulled - taken)
    # `ahead` wait, and one more is in the reader's hand
    assert worst <= ahead + 1


def test_prefetch_carries_errors_over_behind_the_items():
    def items() -> Iterator[int]:
        yield 1
        raise OSError("gone")

    reader = prefetch(items(), 3)
    assert next(reader) == 1
    with pytest.raises(OSError, match="gone"):
        next(reader)


def test_prefetch_takes_exceptions_for_items_where_they_are_items():
    error = ValueError("just a value")
    assert list(prefetch(iter([error]), 1)) == [error]


def test_leaving_a_prefetch_early_stops_and_closes_the_reader():
    closed = threading.Event()

    def items() -> Iterator[int]:
        try:
            yield from range(10**9)
        finally:
            closed.set()

    reader = prefetch(items(), 2)
    assert next(reader) == 0
    reader.close()
    assert closed.wait(5)
