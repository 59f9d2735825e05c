"""The same rows in every format, and reading them back."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kafeat.io.columns import Columns
from kafeat.io.formats import open_source
from kafeat.io.selection import choose
from kafeat.io.source import Source


def csv_text(X: np.ndarray, names: Sequence[str]) -> bytes:
    lines = [",".join(names), *(",".join(map(repr, row)) for row in X.tolist())]
    return ("\n".join(lines) + "\n").encode()


def every_format(folder: Path, X: np.ndarray) -> list[Path]:
    names = [f"c{i}" for i in range(X.shape[1])]
    text = csv_text(X, names)
    (folder / "x.csv").write_bytes(text)
    (folder / "x.csv.gz").write_bytes(gzip.compress(text))
    (folder / "x.csv.zst").write_bytes(pa.compress(text, codec="zstd", asbytes=True))
    columns = {name: X[:, i] for i, name in enumerate(names)}
    pq.write_table(pa.table(columns), folder / "x.parquet", row_group_size=7)
    lists = pa.array(X.tolist(), pa.list_(pa.from_numpy_dtype(X.dtype), X.shape[1]))
    pq.write_table(pa.table({"x": lists}), folder / "l.parquet", row_group_size=5)
    np.save(folder / "x.npy", X)
    np.save(folder / "f.npy", np.asfortranarray(X))
    np.save(folder / "b.npy", X.astype(X.dtype.newbyteorder(">")))
    endings = ("csv", "csv.gz", "csv.zst", "parquet", "npy")
    others = ("l.parquet", "f.npy", "b.npy")
    return [*(folder / f"x.{ending}" for ending in endings), *(folder / name for name in others)]


def read(
    source: Source | str | Path, dtype: str = "float64", height: int = 4, columns: Columns | None = None
):
    """The whole matrix of a source, read in chunks."""
    if not isinstance(source, Source):
        with open_source(str(source)) as opened:
            return read(opened, dtype, height, columns)
    chosen = columns or choose(source, None, [], None)
    blocks = [chunk.matrix(np.dtype(dtype)) for chunk in source.chunks(chosen, [], height)]
    return np.concatenate([np.empty((0, chosen.n_features), dtype), *blocks])
