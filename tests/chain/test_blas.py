"""The limit on BLAS threads holds as long as anyone needs it, and is lifted after the last."""

import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from kafeat.chain.blas import one_blas_thread


def threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    with threadpool_limits(limits=2, user_api="blas"):
        if threads() != {2}:
            pytest.skip("this BLAS takes no two threads")
        yield


@pytest.mark.usefixtures("two_threads")
def test_the_outermost_lifts_the_limit():
    with one_blas_thread():
        with one_blas_thread():
            assert threads() == {1}
        assert threads() == {1}
    assert threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_a_thread_that_leaves_does_not_lift_the_limit_of_another():
    def other() -> None:
        with one_blas_thread():
            pass

    with one_blas_thread():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert threads() == {1}
    assert threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_any_thread_sets_the_limit_and_any_other_lifts_it():
    """As under Dask and in servers: the first to come need not be the main thread, nor the last to leave."""
    inside, leave = threading.Event(), threading.Event()
    seen: list[set[int]] = []

    def first() -> None:
        with one_blas_thread():
            seen.append(threads())
            inside.set()
            leave.wait(60)

    with one_blas_thread():
        pass
    thread = threading.Thread(target=first)
    thread.start()
    assert inside.wait(60)
    with one_blas_thread():
        leave.set()
        thread.join()
        seen.append(threads())
    assert seen == [{1}, {1}]
    assert threads() == {2}
