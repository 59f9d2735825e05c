"""Work in a thread that can be ended, and all that it has started with it."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from kafeat.contract.threads import Ended, check, endable, pool, share_work


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """A shell that starts the tests in the background has them ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_result_and_the_error_are_those_of_the_work() -> None:
    caller = threading.get_ident()
    assert endable(lambda: threading.get_ident() != caller)
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        endable(lambda: 1 / 0)
    check()  # nothing has ended this thread


def by_pool(work: Callable[[int], None]) -> None:
    with pool(2, "test") as threads:
        list(threads.map(work, range(2)))


def by_two(work: Callable[[int], None]) -> None:
    share_work(lambda: work, range(2), 2)


@pytest.mark.parametrize("way", [by_pool, by_two])
def test_an_interrupt_ends_the_wait_at_once_and_the_work_at_its_next_check(way: Callable[..., None]) -> None:
    begun, heard = threading.Barrier(2), threading.Semaphore(0)
    free, ended = threading.Event(), threading.Event()

    def one(_: int) -> None:
        if begun.wait(10) == 0:
            os.kill(os.getpid(), signal.SIGINT)
        free.wait(10)  # as in a call of a library, which hears nothing
        try:
            check()
        except Ended:
            heard.release()
            raise

    def work() -> None:
        try:
            way(one)
        except Ended:
            ended.set()
            raise

    with pytest.raises(KeyboardInterrupt):
        endable(work)
    assert not ended.is_set()
    free.set()
    assert heard.acquire(timeout=10)
    assert heard.acquire(timeout=10)
    assert ended.wait(10)
    check()


def test_helpers_take_nothing_more_once_the_work_is_ended() -> None:
    done, begun = list[int](), threading.Event()

    def one(i: int) -> None:
        begun.set()
        time.sleep(0.01)
        done.append(i)

    def interrupt() -> None:
        begun.wait(10)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        endable(lambda: share_work(lambda: one, range(100_000), 2))
    for thread in threading.enumerate():
        if thread.name.startswith("kafeat-w"):
            thread.join(10)
    assert 0 < len(done) < 100_000
