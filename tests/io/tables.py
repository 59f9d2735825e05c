"""The same rows in every format, and reading them back."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kafeat.io.columns.columns import Columns
from kafeat.io.columns.selection import choose
from kafeat.io.options import InputOptions
from kafeat.io.readers.base import Reader
from kafeat.io.storage.base import Location
from kafeat.io.storage.location import parse_location


def open_reader(place: str | Path | Location, format: str | None = None, **options: Any) -> Reader:
    """Open one file; the keywords are options of reading."""
    return InputOptions(input_format=format, **options).open_file(parse_location(place))


def csv_text(X: np.ndarray, names: Sequence[str]) -> bytes:
    lines = [",".join(names), *(",".join(map(repr, row)) for row in X.tolist())]
    return ("\n".join(lines) + "\n").encode()


def every_format(folder: Path, X: np.ndarray) -> list[Path]:
    """Write the rows into an empty folder, in every format and some of its forms."""
    names = [f"c{i}" for i in range(X.shape[1])]
    text = csv_text(X, names)
    (folder / "x.csv").write_bytes(text)
    (folder / "x.csv.gz").write_bytes(gzip.compress(text))
    lines = "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in X.tolist()).encode()
    (folder / "x.jsonl").write_bytes(lines)
    (folder / "x.ndjson.zst").write_bytes(pa.compress(lines, codec="zstd", asbytes=True))
    (folder / "x.csv.zst").write_bytes(pa.compress(text, codec="zstd", asbytes=True))
    columns = {name: X[:, i] for i, name in enumerate(names)}
    pq.write_table(pa.table(columns), folder / "x.parquet", row_group_size=7)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
    pq.write_table(pa.table({"x": lists}), folder / "l.parquet", row_group_size=5)
    np.save(folder / "x.npy", X)
    np.save(folder / "f.npy", np.asfortranarray(X))
    np.save(folder / "b.npy", X.astype(X.dtype.newbyteorder(">")))
    with pa.ipc.new_file(folder / "x.arrow", pa.table(columns).schema) as writer:
        writer.write_table(pa.table(columns), max_chunksize=3)
    with pa.ipc.new_stream(folder / "x.arrows", pa.table(columns).schema) as writer:
        writer.write_table(pa.table(columns), max_chunksize=6)
    packed = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(folder / "l.feather", pa.table({"x": lists}).schema, options=packed) as writer:
        writer.write_table(pa.table({"x": lists}), max_chunksize=4)
    kind = pa.fixed_shape_tensor(lists.type.value_type, [X.shape[1]])
    tensors = pa.table({"x": pa.ExtensionArray.from_storage(kind, lists)})
    with pa.ipc.new_file(folder / "t.arrow", tensors.schema) as writer:
        writer.write_table(tensors, max_chunksize=4)
    pq.write_table(tensors, folder / "t.parquet", row_group_size=5)
    rows = [" ".join(f"{j}:{+x!r}" for j, x in enumerate(row, 1)) for row in X.tolist()]
    (folder / "x.svm").write_text("".join(f"{i} {row}\n" for i, row in enumerate(rows)))
    (folder / "x.libsvm.gz").write_bytes(gzip.compress((folder / "x.svm").read_bytes()))
    np.savez(
        folder / "x.npz", format=np.array(b"csr"), shape=X.shape, data=X.ravel(),
        indices=np.tile(np.arange(X.shape[1]), len(X)), indptr=np.arange(len(X) + 1) * X.shape[1],
    )  # fmt: skip
    return sorted(folder.iterdir())


def read(source: Reader | str | Path, dtype="float64", height=4, columns: Columns | None = None):
    """The whole matrix of a source, read in chunks."""
    if not isinstance(source, Reader):
        with open_reader(source) as opened:
            return read(opened, dtype, height, columns)
    source = source if columns else source.settled()
    chosen = columns or choose(source, None, [], ())
    blocks = [chunk.matrix(np.dtype(dtype)) for chunk in source.chunks(chosen, [], height)]
    return np.concatenate([np.empty((0, chosen.n_features), dtype), *blocks])
