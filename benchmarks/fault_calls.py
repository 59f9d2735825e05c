"""Lets every call of a command on its files fail once, and random allocations of memory.

    python benchmarks/fault_calls.py [--only WORDS] [--random TRIES] [--all-errors] [--memory TRIES] [--seed 0]

`fault_calls.c` is preloaded and lets the Nth call fail: open, read, write, fsync, rename, link, unlink, mkdir and their
relatives, on paths below the folder of the command. N goes from 1 to the number of calls, with EIO, ENOSPC and EACCES
in turn. Each try is a child of a process that has imported everything. After it

- the exit code is 5, or it is 0 and every output is complete;
- there is no traceback;
- each file is the previous one or the new one, complete, and there is no other file; a part of a folder may be missing;
- the same command without a fault ends with 0 and the right files (with `--resume`, if a folder was begun).

With `--memory`, malloc fails at random, and with any exit code the files must be right. Ends with code 1 if anything is
wrong.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import importlib
import json
import mmap
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SHIM = ROOT / "build" / "fault_calls.so"
ERRORS = (errno.EIO, errno.ENOSPC, errno.EACCES)
SECONDS = 100  # until a try is taken for one that hangs
MANIFEST, LOCK, STATS = "_kafeat.json", ".kafeat.lock", "s.json"

Files = dict[str, bytes]

FORMATS = ("npy", "parquet", "arrow", "arrows", "csv", "csv.gz", "csv.zst", "jsonl", "svm", "npz")
FOURIER = "steps: [standardize, {kind: fourier, n_components: 8, frequencies: iid, weights: uniform}]\n"
NYSTROEM = "chunk_rows: 20\nsteps: [standardize, {kind: nystroem, n_components: 8}]\n"


@dataclass(frozen=True)
class Case:
    """A command, and the files that it begins with. `parts` means that its output is a folder."""

    name: str
    words: tuple[str, ...]
    files: Files = field(default_factory=dict)
    parts: bool = False


@dataclass(frozen=True)
class Outcome:
    """The end of a try: the exit code (negative for a signal), stderr, the number of calls and the one that failed."""

    code: int
    text: str
    calls: int
    failed: str


class Seen(ctypes.Structure):
    """The counts that `fault_calls.c` shares with the parent of a try."""

    _fields_ = (("calls", ctypes.c_long), ("failed", ctypes.c_char * 4160))


class Bench:
    """Runs commands in children of this process, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.work, self._log = folder / "work", folder / "log"
        self._shared = mmap.mmap(-1, ctypes.sizeof(Seen))
        self._seen = Seen.from_buffer(self._shared)
        self._shim = ctypes.CDLL(str(SHIM))

    def put(self, files: Files) -> None:
        """Make the folder hold these files."""
        shutil.rmtree(self.work, ignore_errors=True)
        for name, content in files.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def files(self) -> Files:
        """Return the files of the folder."""
        paths = (path for path in self.work.rglob("*") if not path.is_dir())
        return {str(path.relative_to(self.work)): path.read_bytes() for path in paths}

    def run(self, words: tuple[str, ...], nth: int = 0, error: int = 0, memory: bool = False) -> Outcome:
        """Run a command whose Nth call fails; 0 for none."""
        self._seen.calls, self._seen.failed = 0, b""
        child = os.fork()
        if child == 0:
            self._become(words, nth, error, memory)
        _, status = os.waitpid(child, 0)
        code, text = os.waitstatus_to_exitcode(status), self._log.read_text(errors="replace")
        return Outcome(code, text, self._seen.calls, self._seen.failed.decode(errors="replace"))

    def _become(self, words: tuple[str, ...], nth: int, error: int, memory: bool) -> None:
        from kafeat.cli.main import main

        log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(self.work)
        sys.argv = ["kafeat", *words]
        signal.alarm(SECONDS)
        if nth == 0:
            _at_exit(lambda: Path(f"{self._log}.modules").write_text("\n".join(sys.modules)))
        if memory:
            self._shim.fault_memory(ctypes.byref(self._seen), ctypes.c_long(nth))
        else:
            self._shim.fault_calls(
                ctypes.byref(self._seen), str(self.work).encode(), ctypes.c_long(nth), error
            )
        try:
            main()
        except BaseException:  # no memory even to report it
            os._exit(1)

    def warm(self) -> None:
        """Import what the last command has imported."""
        for name in Path(f"{self._log}.modules").read_text().split("\n"):
            try:
                importlib.import_module(name)
            except Exception:  # an alias, or `__main__`
                continue


