"""Kills runs over parts at random moments, and begins another at once, with another map, in the same folder.

    python benchmarks/orphans.py [--times 20] [--engine processes] [--engine dask] [--seed 0] [--folder DIR]

The command is killed by SIGKILL, SIGTERM and SIGINT, so many times each and engine; its workers, or those of the
cluster, may go on. The new run must end with code 0. Ten seconds later every part must be its own, to the byte, the
manifest must tell so, `kafeat verify` must agree, and nothing else may be there. Ends with code 1 if not. Dask needs
the extra kafeat[dask].
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from scaling import cluster, made, table

import kafeat
from kafeat.io.storage.location import parse_location

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
LATER = 10.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--engine", action="append", choices=["processes", "dask"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", default=None)
    asked = parser.parse_args()
    moments = random.Random(asked.seed)
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="kafeat-orphans-", dir=asked.folder))
        )
        trial = Trial(folder)
        found: Counter[str] = Counter()
        for engine in asked.engine or ["processes", "dask"]:
            words = ["--engine", engine]
            if engine == "dask":
                words += ["--scheduler", stack.enter_context(cluster(folder))]
            seconds = trial.undisturbed(words)
            for number in SIGNALS:
                outs = [
                    trial.kill(words, number, moments.uniform(0.0, seconds), i) for i in range(asked.times)
                ]
                verdicts = Counter(trial.verdict(out) for out in outs)
                found += verdicts
                print(f"{engine}, {number.name}: {dict(verdicts)}", flush=True)
    sys.exit(0 if set(found) == {"right"} else 1)


class Trial:
    """Twelve parts, two maps, and what the second makes of the parts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._data, self._first = made(folder, 12, 40_000, 10, 128)
        self._second = str(folder / "second.joblib")
        step = {"kind": "fourier", "n_components": 128, "frequencies": "iid", "weights": "uniform"}
        kafeat.fit({"seed": 1, "steps": [step]}, table(np.random.default_rng(1), 2_000, 10)).save(
            self._second
        )
        self._run(self._second, folder / "right", []).wait()
        self._ended: dict[Path, float] = {}

    def undisturbed(self, words: list[str]) -> float:
        """Seconds of a run that nobody kills."""
        started = time.monotonic()
        assert self._run(self._first, self._folder / "calm", words).wait() == 0
        shutil.rmtree(self._folder / "calm")
        return time.monotonic() - started

    def kill(self, words: list[str], number: signal.Signals, moment: float, i: int) -> Path:
        """Kill a run, and have another in its place; returns its folder."""
        out = self._folder / f"{words[1]}-{number.name}-{i}"
        first = self._run(self._first, out, words)
        time.sleep(moment)
        first.send_signal(number)
        first.wait()
        code = self._run(self._second, out, [*words, ("--resume", "--overwrite")[i % 2]]).wait()
        if code:
            print(f"wrong: {out.name}, {moment:.2f} s: the new run ended with {code}")
        self._ended[out] = time.monotonic()
        return out

    def verdict(self, out: Path) -> str:
        """List the folder ten seconds after the new run."""
        time.sleep(max(0.0, self._ended[out] + LATER - time.monotonic()))
        wrong = list(self._wrong(out))
        print("".join(f"wrong: {out.name}: {what}\n" for what in wrong), end="")
        shutil.rmtree(out)
        return "wrong" if wrong else "right"

    def _wrong(self, out: Path):
        right = {path.name: path.read_bytes() for path in (self._folder / "right").glob("*.parquet")}
        there = {path.name for path in out.iterdir()}
        if there != {*right, "_kafeat.json"}:
            yield f"files {sorted(there ^ {*right, '_kafeat.json'})}"
        manifest = json.loads((out / "_kafeat.json").read_text())
        if manifest["state"] != "complete":
            yield f"state {manifest['state']}"
        for part in manifest["parts"]:
            content, entry = (out / part["name"]).read_bytes(), parse_location(out / part["name"]).entry()
            told = part["output"]
            if content != right[part["name"]]:
                yield f"{part['name']}: bytes of another map"
            if hashlib.sha256(content).hexdigest() != told["sha256"] or entry.stamp != told["stamp"]:
                yield f"{part['name']}: the manifest tells another file"
        words = ["verify", "-q", "--model", self._second, self._data, str(out)]
        if subprocess.run([sys.executable, "-m", "kafeat", *words]).returncode:
            yield "verify"

    def _run(self, model: str, out: Path, words: list[str]) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "kafeat", "transform", "-q", "-j", "2", "--model", model]
        return subprocess.Popen([*command, self._data, str(out), *words], stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
