"""Parts on a real Dask cluster: a scheduler and two workers, each a process of its own."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import kafeat
from kafeat.errors import SystemRefusedError
from kafeat.runtime.engine import Engine
from tests.engines.work import doubled
from tests.jobs.files import transform_parts
from tests.sizes import size
from tests.zygote import Process

pytest.importorskip("distributed")

HERE = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(HERE), "DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "False"}
PARTS, ROWS = 24, size(2_000, 20_000)


def start(*words: str, folder: Path) -> subprocess.Popen[bytes]:
    """In a group of its own: a nanny has a worker below it."""
    log = (folder / f"{words[0]}-{time.monotonic_ns()}.log").open("wb")
    with log:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *words, "--no-dashboard"],
            env=ENVIRONMENT, cwd=folder, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip


def end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Cluster:
    """A scheduler and two workers of one thread."""

    def __init__(self, folder: Path) -> None:
        self.address = f"tcp://127.0.0.1:{free_port()}"
        self.scheduler = start("scheduler", "--host", self.address, folder=folder)
        self.nannies = [
            start("worker", self.address, "--nthreads", "1", "--local-directory", str(folder), folder=folder)
            for _ in range(2)
        ]

    def workers(self) -> list[int]:
        """The processes that do the work."""
        nannies = {nanny.pid for nanny in self.nannies}
        found = []
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                parent = re.search(r"PPid:\s+(\d+)", status.read_text())
                line = (status.parent / "cmdline").read_bytes()
            except OSError:
                continue
            if parent and int(parent[1]) in nannies and b"spawn_main" in line:
                found.append(int(status.parent.name))
        return found

    def close(self) -> None:
        for process in [*self.nannies, self.scheduler]:
            end(process)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    found = Cluster(tmp_path_factory.mktemp("dask"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Path]:
    """A data set, a map, and the features as this process makes them."""
    folder = tmp_path_factory.mktemp("parts")
    rng = np.random.default_rng(0)
    (folder / "in").mkdir()
    for i in range(PARTS):
        np.save(folder / "in" / f"p{i:02d}.npy", rng.normal(size=(ROWS, 10)))
    model = str(folder / "map.joblib")
    config = {"steps": [{"kind": "fourier", "n_components": 128, "frequencies": "orthogonal"}]}
    kafeat.fit(config, rng.normal(size=(1000, 10))).save(model)
    transform_parts(model, folder / "in", folder / "here")
    return folder / "in", model, folder / "here"


def same(out: Path, here: Path) -> bool:
    names = sorted(path.name for path in here.glob("*.npy"))
    return sorted(path.name for path in out.iterdir()) == ["_kafeat.json", *names] and all(
        (out / name).read_bytes() == (here / name).read_bytes() for name in names
    )


def test_workers_make_the_bytes_that_this_process_makes(cluster, made, tmp_path, monkeypatch):
    data, model, here = made
    monkeypatch.chdir(tmp_path)  # the workers stand elsewhere
    told: list[int] = []
    run = transform_parts(
        model, data, "out", engine=Engine("dask", cluster.address), announce=lambda _parts: told.append
    )
    assert (run.parts, run.failed, sum(told)) == (PARTS, (), PARTS)
    assert same(tmp_path / "out", here)


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(cluster, made, tmp_path):
    data, model, here = made
    out = tmp_path / "out"
    killed: list[int] = []

    def kill_one(done: int) -> None:
        if done and not killed:
            killed.append(cluster.workers()[0])
            os.kill(killed[0], signal.SIGKILL)

    run = transform_parts(
        model, data, out, engine=Engine("dask", cluster.address), announce=lambda _parts: kill_one
    )
    assert killed
    records = json.loads((out / "_kafeat.json").read_text())["parts"]
    lost = {one["name"]: one["lost_workers"] for one in records if one["lost_workers"]}
    assert set(run.made_again) == set(lost) != set()
    assert all(worker.startswith("tcp://127.0.0.1:") for workers in lost.values() for worker in workers)
    assert (run.parts, run.rows, run.failed) == (PARTS, PARTS * ROWS, ())
    assert same(out, here)


@pytest.mark.slow
def test_a_part_that_kills_its_workers_harms_no_other(cluster):
    found = doubled(Engine("dask", cluster.address), range(10))
    assert found == {item: None if item == 7 else 2 * item for item in range(10)}


@pytest.mark.slow
def test_a_scheduler_that_is_lost_is_told_and_the_run_goes_on_later(made, tmp_path):
    data, model, here = made
    out, own = tmp_path / "out", Cluster(tmp_path)
    words = ("--engine", "dask", "--scheduler", own.address, "--log-format", "json")
    job = Process("transform --model", model, data, out, *words, text=True)
    try:
        while job.poll() is None and len(list(out.glob("*.npy"))) < PARTS // 3:
            time.sleep(0.005)
        os.kill(own.scheduler.pid, signal.SIGKILL)
        _, told = job.communicate(timeout=60)
    finally:
        own.close()
    *_, last = map(json.loads, told.splitlines())  # no line is of another form
    assert (job.returncode, last["event"], last["exit_code"], last["retry"]) == (5, "refused", 5, True)
    assert "expected the Dask scheduler to stay, got a lost connection" in last["message"]
    end = json.loads((out / "_kafeat.json").read_text())
    assert (end["state"], end["exit_code"], end["pid"]) == ("refused", 5, job.pid)
    run = transform_parts(model, data, out, resume=True)
    assert run.kept >= 1
    assert same(out, here)


def test_no_scheduler_is_told_in_bounded_time(made, tmp_path, monkeypatch):
    monkeypatch.setattr("kafeat.runtime.backends._CONNECT_SECONDS", 1)
    address = f"tcp://127.0.0.1:{free_port()}"
    with pytest.raises(SystemRefusedError, match=f"{address}: expected a Dask scheduler, got"):
        transform_parts(made[1], made[0], tmp_path / "out", engine=Engine("dask", address))
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_no_scheduler_costs_no_earlier_part(made, tmp_path, monkeypatch):
    data, model, here = made
    out = tmp_path / "out"
    transform_parts(model, data, out)
    monkeypatch.setattr("kafeat.runtime.backends._CONNECT_SECONDS", 1)
    with pytest.raises(SystemRefusedError, match="expected a Dask scheduler, got"):
        transform_parts(
            model, data, out, engine=Engine("dask", f"tcp://127.0.0.1:{free_port()}"), overwrite=True
        )
    assert same(out, here)
