"""Measure the least address space (`ulimit -v`) with which each command works on the sample data.

python benchmarks/least_memory.py

A command works if it ends with code 0 and writes what it writes without a limit.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

KAFEAT = Path(sys.executable).with_name("kafeat")
DIGITS = Path(__file__).parents[1] / "sample_data" / "digits.parquet"
CONFIG = "columns: {exclude: [label]}\nsteps: [{kind: fourier, n_components: 256}, {kind: ridge}]\n"
COMMANDS = {
    "inspect": ("inspect model",),
    "fit": ("fit --config config.yaml digits out.joblib --label label", "out.joblib"),
    "transform": ("transform --features --model model digits out.parquet", "out.parquet"),
    "predict": ("predict --model model digits out.csv", "out.csv"),
    "verify": ("verify --model model digits features.parquet",),
    "evaluate": ("evaluate --model model digits --label label -q",),
    "tune": ("tune digits out.yaml --label label --columns 64 --trials 3 -q", "out.yaml"),
}
MOST, STEP, SECONDS = 4096, 16, 60


def ran(folder: str, words: list[str], mib: int | None) -> tuple[bool, str]:
    """Run a command in an address space of so many MiB; return if it ended with code 0, and how it ended."""

    def limit() -> None:
        if mib is not None:
            resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))

    process = subprocess.Popen(
        [KAFEAT, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=limit
    )
    try:
        code = process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            process.wait(5)
            end = "did not end"
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            end = "did not end, also after SIGTERM"
        return False, end
    return code == 0, f"code {code}" if code >= 0 else signal.Signals(-code).name


def least(folder: str, line: str, output: str | None) -> tuple[int, set[str]]:
    """Return the least MiB with which a command works, and the ends that it had with less."""
    words = [{"digits": str(DIGITS), "model": "model.joblib"}.get(word, word) for word in line.split()]
    path = None if output is None else Path(folder, output)

    def works(mib: int | None) -> tuple[bool, str, bytes]:
        if path is not None:
            path.unlink(missing_ok=True)
        done, end = ran(folder, words, mib)
        return done, end, path.read_bytes() if done and path is not None else b""

    done, end, right = works(None)
    if not done:
        raise SystemExit(f"{line}: {end} without a limit")
    low, high, ends = 0, MOST // STEP, set[str]()
    while high - low > 1:
        middle = (low + high) // 2
        done, end, got = works(middle * STEP)
        if done and got == right:
            high = middle
        else:
            low = middle
            ends.add("another output" if done else end)
    return high * STEP, ends


def main() -> None:
    """Print a line for each command."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.yaml").write_text(CONFIG)
        for line in (
            f"fit --config config.yaml {DIGITS} model.joblib --label label",
            f"transform --features --model model.joblib {DIGITS} features.parquet",
        ):
            subprocess.run([KAFEAT, *line.split()], cwd=folder, check=True, capture_output=True)
        print(
            f"{os.cpu_count()} cores; OPENBLAS_NUM_THREADS={os.environ.get('OPENBLAS_NUM_THREADS', 'not set')}"
        )
        for name, (line, *output) in COMMANDS.items():
            mib, ends = least(folder, line, output[0] if output else None)
            print(f"{name}: {mib:,} MiB; with less: {', '.join(sorted(ends))}", flush=True)


if __name__ == "__main__":
    main()
