"""Data sets of parts: threads, processes and Dask side by side; ten thousand tiny parts; workers that are killed.

    python benchmarks/scaling.py [--only parts|tiny|kills] [--rounds 3] [--folder DIR]

Needs the extra kafeat[dask]. The scheduler and its two workers, of one thread each, are processes of this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import kafeat
from kafeat.io.storage.location import parse_location
from kafeat.jobs.dataset.api import transform_parts
from kafeat.jobs.dataset.journal import DatasetResult
from kafeat.jobs.dataset.request import DatasetRequest
from kafeat.runtime.engine import Engine

FOURIER = {"kind": "fourier", "frequencies": "orthogonal", "weights": "uniform"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=["parts", "tiny", "kills"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", type=int, default=64)
    parser.add_argument("--tiny", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--folder", default=None)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="kafeat-scaling-", dir=asked.folder) as name,
        cluster(Path(name)) as dask,
    ):
        folder = Path(name)
        if asked.only in (None, "parts"):
            many(folder, dask, asked.parts, asked.rounds)
        if asked.only in (None, "tiny"):
            tiny(folder, dask, asked.tiny)
        if asked.only in (None, "kills"):
            kills(folder, dask, asked.parts, asked.kills)


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The address of a scheduler with two workers."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{found.getsockname()[1]}"
    words = [["scheduler", "--host", address], *[["worker", address, "--nthreads", "1"]] * 2]
    log = (folder / "dask.log").open("wb")
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "dask", *one, "--no-dashboard"],
            cwd=folder, stdout=log, stderr=log, start_new_session=True,
        )
        for one in words
    ]  # fmt: skip
    try:
        yield address
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
        log.close()


def made(folder: Path, parts: int, rows: int, width: int, features: int) -> tuple[str, str]:
    """A data set and a map."""
    data = folder / f"in-{parts}-{rows}"
    model = str(folder / f"map-{width}.joblib")
    rng = np.random.default_rng(0)
    kafeat.fit({"steps": [{**FOURIER, "n_components": features}]}, table(rng, 2_000, width)).save(model)
    if not data.exists():
        data.mkdir()
        for i in range(parts):
            pq.write_table(table(rng, rows, width), data / f"p{i:05d}.parquet")
    return str(data), model


def table(rng: np.random.Generator, rows: int, width: int) -> pa.Table:
    return pa.table({f"x{j}": rng.normal(size=rows) for j in range(width)})


def run(folder: Path, model: str, data: str, engine: Engine, name: str = "out") -> DatasetResult:
    out = folder / name
    shutil.rmtree(out, ignore_errors=True)
    done = transform_parts(asked(model, data, out, engine=engine))
    assert not done.failed
    return done


def asked(model: str, data: str, out: Path, **options: Any) -> DatasetRequest:
    """A run over the parts of `data`."""
    return DatasetRequest(model, parse_location(data), parse_location(out), **options)


def many(folder: Path, dask: str, parts: int, rounds: int) -> None:
    """Throughput over parts of usual size."""
    data, model = made(folder, parts, 50_000, 20, 256)
    engines = {
        "one thread": Engine(jobs=1),
        "two threads": Engine(jobs=2),
        "two processes": Engine("processes", jobs=2),
        "two Dask workers": Engine("dask", dask),
    }
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(rounds + 1):  # the first warms
        for name, engine in engines.items():
            seconds[name].append(run(folder, model, data, engine).seconds)
    one = statistics.median(seconds["one thread"][1:])
    print(f"{parts} parts of 50,000 rows, 20 columns to 256 float32 features, Parquet; {rounds} rounds")
    for name, found in seconds.items():
        here = statistics.median(found[1:])
        spread = f"{min(found[1:]):.2f}-{max(found[1:]):.2f}"
        print(
            f"{name:22} {here:7.2f} s ({spread}) {parts * 50_000 / here:12,.0f} rows/s {one / here:5.2f} x",
            flush=True,
        )


def tiny(folder: Path, dask: str, parts: int) -> None:
    """Measure the cost of a part that holds next to nothing."""
    data, model = made(folder, parts, 4, 4, 8)
    for name, engine in {"two threads": Engine(jobs=2), "two Dask workers": Engine("dask", dask)}.items():
        done = run(folder, model, data, engine)
        assert done.rows == 4 * parts
        print(f"{parts:,} parts of 4 rows, {name}: {1000 * done.seconds / parts:.2f} ms a part", flush=True)
        started = time.perf_counter()
        kept = transform_parts(asked(model, data, folder / "out", resume=True)).kept
        assert kept == parts
        print(f"    --resume of all of them: {time.perf_counter() - started:.2f} s", flush=True)


def kills(folder: Path, dask: str, parts: int, times: int) -> None:
    """A worker is killed at a random moment of each run: all parts must be there, once, with the right bytes."""
    data, model = made(folder, parts, 50_000, 20, 256)
    moments = random.Random(0)
    calm = run(folder, model, data, Engine("dask", dask), "calm")
    right = sorted((folder / "calm").glob("*.parquet"))
    lost = 0
    for number in range(times):
        killer = Killer(moments, parts)
        shutil.rmtree(folder / "out", ignore_errors=True)
        request = asked(model, data, folder / "out", engine=Engine("dask", dask))
        done = transform_parts(request, announce=lambda _parts, killer=killer: killer)
        told = json.loads((folder / "out" / "_kafeat.json").read_text())
        names = [part["name"] for part in told["parts"]]
        good = (
            not done.failed
            and done.rows == calm.rows
            and len(set(names)) == len(names) == parts
            and all(path.read_bytes() == (folder / "out" / path.name).read_bytes() for path in right)
            and len(list((folder / "out").iterdir())) == parts + 1
        )
        lost += not good
        verdict = "right" if good else "WRONG"
        print(f"kill {number + 1}, {killer.after} parts done: {done.seconds:.1f} s, {verdict}", flush=True)
    print(f"{times} kills, {lost} runs with something lost or twice; undisturbed {calm.seconds:.1f} s")
    sys.exit(1 if lost else 0)


class Killer:
    """Kills a worker when so many parts are done, and a moment has passed."""

    def __init__(self, moments: random.Random, parts: int) -> None:
        self._moments, self.after, self._done = moments, moments.randrange(parts - 2), -1

    def __call__(self, done: int) -> None:
        self._done += 1 if self._done < 0 else done
        if self._done == self.after:
            time.sleep(self._moments.uniform(0.0, 0.1))
            os.kill(self._moments.choice(workers()), signal.SIGKILL)


def workers() -> list[int]:
    """The processes below the nannies."""
    found = []
    for status in Path("/proc").glob("[0-9]*"):
        try:
            line = (status / "cmdline").read_bytes()
            parent = (status / "stat").read_text().rpartition(")")[2].split()[1]
            above = (Path("/proc") / parent / "cmdline").read_bytes()
        except OSError:
            continue
        if b"spawn_main" in line and b"dask\0worker" in above:
            found.append(int(status.name))
    return found


if __name__ == "__main__":
    main()
