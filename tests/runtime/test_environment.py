"""The number of threads that a command takes where none is given."""

import os

import joblib
import pytest

from kafeat.runtime import environment


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """A folder in the place of the control group's, on a machine of eight cores."""
    monkeypatch.setattr(environment, "_CONTROL_GROUPS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    return tmp_path


def test_joblib_counts_the_same_cores():
    assert environment.cores() == joblib.cpu_count()


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max 100000\n", 8), ("200000 100000\n", 2), ("150000 100000\n", 2), ("1000 100000\n", 1), ("1600000 100000\n", 8),
     ("nonsense", 8), ("5 0\n", 8), ("", 8)],
)  # fmt: skip
def test_a_container_has_the_cores_of_its_quota(groups, quota, cores):
    (groups / "cpu.max").write_text(quota)
    assert environment.cores() == cores


@pytest.mark.parametrize(("quota", "cores"), [("-1\n", 8), ("300000\n", 3)])
def test_the_files_of_the_first_version_are_read(groups, quota, cores):
    (groups / "cpu").mkdir()
    (groups / "cpu" / "cpu.cfs_quota_us").write_text(quota)
    (groups / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert environment.cores() == cores


def test_without_affinity_the_cores_of_the_machine_count(groups, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert environment.cores() == 1
