import gzip
import os
from collections import deque

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafeat.errors import SystemRefusedError, UsageError
from kafeat.io.formats import format_of
from kafeat.io.storage.location import parse_location
from kafeat.io.writers import parquet as parquet_sink
from tests.io.tables import read
from tests.io.writers.opening import open_writer
from tests.sizes import sampled

NAMES = ["f0", "f1", "f2"]
KINDS = [
    ("out.csv", {}), ("out.csv.gz", {}), ("out.csv.zst", {}), ("out.npy", {}), ("out.parquet", {}),
    ("out.parquet", {"layout": "list"}), ("out.parquet", {"compression": "zstd"}),
    ("out.arrow", {}), ("out.arrow", {"layout": "list"}),
    ("out.feather", {"layout": "list"}), ("out.arrow", {"compression": "zstd"}), ("out.arrows", {}), ("out.npz", {}),
]  # fmt: skip


def matrix(rows, dtype):
    return np.random.default_rng(0).normal(size=(rows, 3)).astype(dtype)


def save(path, X, *, rows="known", height=7, kept=None, in_place=True, ahead=3, **options):
    format = format_of(parse_location(path)).name
    known = len(X) if rows == "known" else None
    options = {"names": NAMES, "dtype": X.dtype, "rows": known, "block_rows": height, **options}
    if kept is not None:
        options["passthrough_schema"] = kept.schema
    with open_writer(path, format, **options) as sink:
        waiting = deque()

        def write():
            start, block = waiting.popleft()
            sink.write(block, None if kept is None else kept.slice(start, len(block)))

        for start in range(0, len(X), height):
            part = X[start : start + height]
            block = sink.buffer(start, len(part)) if in_place else np.empty(part.shape, part.dtype)
            block[...] = part
            if in_place:
                sink.filled(start, block)
            waiting.append((start, block))
            if len(waiting) > ahead:
                write()
        while waiting:
            write()


@pytest.mark.parametrize(("name", "options"), KINDS)
@pytest.mark.parametrize("dtype", ["float32", *sampled("float64")])
@pytest.mark.parametrize("rows", [*sampled(0, 1), 40])
def test_what_is_written_is_read_back(tmp_path, name, options, dtype, rows):
    X = matrix(rows, dtype)
    save(tmp_path / name, X, **options)
    first = (tmp_path / name).read_bytes()
    assert read(tmp_path / name, dtype).tobytes() == X.tobytes()
    for again in ({"rows": "unknown"}, {"in_place": False}):
        save(tmp_path / name, X, **options, **again)
        assert (tmp_path / name).read_bytes() == first
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize(("name", "options"), KINDS)
@pytest.mark.parametrize("ahead", [*sampled(0, 1), 4])
def test_memory_that_is_used_again_holds_nothing_that_is_still_to_be_written(
    tmp_path, monkeypatch, name, options, ahead
):
    # Row groups of two blocks: with forty of them every arena is used many times.
    for name_of_size in ("GROUP_BYTES", "LIST_GROUP_BYTES"):
        monkeypatch.setattr(parquet_sink, name_of_size, 2 * 7 * 3 * 4)
    X = matrix(40 * 7 + 3, "float32")
    save(tmp_path / name, X, ahead=ahead, **options)
    assert read(tmp_path / name, "float32").tobytes() == X.tobytes()


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_kept_columns_come_first(tmp_path, name):
    X = matrix(20, "float32")
    kept = pa.table({"id": [f"{i:03d}" for i in range(20)], "note": ['say "a, b"\nor', None] * 10})
    save(tmp_path / name, X, kept=kept)
    if name == "out.parquet":
        table = pq.read_table(tmp_path / name)
        assert table.column_names == ["id", "note", *NAMES]
        assert table.select(["id", "note"]).equals(kept)
        assert not table.schema.field("f0").nullable
    else:
        text = (tmp_path / name).read_text()
        assert text.startswith('id,note,f0,f1,f2\n000,"say ""a, b""\nor",')


