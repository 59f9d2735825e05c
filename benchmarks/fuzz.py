"""Coverage-guided fuzzing of what reads a stranger's bytes: config, NPY, CSV with its options, model files.

    python benchmarks/fuzz.py [config|npy|csv|artifact ...] [--seconds 60]

Whatever the bytes: an answer or an error of `kafeat.errors`, within 20 seconds and 2 GiB. Needs the extra `fuzz`
(atheris). Each target runs in a process of its own; what it stumbles over stays behind as a file crash-….
"""

from __future__ import annotations

import argparse
import hashlib
import io
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["kafeat"]):
    import kafeat
    from kafeat.config import load_config
    from kafeat.errors import KafeatError
    from kafeat.io.columns.selection import choose
    from kafeat.io.options import InputOptions
    from kafeat.io.readers.base import Reader
    from kafeat.model import artifact

import numpy as np

from kafeat.io.storage.location import parse_location

ROOT = Path(__file__).parents[1]
X = np.random.default_rng(0).exponential(size=(30, 3))
STEPS = [
    {"kind": "minmax"},
    {"kind": "nystroem", "n_components": 4},
    {"kind": "fourier", "n_components": 4},
    {"kind": "tensor_sketch", "n_components": 4},
    {"kind": "homogeneous"},
]


def config(folder: Path, data: bytes) -> None:
    path = folder / "config.yaml"
    path.write_bytes(data)
    load_config(str(path))


def npy(folder: Path, data: bytes) -> None:
    path = folder / "in.npy"
    path.write_bytes(data)
    with InputOptions().open_file(parse_location(path)) as source:
        _read(source)


def csv(folder: Path, data: bytes) -> None:
    """The first byte says how the rest is read."""
    path = folder / "in.csv"
    path.write_bytes(data[1:])
    how = data[0] if data else 0
    with InputOptions(delimiter=",;\t|"[how & 3], no_header=not how & 4).open_file(
        parse_location(path)
    ) as source:
        _read(source, aside=bool(how & 8))


def model(folder: Path, data: bytes) -> None:
    """With the right checksum behind it, as a stranger would put it there."""
    path = folder / "m.joblib"
    path.write_bytes(data + b"KAFEAT-SHA256\n" + hashlib.sha256(data).digest())
    kafeat.load(path).transform(X, jobs=1)


def _read(source: Reader, aside: bool = False) -> None:
    columns = choose(source, None, [], ())
    for chunk in source.chunks(columns, [], 64, set_aside=aside):
        if not aside:
            chunk.matrix(np.dtype("f4"))
            continue
        decoded, sound = chunk.decode(np.dtype("f4"))
        if not sound:
            list(chunk.invalid_values(decoded))


def _seeds(target: str) -> Iterator[bytes]:
    if target == "config":
        yield from (path.read_bytes() for path in sorted((ROOT / "configs").glob("*.yaml")))
    elif target == "npy":
        for array in (X, X.astype(">f4"), np.asfortranarray(X), np.ones((3, 2), "u1"), X[:0]):
            buffer = io.BytesIO()
            np.save(buffer, array)
            yield buffer.getvalue()
    elif target == "csv":
        yield from (
            b"\4a,b\n1,2\n3,4\n",
            b'\5a;b\n"1";2\r\n',
            b"\x0ca,b\n1\n1,2,3\n,\n",
            b"\0\xef\xbb\xbf1,2\n",
        )
    else:
        for step in STEPS:
            whole = kafeat.fit({"steps": [step]}, X).dumps()
            yield whole[: -len(artifact._MAGIC) - 32]


TARGETS: dict[str, Callable[[Path, bytes], None]] = {
    "config": config,
    "npy": npy,
    "csv": csv,
    "artifact": model,
}


def _fuzz(target: str, seconds: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="kafeat-fuzz-"))
    corpus = folder / "corpus"
    corpus.mkdir()
    for i, seed in enumerate(_seeds(target)):
        (corpus / str(i)).write_bytes(seed)

    def one(data: bytes) -> None:
        try:
            TARGETS[target](folder, data)
        except KafeatError:
            return

    options = [
        f"-max_total_time={seconds}",
        "-timeout=20",
        "-rss_limit_mb=2048",
        "-max_len=20000",
        "-verbosity=0",
    ]
    atheris.Setup([sys.argv[0], str(corpus), *options, "-print_final_stats=1"], one)
    atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", default=list(TARGETS), metavar="TARGET")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.here:
        _fuzz(asked.targets[0], asked.seconds)
    failed = []
    for target in asked.targets:
        print(f"--- {target}", flush=True)
        command = [sys.executable, __file__, target, "--here", "--seconds", str(asked.seconds)]
        if subprocess.run(command).returncode:
            failed.append(target)
    print("failed: " + ", ".join(failed) if failed else "no crash, hang or traceback")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
