import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafeat.errors import DataError, KafeatError, SystemRefusedError, UsageError
from kafeat.io.readers.memory import reader_of
from tests.io.tables import open_reader, read


@pytest.mark.parametrize(("text", "message"), [
    (b"x\n1\n\n3\n", r"row 2 \(index 1\), column 'x': expected a finite number, got null$"),
    (b"\nx\r\n1\r\n\r\n", r"row 2 \(index 1\), column 'x': expected a finite number, got null$"),
    (b"x\n" + b"1\n" * 20_000 + b"\n2\n", r"row 20001 \(index 20000\), column 'x': .* got null$"),
    (b"x\n1\n\n1,2\n", r"row 3 \(index 2\): expected 1 fields, got 2; --delimiter ';' reads"),
])  # fmt: skip
@pytest.mark.usefixtures("short_look")
def test_csv(tmp_path, text, message):
    (tmp_path / "in.csv").write_bytes(text)
    with pytest.raises(DataError, match="in.csv: .*" + message):
        read(tmp_path / "in.csv", "float32")


def parquet_bytes(tmp_path) -> bytes:
    rng = np.random.default_rng(0)
    pq.write_table(pa.table({"a": rng.normal(size=50), "s": ["x"] * 50}), tmp_path / "good.parquet")
    return (tmp_path / "good.parquet").read_bytes()


def test_flipped_parquet_is_read_or_refused_but_never_a_traceback(tmp_path):
    raw = parquet_bytes(tmp_path)
    refused = 0
    for i in range(0, len(raw), 11):
        bad = bytearray(raw)
        bad[i] ^= 0x55
        (tmp_path / "in.parquet").write_bytes(bad)
        try:
            read(tmp_path / "in.parquet")
        except KafeatError:
            refused += 1
    assert refused > 10


@pytest.mark.parametrize(("values", "message"), [
    ([[1, 2], [3]], r"row 2 \(index 1\), column 'l\[0\]': expected a list of 2 numbers, got 1$"),
    ([[1, 2], None], r"row 2 \(index 1\), column 'l\[0\]': expected a list of 2 numbers, got null$"),
    ([[1, 2], [3, None]], r"row 2 \(index 1\), column 'l\[1\]': expected a finite number, got null$"),
    ([[1, 2], [np.nan, 1]], r"row 2 \(index 1\), column 'l\[0\]': expected a finite number, got nan$"),
])  # fmt: skip
def test_lists(values, message):
    with pytest.raises(DataError, match=message):
        read(reader_of(pa.table({"l": pa.array(values, pa.list_(pa.float64()))})))


@pytest.mark.parametrize("kind", [pa.int64(), pa.float32(), pa.float16(), pa.bool_(), pa.decimal128(9, 2)])
def test_nulls(kind):
    column = pa.array([np.float16(1), None], pa.float16()) if kind == pa.float16() else None
    column = pa.array(["1", None]).cast(kind) if column is None else column
    for values in (column, column.dictionary_encode() if kind != pa.float16() else column):
        with pytest.raises(DataError, match=r"<table>: row 2 \(index 1\), column 'x': .* got null$"):
            read(reader_of(pa.table({"x": values})))


def test_lowest_row_then_lowest_column():
    table = pa.table({"x": [1.0, 2, 3, np.nan], "y": [1, 2, np.inf, 4], "z": [1, 2, np.nan, 4]})
    with pytest.raises(DataError, match=r"row 3 \(index 2\), column 'y': .* got inf"):
        read(reader_of(table), height=10)
    with pytest.raises(DataError, match=r"row 3 \(index 2\), column 'c1': .* got inf"):
        read(reader_of(np.column_stack(table.columns)), height=10)


def test_what_the_machine_refuses(tmp_path):
    for name in ("a.csv", "a.parquet", "a.npy"):
        with pytest.raises(SystemRefusedError, match=re.escape(f"{name}: No such file")):
            open_reader(tmp_path / name)
        (tmp_path / name).mkdir()
        with pytest.raises(SystemRefusedError, match="expected a file, got a directory"):
            open_reader(tmp_path / name)
    with pytest.raises(UsageError, match=r"expected a name that ends in one of \.csv, .*--input-format csv$"):
        open_reader("a.xyz")
    told = "a.csv: expected a format of csv, parquet, npy, arrow, jsonl, libsvm, npz, got 'xls'"
    with pytest.raises(UsageError, match=told):
        open_reader("a.csv", "xls")
    with pytest.raises(SystemRefusedError, match="expected a regular file, got a pipe or a device"):
        open_reader("/dev/null", "parquet")
