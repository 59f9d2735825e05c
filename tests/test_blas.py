"""The limit on BLAS threads holds as long as anyone needs it, and is lifted after the last."""

import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from kafeat.blas import one_blas_thread


def threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_the_last_to_leave_lifts_the_limit():
    with threadpool_limits(limits=2, user_api="blas"):
        if threads() != {2}:
            pytest.skip("this BLAS takes no two threads")
        entered, leave = threading.Event(), threading.Event()

        def other() -> None:
            with one_blas_thread():
                entered.set()
                leave.wait(10)

        thread = threading.Thread(target=other)
        with one_blas_thread():
            thread.start()
            assert entered.wait(10)
        assert threads() == {1}  # the first has left, the other still computes
        leave.set()
        thread.join()
        assert threads() == {2}
