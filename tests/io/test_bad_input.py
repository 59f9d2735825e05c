import gzip
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafeat.errors import DataError, KafeatError, SystemRefusedError, UsageError
from kafeat.io.readers.memory import reader_of
from tests.io.tables import open_reader, read

GOOD = b"x1,x2\n" + b"".join(b"%d,1.5\n" % i for i in range(7))
HERE = r"row 8 \(index 7\)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + b",1\n", HERE + r", column 'x1': expected a finite number, got null$"),
        (GOOD + b"1,nan\n", HERE + r", column 'x2': expected a finite number, got nan$"),
        (GOOD + b"1,-inf\n", HERE + r", column 'x2': expected a finite number, got -inf$"),
        (GOOD + b"1,1e300\n", HERE + r", column 'x2': .*, got 1e\+300, which overflows float32$"),
        (GOOD + b"1,abc\n", HERE + r", column 'x2': expected a number, got 'abc'$"),
        (GOOD + b"1,1_0\n", HERE + r", column 'x2': expected a number, got '1_0'$"),
        (GOOD + b"1,nan\nnan,1\n", HERE),
        (GOOD + b"nan,nan\n", HERE + r", column 'x1'"),
        (GOOD + b"1,2,3\n", HERE + r": expected 2 fields, got 3$"),
        (GOOD + b"1\n", HERE + r": expected 2 fields, got 1$"),
        (b"x1,x2\n1,2,3\n", r"row 1 \(index 0\): expected 2 fields, got 3$"),
        (GOOD + b"1,\xff\n", r"line 9, byte 50: expected UTF-8 text, got b.*iconv"),
        (b"", r"expected a header line, got an empty file$"),
        (b"\n\n", r"expected a header line, got an empty file$"),
        (b"x\n1\n\n3\n", r"row 2 \(index 1\), column 'x': expected a finite number, got null$"),
        (b"\nx\r\n1\r\n\r\n", r"row 2 \(index 1\), column 'x': expected a finite number, got null$"),
        pytest.param(
            b"x\n" + b"1\n" * 900_000 + b"\n2\n",
            r"row 900001 \(index 900000\), column 'x': .* got null$",
            marks=pytest.mark.slow,
        ),
        (b"x\n1\n\n1,2\n", r"row 3 \(index 2\): expected 1 fields, got 2$"),
        (b"PAR1\x15\x04" + b"\n" * 99, "expected CSV, but this looks like Parquet: --input-format parquet$"),
        (b"\x93NUMPY\x01\x00", "expected CSV, but this looks like NPY: --input-format npy$"),
        ("x,y\n1,2\n".encode("utf-16"), "expected UTF-8 text, got a NUL byte: .* UTF-16"),
        (b"a,a\n1,2\n", r"column 'a': expected one column of that name, got 2"),
        (b"a,b\nx,y\n", r"expected at least one numeric feature column, got none"),
        (
            GOOD + b'1,"' + b"x" * 3_000_000,
            r"expected rows of less than|line 9: expected a quote that closes",
        ),
    ],
)
def test_csv(tmp_path, text, message):
    (tmp_path / "in.csv").write_bytes(text)
    with pytest.raises(DataError, match="in.csv: .*" + message):
        read(tmp_path / "in.csv", "float32")


@pytest.mark.parametrize("late", [b"1,abc\n", b"1\n"])
@pytest.mark.slow
def test_csv_far_down(tmp_path, late):
    (tmp_path / "in.csv").write_bytes(b"a,b\n" + b"1,2\n" * 300_000 + late + b"3,4\n")
    with pytest.raises(DataError, match=r"row 300001 \(index 300000\)"):
        read(tmp_path / "in.csv", height=4096)


@pytest.mark.parametrize("name", ["in.csv.gz", "in.csv"])
@pytest.mark.parametrize("length", [5, 30, -9, -1])
def test_truncated_gzip(tmp_path, name, length):
    (tmp_path / name).write_bytes(gzip.compress(GOOD)[:length])
    with pytest.raises(DataError, match="expected sound gzip data, got: "):
        read(tmp_path / name)


def npy(shape, descr="'<f8'", data=bytes(48)):
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


