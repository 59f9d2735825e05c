"""The files of the table of bad input: each function writes one and tells its path."""

import gzip
import io
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Make = Callable[[Path], str]

ROWS = [(float(i), i / 7, 1.0 + i % 3) for i in range(12)]
LINES = [",".join(map(repr, row)) for row in ROWS]


def text(*lines: str, name="in.csv", head="a,b,c", ending="\n", encoding="utf-8") -> Make:
    """A CSV of sound lines, then these."""

    def make(folder: Path) -> str:
        content = ending.join([head, *LINES, *lines]) + ending
        (folder / name).write_bytes(content.encode(encoding))
        return str(folder / name)

    return make


def raw(content: bytes, name: str = "in.csv") -> Make:
    """These bytes."""

    def make(folder: Path) -> str:
        (folder / name).write_bytes(content)
        return str(folder / name)

    return make


def sound_csv() -> bytes:
    return ("\n".join(["a,b,c", *LINES]) + "\n").encode()


def packed(cut: int | None = None, name: str = "in.csv.gz") -> Make:
    return raw(gzip.compress(sound_csv())[:cut], name)


def arrays(**replaced: Any) -> dict[str, Any]:
    columns = {"a": [row[0] for row in ROWS], "b": [row[1] for row in ROWS], "c": [row[2] for row in ROWS]}
    return {name: value for name, value in {**columns, **replaced}.items() if value is not None}


def parquet(name: str = "in.parquet", **replaced: Any) -> Make:
    """Sound columns a, b and c, some of them replaced, or left out if None."""

    def make(folder: Path) -> str:
        pq.write_table(pa.table(arrays(**replaced)), folder / name)
        return str(folder / name)

    return make


def ipc(change: Callable[[bytes], bytes] = bytes, stream: bool = False, **replaced: Any) -> Make:
    """The same as Arrow IPC."""

    def make(folder: Path) -> str:
        table, out = pa.table(arrays(**replaced)), pa.BufferOutputStream()
        with (pa.ipc.new_stream if stream else pa.ipc.new_file)(out, table.schema) as writer:
            writer.write_table(table, max_chunksize=5)
        (folder / "in.arrow").write_bytes(change(out.getvalue().to_pybytes()))
        return str(folder / "in.arrow")

    return make


def jsonl(*lines: str, encoding: str = "utf-8") -> Make:
    """Sound rows as JSON lines, then these."""
    rows = [json.dumps(dict(zip("abc", row, strict=True))) for row in ROWS]
    return raw("".join(f"{line}\n" for line in [*rows, *lines]).encode(encoding), "in.jsonl")


def libsvm(*lines: str, encoding: str = "utf-8") -> Make:
    """Sound rows of three features, then these."""
    rows = [f"{i % 2} " + " ".join(f"{j}:{x!r}" for j, x in enumerate(row, 1)) for i, row in enumerate(ROWS)]
    return raw("".join(f"{line}\n" for line in [*rows, *lines]).encode(encoding), "in.svm")


def sparse_npz(change: Callable[[bytes], bytes] = bytes, **replaced: Any) -> Make:
    """A CSR matrix of three rows, some of its arrays replaced, or left out if None."""
    numbers = {"indptr": [0, 1, 2, 3], "indices": [0, 1, 2], "data": [1.0, 1.5, 2.0]}
    parts = {"format": b"csr", "shape": [3, 3], **numbers}

    def make(folder: Path) -> str:
        arrays = {name: value for name, value in {**parts, **replaced}.items() if value is not None}
        np.savez(folder / "in.npz", **{name: np.asarray(value) for name, value in arrays.items()})
        path = folder / "in.npz"
        path.write_bytes(change(path.read_bytes()))
        return str(path)

    return make


def parquet_bytes(change: Callable[[bytes], bytes]) -> Make:
    def make(folder: Path) -> str:
        path = parquet()(folder)
        Path(path).write_bytes(change(Path(path).read_bytes()))
        return path

    return make


def foreign_codec(content: bytes) -> bytes:
    """The file with a codec in its footer that nobody here reads (LZO)."""
    size = struct.unpack("<I", content[-8:-4])[0]
    for at in range(len(content) - 8 - size, len(content) - 8):
        changed = content[:at] + b"\x06" + content[at + 1 :]
        try:
            list(pq.ParquetFile(io.BytesIO(changed)).iter_batches())
        except Exception as error:  # any other change makes no footer
            if "LZO" in str(error):
                return changed
    raise AssertionError("no place of the codec in the footer")


def npy(array: Any, change: Callable[[bytes], bytes] = bytes, name: str = "in.npy") -> Make:
    def make(folder: Path) -> str:
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=True)
        (folder / name).write_bytes(change(buffer.getvalue()))
        return str(folder / name)

    return make


def header(shape: str, descr: str = "'<f4'", data: bytes = bytes(96), version: int = 1) -> Make:
    """An NPY file whose header says so."""
    body = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    return raw(b"\x93NUMPY" + bytes([version, 0]) + len(body).to_bytes(2, "little") + body + data, "in.npy")


def matrix(**places: float) -> np.ndarray:
    """Sound rows; r3c1=nan spoils row 3, column 1."""
    X = np.array(ROWS, dtype=np.float32)
    for place, value in places.items():
        row, column = place[1:].split("c")
        X[int(row), int(column)] = value
    return X


NESTED = pa.array([{"x": 1.0}] * 12)
