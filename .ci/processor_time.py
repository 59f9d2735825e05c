"""A pytest plugin: the processor time of each test, with its fixtures and the processes that it has waited for.

PYTHONPATH=.ci python -m pytest -n auto -p processor_time tests
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

_MOST = 40
SPENT: Counter[str] = Counter()


def _seconds() -> float:
    times = os.times()
    zygote = sys.modules.get("tests.zygote")  # whose processes are waited for elsewhere
    apart = sum(zygote.spent) if zygote else 0.0
    return times.user + times.system + times.children_user + times.children_system + apart


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    began = _seconds()
    result = yield
    SPENT[item.nodeid] += _seconds() - began
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["processor"] = dict(SPENT)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    SPENT.update(node.workeroutput["processor"])


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the seconds of each folder and of the families that take most; a family is a test with all its cases."""
    folders, families, cases = Counter[str](), Counter[str](), Counter[str]()
    for name, seconds in SPENT.items():
        file, _, test = name.partition("::")
        folders["/".join(file.split("/")[:-1])] += seconds
        families[f"{file}::{test.partition('[')[0]}"] += seconds
        cases[f"{file}::{test.partition('[')[0]}"] += 1
    terminalreporter.section(f"processor time: {sum(SPENT.values()):.0f} s")
    for folder, seconds in folders.most_common():
        terminalreporter.write_line(f"{seconds:7.1f}  {folder}")
    terminalreporter.write_line("")
    for name, seconds in families.most_common(_MOST):
        terminalreporter.write_line(f"{seconds:7.1f}  {cases[name]:4} {name}")