NAN = np.array([1, 2, 3, 4, np.nan, np.inf]).tobytes()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected an NPY file"),
        (b"not at all", "expected an NPY file"),
        (b"PK\x03\x04" + bytes(50), "expected an NPY file"),
        (
            npy((2, 3))[:-1],
            r"expected an NPY file of numbers, got: 175 bytes, and a header that claims the shape \(2, 3\) of float64",
        ),
        (npy((2, 3))[:20], "expected an NPY file"),
        (npy("(2, 3),# "), "expected an NPY file of numbers, got: .*multi-line"),
        (
            npy((2**40, 2**40)),
            r"expected an NPY file of numbers, got: 176 bytes, and a header that claims the shape \(1099511627776, ",
        ),
        (npy((10**6, 10**6)), "expected an NPY file"),
        (npy((-1, 3)), "expected an NPY file"),
        (npy("__import__('os')"), "expected an NPY file"),
        (npy((2, 3), "'|O'"), "expected an NPY file of numbers, got: .*objects"),
        (npy((6,)), r"expected two dimensions \(rows, features\), got shape \(6,\); reshape it"),
        (npy((1, 2, 3)), r"expected two dimensions \(rows, features\), got shape \(1, 2, 3\)$"),
        (npy((1, 3), "'<c16'"), "expected an array of numbers, got dtype complex128"),
        (npy((1, 3), "'<U4'"), "expected an array of numbers, got dtype <U4"),
        (npy((2, 3), "'<M8[s]'"), "expected an array of numbers, got dtype datetime64"),
        (npy((1, 3), "[('a','<f8'),('b','<f8')]"), "expected an array of numbers"),
        (npy((3, 0), data=b""), "expected at least one numeric feature column"),
        (npy((2, 3), data=NAN), r"row 2 \(index 1\), column 'c1': expected a finite number, got nan$"),
    ],
)
def test_npy(tmp_path, content, message):
    (tmp_path / "in.npy").write_bytes(content)
    with pytest.raises(DataError, match="in.npy: " + message):
        read(tmp_path / "in.npy")


def parquet_bytes(tmp_path) -> bytes:
    rng = np.random.default_rng(0)
    pq.write_table(pa.table({"a": rng.normal(size=50), "s": ["x"] * 50}), tmp_path / "good.parquet")
    return (tmp_path / "good.parquet").read_bytes()


@pytest.mark.parametrize("cut", [0, 3, 40, 200, -1, -5])
def test_truncated_parquet(tmp_path, cut):
    (tmp_path / "in.parquet").write_bytes(parquet_bytes(tmp_path)[:cut])
    with pytest.raises(DataError, match=r"in\.parquet: expected a sound Parquet file, got: "):
        read(tmp_path / "in.parquet")


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


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1, 2], [3]], r"row 2 \(index 1\), column 'l\[0\]': expected a list of 2 numbers, got 1$"),
        ([[1, 2], None], r"row 2 \(index 1\), column 'l\[0\]': expected a list of 2 numbers, got null$"),
        ([[1, 2], [3, None]], r"row 2 \(index 1\), column 'l\[1\]': expected a finite number, got null$"),
        ([[1, 2], [np.nan, 1]], r"row 2 \(index 1\), column 'l\[0\]': expected a finite number, got nan$"),
    ],
)
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


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (np.ones(3), DataError, "expected two dimensions"),
        (np.ones((2, 2), object), DataError, "got dtype object"),
        ([[1, 2], [3]], DataError, "<array>: expected rows of one length, got lists of different lengths"),
        ([["a"]], DataError, "expected an array of numbers, got dtype <U1"),
        ({1, 2}, UsageError, "expected an array or a table, got set"),
    ],
)
def test_memory(data, error, message):
    with pytest.raises(error, match=message):
        reader_of(data)


def test_what_the_machine_refuses(tmp_path):
    for name in ("a.csv", "a.parquet", "a.npy"):
        with pytest.raises(SystemRefusedError, match=re.escape(f"{name}: No such file")):
            open_reader(tmp_path / name)
        (tmp_path / name).mkdir()
        with pytest.raises(SystemRefusedError, match="expected a file, got a directory"):
            open_reader(tmp_path / name)
    with pytest.raises(UsageError, match=r"expected a name that ends in one of \.csv, .*--input-format$"):
        open_reader("a.xyz")
    with pytest.raises(
        UsageError,
        match="a.csv: expected a format of csv, parquet, npy, arrow, jsonl, libsvm, npz, got 'xls'",
    ):
        open_reader("a.csv", "xls")
    with pytest.raises(
        UsageError, match="expected CSV, Arrow, JSON lines or LIBSVM on standard input, got npy"
    ):
        open_reader("-", "npy")
    with pytest.raises(SystemRefusedError, match="expected a regular file, got a pipe or a device"):
        open_reader("/dev/null", "parquet")
    with pytest.raises(UsageError, match="--delimiter: expected one character, got ''"):
        open_reader("a.csv", delimiter="")
