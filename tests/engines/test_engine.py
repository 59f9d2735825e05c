"""Work that is handed out comes back whole, whatever becomes of the workers."""

from threading import Event

import pytest

from kafeat.errors import UsageError
from kafeat.runtime.backends import start_engine
from kafeat.runtime.engine import Engine, Stop
from tests.engines.work import doubled

ITEMS = [item for item in range(12) if item != 7]


@pytest.mark.parametrize("engine", [Engine(), Engine(jobs=1), Engine("processes", jobs=2)])
def test_everything_comes_back_once(engine):
    assert doubled(engine, ITEMS) == {item: 2 * item for item in ITEMS}


def test_nothing_is_nothing():
    assert doubled(Engine(), []) == {}


@pytest.mark.slow
def test_an_item_that_kills_its_workers_harms_no_other():
    found = doubled(Engine("processes", jobs=2), range(10))
    assert found == {item: None if item == 7 else 2 * item for item in range(10)}


@pytest.mark.parametrize(("engine", "message"), [
    *(
        (Engine(name), f"--engine: expected threads, processes or dask, got {name!r}")
        for name in ("nothing", "loky", "ray", "spark")
    ),
    (Engine("dask"), "--engine dask: expected --scheduler with its address, such as tcp://host:8786,"),
    (Engine("processes", "tcp://x:1"), "--scheduler: expected --engine dask with an address, got"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(engine, message):
    with pytest.raises(UsageError, match=message):
        doubled(engine, [1])


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(UsageError, match=r"pip install 'kafeat\[dask\]'"):
        doubled(Engine("dask", "tcp://127.0.0.1:1"), [1])


def test_work_in_threads_is_stopped_at_the_end_of_the_block():
    began, ended, released = Event(), Event(), Event()

    def work(stop: Stop) -> None:
        with stop.watching():
            began.set()
            try:
                while not released.wait(0.001):
                    stop.check()
            finally:
                ended.set()

    with start_engine(Engine(jobs=1)) as pool:
        future = pool.submit(work, pool.stop)
        assert began.wait(10.0)
    stopped = ended.is_set()
    released.set()
    assert stopped
    with pytest.raises(InterruptedError, match="the run has ended"):
        future.result(10.0)
