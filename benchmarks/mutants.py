"""Plant one mistake in each of many places of the code, and count those that the tests find.

    make coverage                                   # first: which test runs which line
    python benchmarks/mutants.py --number 300 --seed 0 [--only io/readers] [--again]

The places are drawn from the lines that tests run, so many from each room of kafeat/ as the root of its length asks
for; the draw depends on the seed and the code alone. A mistake is planted in a copy, and the tests that run its line
follow, those of the same folder first and fast ones before slow ones, up to the first that fails; those without the
compiled core only where nothing else runs the line. Tests that are newer than the measurement run too. A test that does
not end has found the mistake. build/mutants.json has all results; `--again` repeats the mistakes that were not found in
it.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import resource
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import Any

from coverage import CoverageData
from mistakes import Mistake, in_c, in_python

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
MEASURED = BUILD / "coverage"
RESULTS = BUILD / "mutants.json"
CORES = ("compiled", "numpy")
BATCHES = (8.0, 30.0)
"""Seconds of tests that run before the next batch is collected; what is slower than all batches is left out."""
Result = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", metavar="ROOM", help="plant mistakes in this room alone, such as io/readers"
    )
    parser.add_argument("--again", action="store_true", help="repeat those that were not found")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    asked = parser.parse_args()
    suite = Suite()
    before = json.loads(RESULTS.read_text()) if asked.again else []
    lost = {_key(result) for result in before if not result["found_by"]}
    rooms = {room: drawn(room, asked.seed) for room in sorted({_room(file) for file in _files()})}
    every = [mistake for mistakes in rooms.values() for mistake in mistakes]
    chosen = (
        [m for m in every if _key(_described(m)) in lost]
        if asked.again
        else shares(rooms, suite, asked.number)
    )
    chosen = [m for m in chosen if asked.only in (None, _room(ROOT / m.path))]
    chosen.sort(key=lambda mistake: _order(mistake, asked.seed))
    show(_saved(run(chosen, suite, asked.jobs, before), before))
    return 0


def _saved(results: list[Result], before: list[Result]) -> list[Result]:
    """Write the results, and those from before of all other places."""
    done = {_key(result) for result in results}
    every = results + [result for result in before if _key(result) not in done]
    RESULTS.write_text(json.dumps(every, indent=1))
    return every


def _described(mistake: Mistake) -> Result:
    room = _room(ROOT / mistake.path)
    return {
        "room": room,
        "file": mistake.path,
        "line": mistake.line,
        "kind": mistake.kind,
        "diff": mistake.diff(),
    }


def _key(result: Result) -> tuple[str, ...]:
    return result["file"], result["kind"], result["diff"]


@cache
def _files() -> list[Path]:
    files = [file for file in (ROOT / "kafeat").rglob("*") if file.suffix in {".py", ".c", ".h"}]
    return sorted(file for file in files if "demo_files" not in file.parts)


def _room(file: Path) -> str:
    parts = file.relative_to(ROOT / "kafeat").parts
    if file.suffix != ".py":
        return "C"
    return (
        "/".join(parts[:2]) if parts[0] == "io" and len(parts) > 2 else parts[0] if len(parts) > 1 else "top"
    )


def drawn(room: str, seed: int) -> list[Mistake]:
    """Return the mistakes of a room, kinds in turn, in an order that the seed and the code decide."""
    kinds: dict[str, list[Mistake]] = defaultdict(list)
    for file in _files():
        if _room(file) == room:
            for mistake in (in_python if file.suffix == ".py" else in_c)(file, ROOT):
                kinds[mistake.kind].append(mistake)

    turns = zip_longest(*(sorted(kinds[kind], key=lambda m: _order(m, seed)) for kind in sorted(kinds)))
    return [mistake for turn in turns for mistake in turn if mistake]


def _order(mistake: Mistake, seed: int) -> bytes:
    return sha256(f"{seed} {mistake.path} {mistake.kind} {mistake.diff()}".encode()).digest()


def shares(rooms: dict[str, list[Mistake]], suite: Suite, number: int) -> list[Mistake]:
    """Choose so many mistakes, in each room by the root of the number of its places, and no two on one line."""
    roots = {room: len(mistakes) ** 0.5 for room, mistakes in rooms.items()}
    chosen: list[Mistake] = []
    reached = 0.0
    for room, root in roots.items():
        reached += number * root / sum(roots.values())
        places: set[tuple[str, int]] = set()
        for mistake in rooms[room]:
            place = (mistake.path, mistake.line)
            if len(chosen) < round(reached) and place not in places and suite.tests(mistake):
                places.add(place)
                chosen.append(mistake)
    return chosen


class Suite:
    """The measurements of `make coverage`: the tests of each line, and how long each takes."""

    def __init__(self) -> None:
        self.data = CoverageData(str(MEASURED / "data"))
        self.data.read()
        self.seconds: dict[str, float] = {}
        for core in CORES:
            file = MEASURED / f"seconds.{core}.json"
            measured = json.loads(file.read_text()) if file.exists() else {}
            self.seconds.update({f"{core} {test}": seconds for test, seconds in measured.items()})
        files = [Path(file) for file in self.data.measured_files()]
        inside = [file for file in files if file.is_relative_to(ROOT)]
        self.files = {str(file.relative_to(ROOT)): str(file) for file in inside}
        measured_at = (MEASURED / "data").stat().st_mtime
        tests = (ROOT / "tests").rglob("test_*.py")
        self.newer = [str(file.relative_to(ROOT)) for file in tests if file.stat().st_mtime > measured_at]

    def tests(self, mistake: Mistake) -> set[str]:
        """Return the tests that run any of the lines of a mistake."""
        if mistake.path.endswith((".c", ".h")):
            lines = self._lines("kafeat/compiled/library.py")
            return {test for tests in lines.values() for test in tests if test.startswith("compiled")}
        lines = self._lines(mistake.path)
        return {test for line in mistake.lines for test in lines.get(line, ())}

    @cache  # noqa: B019
    def _lines(self, path: str) -> dict[int, list[str]]:
        found = self.data.contexts_by_lineno(self.files[path]) if path in self.files else {}
        return {line: [test for test in tests if test in self.seconds] for line, tests in found.items()}

    def batches(self, mistake: Mistake) -> Iterator[tuple[str, list[str], float]]:
        """Yield cores, tests and seconds: by files, those of the same folder first, then fast ones."""
        near = "tests" + mistake.path.removeprefix("kafeat").rsplit("/", 1)[0]
        every = self.tests(mistake)
        for core in CORES:
            files: dict[str, list[str]] = defaultdict(list)
            for test in every:
                if test.startswith(core):
                    files[test.split("::")[0]].append(test)
            every = set() if files else every
            costs = {file: sum(self.seconds[test] for test in tests) for file, tests in files.items()}
            order = sorted(files, key=lambda file: (near + "/" not in file, costs[file]))
            for limit in BATCHES:
                batch: list[str] = []
                spent = 0.0
                while order and (not batch or spent + costs[order[0]] <= limit):
                    for test in sorted(files[order[0]], key=self.seconds.__getitem__):
                        if spent + self.seconds[test] <= limit or not batch:
                            batch.append(test.removeprefix(core + " "))
                            spent += self.seconds[test]
                    order.pop(0)
                if batch:
                    yield core, batch, spent


class Copy:
    """A copy of the tracked files: mistakes are planted there."""

    def __init__(self, number: int, suite: Suite) -> None:
        self.folder, self.suite = BUILD / "mutants" / str(number), suite
        shutil.rmtree(self.folder, ignore_errors=True)
        words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split(
            "\0"
        ):
            if name and (ROOT / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.folder / name)
        self.build()

    def build(self) -> bool:
        words = [sys.executable, "hatch_build.py"]
        return not subprocess.run(words, cwd=self.folder, capture_output=True).returncode

    def finder(self, mistake: Mistake) -> str:
        """Return the test that fails with a mistake, or nothing."""
        file = self.folder / mistake.path
        file.write_bytes(mistake.text())
        is_c = file.suffix != ".py"
        try:
            if is_c and not self.build():
                return "the compiler"
            for core, tests, seconds in self.suite.batches(mistake):
                if found := self.fails(core, tests, seconds):
                    return found
            return ""
        finally:
            shutil.copy2(ROOT / mistake.path, file)
            if is_c:
                self.build()

    def fails(self, core: str, tests: list[str], seconds: float) -> str:
        choice = self.folder / "build" / "choice.json"
        choice.parent.mkdir(exist_ok=True)
        known = {test.removeprefix(core + " ") for test in self.suite.seconds if test.startswith(core)}
        choice.write_text(json.dumps(sorted(known - set(tests))))
        files = sorted({test.split("::")[0] for test in tests}, key=[t.split("::")[0] for t in tests].index)
        variables = {
            **os.environ, "PYTHONPATH": f"{self.folder}:{self.folder / '.ci'}", "TESTS_CHOSEN": str(choice),
            "OPENBLAS_NUM_THREADS": "1", **({"KAFEAT_COMPILED": "0"} if core == "numpy" else {}),
        }  # fmt: skip
        words = [
            sys.executable, "-m", "pytest", "-x", "-p", "tests_by_line", "-p", "no:cacheprovider", "--tb=no", "-rfE",
            "-m", "not slow", "--hypothesis-profile=quick", "--hypothesis-seed=0",
            "--basetemp", str(self.folder / "build" / "tmp"),
            *dict.fromkeys([*files, *self.suite.newer]),
        ]  # fmt: skip
        process = subprocess.Popen(
            words, cwd=self.folder, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 34, 1 << 34)),
        )  # fmt: skip
        try:
            said, _ = process.communicate(timeout=60 + 4 * seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return "time"
        failed = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - |$)", said, re.MULTILINE)
        return "" if process.returncode in (0, 5) else f"{core} {failed[1]}" if failed else said[-300:]

    def failing(self, finders: set[str]) -> set[str]:
        """Return those of the tests that fail here without a mistake."""
        lost: set[str] = set()
        for core in CORES:
            tests = {test.removeprefix(core + " ") for test in finders if test.startswith(core)}
            while tests and (found := self.fails(core, sorted(tests), 100.0)):
                lost.add(found)
                if found.removeprefix(core + " ") not in tests:
                    break
                tests.discard(found.removeprefix(core + " "))
        return lost


def run(chosen: list[Mistake], suite: Suite, jobs: int, before: list[Result]) -> list[Result]:
    """Plant the mistakes one after the other, in so many copies at a time; the file always has all results."""
    copies: queue.Queue[Copy] = queue.Queue()
    for number in range(jobs):
        copies.put(Copy(number, suite))

    def one(mistake: Mistake) -> Result:
        copy = copies.get()
        try:
            result = {**_described(mistake), "found_by": copy.finder(mistake)}
        finally:
            copies.put(copy)
        print("." if result["found_by"] else f"\n{_shown(result)}", end="", flush=True)
        return result

    results: list[Result] = []
    with ThreadPoolExecutor(jobs) as pool:
        for result in pool.map(one, chosen):
            results.append(result)
            _saved(results, before)  # if it is stopped
    doubtful = copies.get().failing({result["found_by"] for result in results if "::" in result["found_by"]})
    for result in results:
        if result["found_by"] in doubtful:
            print(f"{result['found_by']} fails without a mistake, too")
            result["found_by"] = ""
    return results


def _shown(result: Result) -> str:
    return f"{result['file']}:{result['line']}: {result['kind']}\n{result['diff']}\n"


def show(results: list[Result]) -> None:
    """Print the mistakes that were not found, and the counts of each room."""
    print("\n\nnot found:\n")
    for result in sorted(results, key=_key):
        if not result["found_by"]:
            print(_shown(result))
    every, found = (
        Counter(r["room"] for r in results if r["found_by"] or not only) for only in (False, True)
    )
    print("| room | planted | found |\n|---|---|---|")
    for room in sorted(every):
        print(f"| {room} | {every[room]} | {found[room]} |")
    print(f"| all | {every.total()} | {found.total()} |")


if __name__ == "__main__":
    sys.exit(main())
