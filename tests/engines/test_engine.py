"""Work that is handed out comes back whole, whatever becomes of the workers."""

from __future__ import annotations

import pytest

from kafeat.backends import Engine
from kafeat.engine import completed
from kafeat.errors import UsageError
from tests.engines.work import double

ITEMS = [item for item in range(12) if item != 7]


@pytest.mark.parametrize(
    "engine", [Engine(), Engine(jobs=1), Engine("loky", jobs=2), Engine("multiprocessing", jobs=2)]
)
def test_everything_comes_back_once(engine: Engine) -> None:
    assert sorted(completed(engine, double, ITEMS)) == [(item, 2 * item) for item in ITEMS]


def test_nothing_is_nothing() -> None:
    assert list(completed(Engine(), double, [])) == []


@pytest.mark.slow
def test_an_item_that_kills_its_workers_harms_no_other() -> None:
    found = dict(completed(Engine("loky", jobs=2), double, range(10)))
    assert found == {item: None if item == 7 else 2 * item for item in range(10)}


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        (
            Engine("nothing"),
            "expected threads, loky, dask, ray, spark or another backend of joblib, got 'nothing'",
        ),
        (
            Engine("dask"),
            "--engine dask: expected --scheduler with its address, such as tcp://host:8786, got none",
        ),
        (
            Engine("loky", "tcp://x:1"),
            "--scheduler: expected --engine dask or ray with an address, got --engine loky",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(engine: Engine, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        list(completed(engine, double, [1]))


@pytest.mark.parametrize("name", ["dask", "ray", "spark"])
def test_a_missing_extra_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("distributed", "ray", "joblibspark"):
        monkeypatch.setitem(__import__("sys").modules, package, None)
    address = "tcp://127.0.0.1:1" if name == "dask" else None
    with pytest.raises(UsageError, match=rf"pip install 'kafeat\[{name}\]'"):
        list(completed(Engine(name, address), double, [1]))