def _at_exit(do: Any) -> None:
    leave = os._exit

    def leaving(code: int) -> None:
        do()
        leave(code)

    os._exit = leaving  # type: ignore[assignment]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="commands whose names contain one of these words")
    parser.add_argument("--random", type=int, help="so many random calls in place of all")
    parser.add_argument("--memory", type=int, default=0, help="so many random allocations")
    parser.add_argument(
        "--all-errors", action="store_true", help="each call with each error, not with one in turn"
    )
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if "fault_calls.so" not in os.environ.get("LD_PRELOAD", ""):
        _begin_again()
    with tempfile.TemporaryDirectory(prefix="kafeat-fault-calls-") as name:
        sys.exit(_judge(Bench(Path(name)), asked))


def _begin_again() -> None:
    """Build the library, and start this program again with it. Python's own allocator would hide most allocations."""
    SHIM.parent.mkdir(exist_ok=True)
    compiler = os.environ.get("CC") or "cc"
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-o", SHIM, ROOT / "benchmarks" / "fault_calls.c", "-ldl"],
        check=True,
    )
    more = {
        "LD_PRELOAD": str(SHIM),
        "PYTHONMALLOC": "malloc",
        "OPENBLAS_NUM_THREADS": "1",
        "KAFEAT_JOBS": "1",
    }
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **more})


def _judge(bench: Bench, asked: argparse.Namespace) -> int:
    found, wrong, started = Counter[str](), 0, time.monotonic()
    words = asked.only.split()
    cases = [case for case in _cases(bench) if not words or any(word in case.name for word in words)]
    goals = {case.name: _undisturbed(bench, case) for case in cases}
    for case, nth, error, memory in _tries(bench, cases, goals, asked):
        problem, outcome = _try(bench, case, goals[case.name][0], nth, error, memory)
        kind = "memory" if memory else "calls"
        found[f"{kind} that failed"] += bool(outcome.failed)
        if problem:
            wrong += 1
            what = f"{errno.errorcode.get(error, 'ENOMEM')} of {outcome.failed}"
            print(
                f"wrong: {case.name}, {nth}: {what}: {problem}\n  {outcome.text.strip()[-300:]}", flush=True
            )
    minutes = (time.monotonic() - started) / 60
    print(f"{len(cases)} commands, {dict(found)}, {wrong} wrong, {minutes:.1f} minutes")
    return wrong > 0


def _tries(
    bench: Bench, cases: list[Case], goals: dict[str, tuple[Files, int]], asked: argparse.Namespace
) -> Iterator[tuple[Case, int, int, bool]]:
    chance = random.Random(asked.seed)
    every = [
        (case, nth, error, False)
        for case in cases for nth in range(1, goals[case.name][1] + 1)
        for error in (ERRORS if asked.all_errors else ERRORS[nth % 3 :][:1])
    ]  # fmt: skip
    yield from every if asked.random is None else chance.sample(every, min(asked.random, len(every)))
    numbers: dict[str, int] = {}
    for _ in range(asked.memory):
        case = chance.choice(cases)
        if case.name not in numbers:
            bench.put(case.files)
            numbers[case.name] = bench.run(case.words, memory=True).calls
        yield case, chance.randint(1, numbers[case.name]), 0, True


