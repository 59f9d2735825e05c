"""The limit on BLAS threads holds as long as anyone needs it, and is lifted after the last."""

import json
import os
import subprocess
import sys
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


LATER = """
from threadpoolctl import threadpool_info
from kafeat.chain.blas import one_blas_thread

def libraries():
    return {pool["filepath"]: pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

with one_blas_thread():
    first = libraries()
import numpy
with one_blas_thread():
    second = libraries()
import scipy.linalg
with one_blas_thread():
    third = libraries()
print([[*found.values()] for found in (first, second, third)])
"""


def run_apart(code):
    """Run a program with nothing imported before, and two threads for BLAS."""
    words, env = [sys.executable, "-c", code], {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=True)


def test_a_library_that_is_loaded_later_is_limited_too():
    """NumPy and SciPy bring a BLAS each, and both start with as many threads as the environment says."""
    done = run_apart(LATER)
    first, second, third = json.loads(done.stdout)
    if len(third) == len(first):
        pytest.skip("NumPy and SciPy share a BLAS that was loaded before")
    assert set(first + second + third) == {1}


INSIDE = """
import sys
import numpy
import kafeat
from kafeat.chain.chain import Chain
from threadpoolctl import threadpool_info

settled = Chain._with_enough_precision

def look(chain, sample):
    print("scipy.linalg" in sys.modules, [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"])
    return settled(chain, sample)

Chain._with_enough_precision = look
kafeat.fit({"steps": [{"kind": "nystroem", "n_components": 4}]}, numpy.random.default_rng(0).random((30, 3)))
print(True, [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"])
"""


def test_a_fit_that_loads_a_library_limits_it_and_lifts_the_limit():
    """The products of a fit ran in all threads of SciPy's BLAS, and `evaluate` took seven times as long for it."""
    done = run_apart(INSIDE)
    inside, after = done.stdout.splitlines()
    assert set(inside.removeprefix("True ")) <= set("[1, ]")
    assert set(after.removeprefix("True ")) <= set("[2, ]")
