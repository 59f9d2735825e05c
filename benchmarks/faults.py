"""Kills `kafeat fit` and `kafeat transform` at random moments, and runs them again.

    python benchmarks/faults.py [--times 200] [--seed 0]

After each kill (SIGKILL and SIGTERM in turn) the output must be the previous one or the right one, whole; the run that
follows must give the bytes of an undisturbed one, and leave nothing else in the folder. Ends with code 1 if not.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

KAFEAT = str(Path(sys.executable).with_name("kafeat"))
FOURIER = "steps: [{kind: fourier, n_components: 256, frequencies: iid, weights: uniform}]\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    moments = random.Random(asked.seed)
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="kafeat-faults-") as name:
        data, work = Path(name, "data"), Path(name, "work")
        data.mkdir()
        work.mkdir()
        X = np.random.default_rng(0).normal(size=(150_000, 20)).astype(np.float32)
        table = pa.table({f"x{i}": X[:, i] for i in range(20)})
        pq.write_table(table, data / "in.parquet")
        pq.write_table(table.slice(0, 4_000), data / "short.parquet")
        (data / "fit.yaml").write_text(FOURIER)
        subprocess.run(
            [KAFEAT, "fit", "--config", data / "fit.yaml", data / "in.parquet", data / "m.joblib"], check=True
        )
        jobs = [
            ["fit", "--config", data / "fit.yaml", data / "in.parquet", work / "out.joblib"],
            ["transform", "--model", data / "m.joblib", data / "in.parquet", work / "out.parquet"],
            ["transform", "--model", data / "m.joblib", data / "in.parquet", work / "out.npy"],
            ["transform", "--model", data / "m.joblib", data / "short.parquet", work / "out.csv.gz"],
        ]
        for job in jobs:
            out = Path(job[-1])
            started = time.perf_counter()
            subprocess.run([KAFEAT, *job], check=True)
            seconds = time.perf_counter() - started
            right = out.read_bytes()
            for i in range(asked.times // len(jobs)):
                found.update(
                    [_one(job, out, right, seconds, (signal.SIGKILL, signal.SIGTERM)[i % 2], moments)]
                )
            print(f"{job[0]} {out.suffixes[0]}: {seconds:.1f} s undisturbed; {dict(found)}", flush=True)
            out.unlink()
    if found["wrong"]:
        sys.exit(1)


def _one(
    job: list[object], out: Path, right: bytes, seconds: float, number: int, moments: random.Random
) -> str:
    out.write_bytes(b"previous")
    process = subprocess.Popen([KAFEAT, *map(str, job)], stderr=subprocess.DEVNULL)
    time.sleep(moments.uniform(0.0, 1.05 * seconds))
    process.send_signal(number)
    process.wait()
    after, left = out.read_bytes(), sorted(os.listdir(out.parent))
    subprocess.run([KAFEAT, *map(str, job)], check=True)
    if after not in (b"previous", right):
        print(f"wrong: after signal {number} {out} is neither the previous output nor the right one")
        return "wrong"
    if out.read_bytes() != right or os.listdir(out.parent) != [out.name]:
        print(
            f"wrong: the run after signal {number} left {os.listdir(out.parent)}, or other bytes; before it: {left}"
        )
        return "wrong"
    if after == right:
        return "done before the signal"
    return "a draft was left and removed" if len(left) > 1 else "nothing was left"


if __name__ == "__main__":
    main()
