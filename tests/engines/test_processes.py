"""Processes of this machine: they end with the one that started them, and one that dies harms no other."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np
import pytest

import kafeat
from kafeat.errors import SystemRefusedError
from kafeat.runtime.processes import Processes
from tests.engines.work import blas_threads, double, sleep

if not os.path.exists("/proc/self/environ"):
    pytest.skip("no /proc here", allow_module_level=True)

MARK = "KAFEAT_TEST_OF_PROCESSES"


def workers(mark: str) -> list[int]:
    """Processes that have the mark in their environment."""
    found = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in place.read_bytes():
                found.append(int(place.parent.name))
        except OSError:
            continue
    return found


def wait_until_gone(mark: str, seconds: float) -> bool:
    ends = time.monotonic() + seconds
    while workers(mark):
        if time.monotonic() > ends:
            return False
        time.sleep(0.02)
    return True


def test_one_that_dies_loses_its_own_work_alone():
    processes = Processes(2)
    try:
        slow, dead = processes.submit(sleep, 0.5), processes.submit(double, 7)
        assert isinstance(dead.exception(20), BrokenProcessPool)
        assert slow.exception(20) is None
        assert [processes.submit(double, i).result(20) for i in range(4)] == [0, 2, 4, 6]
    finally:
        processes.close()


def test_work_that_is_not_known_there_is_told():
    processes = Processes(2)

    class Unknown:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return __import__, ("no_module_of_this_name",)

    try:
        future: Future[object] = processes.submit(double, Unknown())  # type: ignore[arg-type]
        told = "the same modules as in this process, got ModuleNotFoundError: No module"
        with pytest.raises(SystemRefusedError, match=told):
            future.result(20)
        assert processes.submit(double, 4).result(20) == 8
    finally:
        processes.close()


def test_one_has_one_blas_thread_and_what_it_prints_is_no_output(capfd):
    before, processes = dict(os.environ), Processes(2)
    try:
        assert processes.submit(blas_threads, None).result(20) == {1}
    finally:
        processes.close()
    assert capfd.readouterr() == ("", "of a library\n")
    assert dict(os.environ) == before


SCRIPT = """
print("once", flush=True)
from kafeat.runtime.processes import Processes
from tests.engines.work import double
processes = Processes(2)
print(processes.submit(double, 4).result(20))
processes.close()
"""


def test_they_run_neither_the_script_that_started_them_nor_files_of_its_folder(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "pickle.py").write_text("print('a file of the folder', flush=True)")
    (tmp_path / "script.py").write_text(SCRIPT)
    script = subprocess.run(
        [sys.executable, "../script.py"], cwd=tmp_path / "data", capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
    )  # fmt: skip
    assert (script.stdout, script.stderr) == ("once\n8\n", "")


def test_they_end_when_they_are_told_to_in_the_middle_of_their_work(monkeypatch):
    monkeypatch.setenv(MARK, "closed")
    processes = Processes(2)
    futures = [processes.submit(sleep, 60.0) for _ in range(5)]
    while len(workers("closed")) < 2:
        time.sleep(0.01)
    started = time.monotonic()
    processes.close()
    assert time.monotonic() - started < 5.0
    assert workers("closed") == []
    wait(futures[:2], 5)
    assert all(future.done() for future in futures)


DRIVER = """
from kafeat.runtime.processes import Processes
from tests.engines.work import sleep
processes = Processes(2)
for _ in range(2):
    processes.submit(sleep, 60.0)
print(flush=True)
sleep(60.0)
"""


def test_they_end_with_the_process_that_started_them():
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER], env={**os.environ, MARK: "killed", "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
    )  # fmt: skip
    with driver:
        while len(workers("killed")) < 3:
            assert driver.poll() is None
            time.sleep(0.01)
        driver.send_signal(signal.SIGKILL)
    assert wait_until_gone("killed", 5.0)


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "fate", [*(pytest.param(fate, marks=SLOW) for fate in ("done", "terminated")), "interrupted", "full disk"]
)
def test_a_command_leaves_no_process_and_says_no_more_than_it_must(fate, tmp_path):
    rows = np.random.default_rng(0).normal(size=(200, 3))
    (tmp_path / "in").mkdir()
    for i in range(8):
        np.save(tmp_path / "in" / f"p{i}.npy", rows)
    step = {"kind": "fourier", "n_components": 4, "frequencies": "iid", "weights": "uniform"}
    kafeat.fit({"steps": [step]}, rows).save(tmp_path / "map.joblib")
    words = [sys.executable, "-m", "kafeat", "transform", "-q", "--engine", "processes", "-j", "2"]
    if fate == "full disk":  # no file may grow beyond 1 KiB, nor the manifest
        words = ["bash", "-c", 'ulimit -f 1; exec "$@"', "bash", *words]
    command = subprocess.Popen(
        [*words, "--model", "map.joblib", "in", "out"], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        env={**os.environ, MARK: str(tmp_path), "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
        start_new_session=True,
    )  # fmt: skip
    if fate.endswith("ted"):  # by a terminal, or by `timeout`: every process of the group gets the signal
        while len(workers(str(tmp_path))) < 3:
            assert command.poll() is None
        os.killpg(command.pid, signal.SIGTERM if fate == "terminated" else signal.SIGINT)
    _, told = command.communicate(timeout=60)  # ends when nobody has that stream any more
    assert workers(str(tmp_path)) == []
    assert command.returncode == {"done": 0, "terminated": 143, "interrupted": 130, "full disk": 5}[fate]
    expected = {"done": "", **{name: f"kafeat: {name}\n" for name in ("terminated", "interrupted")}}
    if fate in expected:
        assert told == expected[fate]
    else:
        assert "File too large" in told
    assert not list((tmp_path / "out").glob(".*"))
