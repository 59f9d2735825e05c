"""A hundred million rows through one process: constant memory, the right count, the right checksum.

    python benchmarks/soak.py [--rows 100000000] [--folder DIR]

Rows are made of their numbers and come through a pipe as CSV; features (D = 2) go to NPY. The checksum is computed a
second time from the numbers alone, by the Python API, block by block.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import kafeat

KAFEAT = str(Path(sys.executable).with_name("kafeat"))
BLOCK = 1 << 20


def rows(start: int, stop: int) -> np.ndarray:
    """Two columns of small whole numbers that follow from the row number."""
    i = np.arange(start, stop, dtype=np.int64)
    return np.stack([i * 7919 % 1000, i // 1000 % 1000], axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kafeat-soak-", dir=asked.folder) as name:
        folder = Path(name)
        config = {"dtype": "float32", "steps": [{"kind": "fourier", "gamma": 1e-6, "n_components": 2}]}
        fm = kafeat.fit({**config, "columns": {"include": ["c0", "c1"]}}, rows(0, 100_000))
        fm.save(folder / "m.joblib")
        out = folder / "out.npy"
        command = [KAFEAT, "transform", "--model", folder / "m.joblib", "--no-header", "-", out, "--no-fsync"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE)
        peaks: list[float] = []
        threading.Thread(target=_watch, args=(process, peaks), daemon=True).start()
        started = time.perf_counter()
        _pour(process, asked.rows)
        code = process.wait()
        seconds = time.perf_counter() - started
        print(f"exit code {code}, {asked.rows / seconds:,.0f} rows/s, {seconds:,.0f} s")
        early = max(peaks[: max(1, len(peaks) // 4)])
        print(f"resident MiB: {early:.0f} in the first quarter, {max(peaks):.0f} at most")
        Z = np.load(out, mmap_mode="r")
        sums, wrong = np.zeros(2), 0
        for start in range(0, asked.rows, BLOCK):
            stop = min(start + BLOCK, asked.rows)
            wrong += int((Z[start:stop] != fm.transform(rows(start, stop))).sum())
            sums += Z[start:stop].sum(axis=0, dtype=np.float64)
        print(f"rows: {len(Z):,}; sums {sums}; {wrong:,} numbers that differ")
        if code or len(Z) != asked.rows or wrong or max(peaks) > 1.1 * early + 20:
            sys.exit(1)


def _pour(process: subprocess.Popen[bytes], n: int) -> None:
    # The text of the rows repeats every million: made once, since Python would be slower than what is tested.
    once = b"".join(b"%d,%d\n" % (a, b) for a, b in rows(0, 1_000_000))
    if process.stdin is None:
        raise AssertionError("no pipe")
    for start in range(0, n, 1_000_000):
        left = n - start
        process.stdin.write(once if left >= 1_000_000 else b"".join(once.splitlines(keepends=True)[:left]))
    process.stdin.close()


def _watch(process: subprocess.Popen[bytes], peaks: list[float]) -> None:
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            return
        peaks += [int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS")]
        time.sleep(0.5)


if __name__ == "__main__":
    main()
