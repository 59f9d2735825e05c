"""A pytest plugin for `make coverage` and `make mutants`: which test runs which line, and a choice of tests."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

CORE = "numpy" if os.environ.get("KAFEAT_COMPILED") == "0" else "compiled"
SECONDS: dict[str, float] = {}
FAILED: set[str] = set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Lines that run now, here or in a process that the test starts, belong to this test."""
    os.environ["COVERED_BY"] = context = f"{CORE} {item.nodeid}"
    if measured := coverage.Coverage.current():
        measured.switch_context(context)
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    SECONDS[report.nodeid] = SECONDS.get(report.nodeid, 0) + report.duration
    if report.failed:
        FAILED.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if measured := coverage.Coverage.current():
        measured.save()
    if (folder := os.environ.get("COVERAGE_FOLDER")) and not hasattr(session.config, "workerinput"):
        passed = {name: round(seconds, 4) for name, seconds in SECONDS.items() if name not in FAILED}
        Path(folder, f"seconds.{CORE}.json").write_text(json.dumps(passed))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what was not asked for. A test that is newer than the measurement stays."""
    if choice := os.environ.get("TESTS_CHOSEN"):
        left_out = set(json.loads(Path(choice).read_text()))
        items[:] = [item for item in items if item.nodeid not in left_out]