def test_parquet_notes_and_row_groups(tmp_path):
    path = tmp_path / "out.parquet"
    names = [f"f{i}" for i in range(1024)]
    with open_writer(
        path, "parquet", names=names, dtype=np.dtype("f4"), metadata={"b": "1", "a": "2"}
    ) as sink:
        assert sink.buffer(0, 2).flags.f_contiguous
        for _ in range(5):
            sink.write(np.zeros((5000, 1024), "f4", order="F"), None)
    file = pq.ParquetFile(path)
    assert file.schema_arrow.metadata == {b"kafeat": b'{"a": "2", "b": "1"}'}
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [20_000, 5_000]
    assert not file.metadata.row_group(0).column(0).is_stats_set
    file.close()


def test_wide_kept_text_makes_row_groups_lower(tmp_path):
    path = tmp_path / "out.parquet"
    kept = pa.table({"t": [f"{i:05d}" * 4000 for i in range(1000)]})
    with open_writer(
        path, "parquet", names=["f0"], dtype=np.dtype("f4"), passthrough_schema=kept.schema
    ) as sink:
        for _ in range(5):
            sink.write(np.zeros((1000, 1), "f4"), kept)
    with pq.ParquetFile(path) as file:
        assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [4000, 1000]


@pytest.mark.parametrize(("name", "options"), KINDS)
def test_a_failure_leaves_nothing(tmp_path, name, options):
    options = {**options, "names": NAMES, "dtype": np.dtype("f4")}
    opened = open_writer(tmp_path / name, format_of(parse_location(name)).name, **options)
    with pytest.raises(RuntimeError, match="stop"), opened as sink:
        sink.write(np.zeros((5, 3), "f4"), None)
        raise RuntimeError("stop")
    assert os.listdir(tmp_path) == []


def beside(name, kind):
    return {"passthrough_schema": pa.schema([(name, kind)])}


@pytest.mark.parametrize(("name", "options", "message"), [
    ("out.npy", beside("id", pa.string()), "no passthrough columns in NPY, got id"),
    ("out.npy", {"compression": "zstd"}, "expected no compression for NPY, got 'zstd'"),
    ("out.csv", {"layout": "list"}, "expected the columns layout for CSV, got list"),
    ("out.csv", {"compression": "lz4"}, "a compression of none, gzip or zstd for CSV, got 'lz4'"),
    ("out.parquet", {"compression": "brotli"}, "none, snappy, lz4, zstd or gzip for Parquet"),
    ("out.parquet", beside("f1", pa.string()), "other names than the features, got f1"),
    ("out.arrow", {"compression": "snappy"}, "none, lz4 or zstd for Arrow, got 'snappy'"),
    ("out.jsonl", beside("b", pa.binary()), "column that JSON lines can hold, got binary"),
    (
        "out.libsvm",
        {"passthrough_schema": pa.schema([("a", pa.int8()), ("b", pa.int8())])},
        "one passthrough",
    ),
    ("out.libsvm", beside("a", pa.string()), "column 'a': expected a column of numbers"),
    ("out.libsvm", {"nullable": True}, "expected --on-bad-rows error or drop for LIBSVM, got null"),
    ("out.npz", beside("a", pa.int64()), "expected no passthrough columns in NPZ, got a"),
])  # fmt: skip
def test_refusals(tmp_path, name, options, message):
    with (
        pytest.raises(UsageError, match=message),
        open_writer(tmp_path / name, name.split(".")[1], names=NAMES, dtype=np.dtype("f4"), **options),
    ):
        pass
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("format", ["csv", "npy", "parquet", "arrow", "jsonl"])
def test_devices(format):
    X = matrix(30, "float32")
    for rows in (30, None):
        with open_writer("/dev/null", format, names=NAMES, dtype=X.dtype, rows=rows) as sink:
            sink.write(X, None)
    big = np.zeros((300_000, 3), "f4")
    with (
        pytest.raises(SystemRefusedError, match="/dev/full: No space left on device"),
        open_writer("/dev/full", format, names=NAMES, dtype=X.dtype, rows=len(big)) as sink,
    ):
        sink.write(big, None)


def test_packed_csv_has_no_clock_in_it(tmp_path):
    save(tmp_path / "out.csv.gz", matrix(5, "float32"))
    raw = (tmp_path / "out.csv.gz").read_bytes()
    assert raw[4:8] == bytes(4)
    assert gzip.decompress(raw).startswith(b"f0,f1,f2\n")
