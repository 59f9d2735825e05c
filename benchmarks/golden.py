"""Compare what the code of a commit and that of the working tree write, byte by byte, on this machine.

    python benchmarks/golden.py                  # against main's last commit
    python benchmarks/golden.py --base v1 --only '^formats/'

Both run the cases of `golden_cases.py`: features and predictions of every kind, format, layout and type, model files,
graphs, pages, and what every command says. Bytes differ between processors, so nothing is stored; the outputs of a
commit are kept in build/golden until the cases change. Times in texts are masked. The exit code is 1 if anything
differs.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
CASES = Path(__file__).with_name("golden_cases.py")
BUILD = ROOT / "build" / "golden"
TEXTS = {
    ".out",
    ".err",
    ".code",
    ".csv",
    ".tsv",
    ".json",
    ".jsonl",
    ".yaml",
    ".html",
    ".txt",
    ".libsvm",
    ".svg",
    "",
}
# What differs between two runs of the same code.
MASKS = [
    (re.compile(pattern), replaced)
    for pattern, replaced in (
        (
            r'("[\w ]*(?:seconds|time|rate|per_second|started|ended|peak|memory)[\w ]*": )[-+\d.e"T:Z]+',
            r"\1#",
        ),
        (r"\b\d+(?:[.,]\d+)*(?:e[-+]?\d+)? ?(?:ns|µs|ms|s|min|rows/s|MB/s)\b", "# s"),
        (r'("stamp": )"[0-9a-f-]+"', r"\1#"),
        (r'("pid": )\d+', r"\1#"),
        (r"\([\d.]+ [KMGT]iB free\)", "(# free)"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.+:Z]*", "#"),
    )
]


def main() -> int:
    """Run both sides and print what differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", default="main", help="the commit to compare with (default: main)")
    parser.add_argument("--only", default="", metavar="REGEX", help="run only the cases whose names match")
    parser.add_argument(
        "--lines", type=int, default=8, help="how many lines of a difference to show (default: 8)"
    )
    options = parser.parse_args()
    commit = _git("rev-parse", "--short=12", options.base + "^{commit}").decode().strip()
    tree, started = _checkout(commit), time.perf_counter()
    key = hashlib.sha256(CASES.read_bytes() + options.only.encode()).hexdigest()[:12]
    before, after = BUILD / f"{commit}-{key}", BUILD / "now"
    if not before.exists():
        _run(tree, tree, before, options.only)
    _run(ROOT, tree, after, options.only)
    files = sorted({str(file.relative_to(side)) for side in (before, after) for file in _files(side)})
    changed = [name for name in files if _bytes(before / name) != _bytes(after / name)]
    for name in changed:
        print(f"{name}: {_difference(before / name, after / name, options.lines)}")
    seconds = time.perf_counter() - started
    print(
        f"{len(files):,} files of {commit} and the working tree compared in {seconds:.0f} s: {len(changed):,} differ"
    )
    return int(bool(changed) or not files)


def _git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True).stdout


def _checkout(commit: str) -> Path:
    """Return a folder with the files of a commit and its compiled core."""
    tree = BUILD / commit
    if not tree.exists():
        draft = tree.with_suffix(".draft")
        shutil.rmtree(draft, ignore_errors=True)
        with tarfile.open(fileobj=io.BytesIO(_git("archive", commit))) as archive:
            archive.extractall(draft, filter="data")
        subprocess.run([sys.executable, "hatch_build.py"], cwd=draft, check=True)
        draft.rename(tree)
    return tree


def _run(code: Path, inputs: Path, out: Path, only: str) -> None:
    """Run the cases with the code of one side; both sides read the same sample_data and configs."""
    draft = out.with_suffix(".draft")
    for old in (draft, out):
        shutil.rmtree(old, ignore_errors=True)
    paths = {"PYTHONPATH": str(code), "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    subprocess.run(
        [sys.executable, str(CASES), str(draft), only], cwd=inputs, env={**os.environ, **paths}, check=True
    )
    draft.rename(out)


def _files(side: Path) -> list[Path]:
    """Return all files that were written; links lead to inputs."""
    return [file for file in side.rglob("*") if file.is_file() and not file.is_symlink()
            and not any(parent.is_symlink() for parent in file.parents)]  # fmt: skip


def _bytes(file: Path) -> bytes | None:
    if not file.exists():
        return None
    content = file.read_bytes()
    return _masked(content).encode() if file.suffix in TEXTS else content


def _masked(content: bytes) -> str:
    text = content.decode("utf-8", "replace")
    for pattern, replaced in MASKS:
        text = pattern.sub(replaced, text)
    return text


def _difference(before: Path, after: Path, lines: int) -> str:
    """Say how two files differ."""
    if not (before.exists() and after.exists()):
        return "is new" if after.exists() else "is gone"
    if before.suffix in TEXTS:
        texts = (_masked(file.read_bytes()).splitlines() for file in (before, after))
        changes = [line[:160] for line in difflib.unified_diff(*texts, n=0, lineterm="")][2:]
        return "\n    ".join(["", *changes[:lines], *(["…"] if len(changes) > lines else [])])
    if before.suffix == ".npy":
        old, new = np.load(before, allow_pickle=False), np.load(after, allow_pickle=False)
        if old.shape == new.shape and old.dtype == new.dtype:
            return f"numbers differ by up to {np.nanmax(np.abs(old - new)):.3g}"
        return f"{old.dtype}{old.shape} became {new.dtype}{new.shape}"
    return f"{before.stat().st_size:,} bytes became {after.stat().st_size:,}, or others of the same length"


if __name__ == "__main__":
    sys.exit(main())