def _undisturbed(bench: Bench, case: Case) -> tuple[Files, int]:
    """Return the files after the command, and the number of its calls when everything is imported."""
    for _ in range(2):
        bench.put(case.files)
        outcome = bench.run(case.words)
        if outcome.code:
            raise SystemExit(f"{case.name}: expected code 0, got {outcome.code}: {outcome.text}")
        bench.warm()
    return bench.files(), outcome.calls


def _try(bench: Bench, case: Case, right: Files, nth: int, error: int, memory: bool) -> tuple[str, Outcome]:
    bench.put(case.files)
    outcome = bench.run(case.words, nth, error, memory)
    problem = _problem(case, outcome, bench.files(), right, memory)
    if not problem and not ("--no-clobber" in case.words and bench.files() == right):
        begun = case.parts or any(name.endswith(".journal") for name in bench.files())
        goes_on = begun and not ({"--resume", "--overwrite"} & {*case.words} and case.parts)
        again = bench.run((*case.words, "--resume") if goes_on else case.words)
        problem = _difference(bench.files(), right)
        problem = problem and f"the command after it left {problem}"
        if again.code:
            problem = f"the command after it ended with {again.code}: {again.text}"
    return problem, outcome


def _problem(case: Case, outcome: Outcome, files: Files, right: Files, memory: bool) -> str:
    """Say what is wrong after a command one of whose calls failed; nothing if all is well."""
    if LOCK in outcome.failed:  # documented: a lock that cannot be read or removed stays for the next command
        files = {name: content for name, content in files.items() if os.path.basename(name) != LOCK}
    if outcome.code == 0:
        return _difference(files, right)
    if not memory and (outcome.code != 5 or "Traceback" in outcome.text):
        return f"expected code 5 without a traceback, got {outcome.code}"
    if not memory and not outcome.text.strip():
        return "expected an error on stderr, got none"
    for name, content in files.items():
        base = os.path.basename(name)
        if content == case.files.get(name) or (name in right and _same(name, content, right[name])):
            continue
        if base == MANIFEST and case.parts:
            if _tells(json.loads(content), os.path.dirname(name), files):
                continue
            return f"{name} lists parts that are not there"
        # Documented: the next command removes locks, and drafts of a killed one; `--resume` takes trials from a
        # journal. The C library ends a process with 127 if there is no memory for a thread.
        killed = outcome.code < 0 or outcome.code == 127
        if base == STATS and json.loads(content)["state"] == "refused":  # the record of this run
            continue
        if (killed and base.endswith(".tmp")) or (memory and base == LOCK) or base.endswith(".journal"):
            continue
        return f"{name} is {'neither the previous nor the new one' if name in right else 'left'}"
    gone = [name for name in case.files if name not in files and not (case.parts and name.startswith("out/"))]
    return f"{gone} are gone" if gone else ""


def _tells(manifest: Any, folder: str, files: Files) -> bool:
    parts = [part for part in manifest["parts"] if manifest["state"] != "running"]
    return all(len(files.get(f"{folder}/{part['name']}", b"")) == part["output"]["bytes"] for part in parts)


def _difference(files: Files, right: Files) -> str:
    if files.keys() != right.keys():
        return f"expected the files {sorted(right)}, got {sorted(files)}"
    others = [name for name in files if not _same(name, files[name], right[name])]
    return f"other content in {others}" if others else ""


def _same(name: str, one: bytes, other: bytes) -> bool:
    """Compare two files; of JSON without times."""
    if one == other:
        return True
    if not name.endswith(".json"):
        return False
    try:
        return bool(_timeless(json.loads(one)) == _timeless(json.loads(other)))
    except ValueError:
        return False


def _timeless(value: Any) -> Any:
    if isinstance(value, list):
        return [_timeless(one) for one in value]
    if isinstance(value, dict):
        measured, clock = ("second", "stamp"), ("start", "end", "renewed", "pid", "command_line")
        return {
            key: _timeless(one)
            for key, one in value.items()
            if key not in clock and not any(word in key for word in measured)
        }
    return value


def _cases(bench: Bench) -> list[Case]:
    """Return the commands, each with files of an earlier run that it replaces."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    import kafeat

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    table = pa.table(
        {**{f"x{i}": X[:, i] for i in range(3)}, "y": pa.array(["no", "yes"]).take(rng.integers(0, 2, 60))}
    )
    bench.put({"in.yaml": NYSTROEM.encode(), "model.yaml": f"{NYSTROEM[:-2]}, ridge]\n".encode()})
    os.chdir(bench.work)
    for name, part in (("a", table[:20]), ("b/b", table[20:40]), ("c", table[40:])):
        Path(f"in/{name}.parquet").parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(part, f"in/{name}.parquet")
    pq.write_table(table, "in.parquet", row_group_size=25)
    pa.csv.write_csv(table, "in.csv")
    kafeat.fit("in.yaml", "in.parquet", label="y").save("map.joblib")
    kafeat.fit("model.yaml", "in.parquet", label="y").save("model.joblib")
    Path("other.yaml").write_text(FOURIER)
    kafeat.fit("other.yaml", "in.parquet", label="y").save("other.joblib")
    bad = Path("in.csv").read_text().replace("\n", "\n1,x,3,no\n", 1)
    Path("bad.csv").write_text(bad)
    made = bench.files()

    def case(name: str, text: str, reads: str, *before: str) -> Case:
        files = {
            one: made[one]
            for word in reads.split()
            for one in made
            if one == word or one.startswith(f"{word}/")
        }
        bench.put({**made})
        for line in before:
            done = bench.run(tuple(line.split()))
            if done.code:
                raise SystemExit(f"{line}: {done.text}")
            bench.warm()
        new = {one: content for one, content in bench.files().items() if one not in made}
        return Case(name, tuple(text.split()), {**files, **new}, " out " in f"{text} ")

    other = "transform --model other.joblib"
    own = "transform --model map.joblib"
    one_file = [
        case(
            f"transform {kind}",
            f"{own} in.parquet out.{kind}",
            "map.joblib in.parquet",
            f"{other} in.parquet out.{kind}",
        )
        for kind in FORMATS
    ]
    cut = "--rows-per-file 20"
    return [
        case("fit", "fit --config in.yaml in.csv out.joblib --label y", "in.yaml in.csv",
             "fit --config other.yaml in.csv out.joblib --label y"),
        case("fit --no-clobber", "fit --config in.yaml in.csv out.joblib --label y --no-clobber", "in.yaml in.csv"),
        *one_file,
        case("transform side files", f"{own} bad.csv out.csv --on-bad-rows drop --stats s.json --rejects r.csv",
             "map.joblib bad.csv", f"{other} bad.csv out.csv --on-bad-rows drop --stats s.json --rejects r.csv"),
        case("transform parts, new", f"{own} in out", "map.joblib in"),
        case("transform parts, overwrite", f"{own} in out --overwrite", "map.joblib in", f"{other} in out"),
        case("transform parts, resume", f"{own} in out --resume", "map.joblib in", f"{own} in/*.parquet out"),
        case("transform parts, rejects", f"{own} in out --on-bad-rows drop --rejects refused", "map.joblib in"),
        case("transform cut text", f"{own} in.csv out {cut} --output-format npy", "map.joblib in.csv"),
        case("transform cut Parquet", f"{own} in.parquet out {cut} --overwrite", "map.joblib in.parquet",
             f"{other} in.csv out --rows-per-file 8192 --output-format parquet"),
        case("predict", "predict --model model.joblib in.csv out.csv", "model.joblib in.csv",
             "predict --model model.joblib in.csv out.csv --limit 5"),
        case("predict parts", "predict --model model.joblib in out --resume", "model.joblib in"),
        case("tune", "tune in.csv out.yaml --label y --columns 8 --trials 2 --overwrite", "in.csv"),
        case("evaluate", "evaluate --model map.joblib in.csv --label y --json out.json", "map.joblib in.csv",
             "evaluate --model other.joblib in.csv --label y --json out.json"),
    ]  # fmt: skip


if __name__ == "__main__":
    main()
