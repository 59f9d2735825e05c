"""One table of bad inputs: exit code, what the message names, and that nothing is lost or left half-written."""

import os
import shutil
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import kafeat
from kafeat.cli.main import kafeat as command
from kafeat.errors import KafeatError
from tests.cli.bad_input import (
    LINES,
    NESTED,
    ROWS,
    Make,
    foreign_codec,
    header,
    ipc,
    jsonl,
    libsvm,
    matrix,
    npy,
    packed,
    parquet,
    parquet_bytes,
    raw,
    sound_csv,
    sparse_npz,
    text,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """An input, how it is transformed, the exit code, and what the message has to say."""

    name: str
    make: Make
    code: int
    says: str
    options: tuple[str, ...] = ()
    out: str = "out.npy"


CASES: list[Case] = []


def bad(name, make, code, *options, says, out="out.npy"):
    CASES.append(Case(name, make, code, says, options, out))


# fmt: off
# --- CSV
for name, line, said in [
    ("a longer row", "1,2,3,4", ": expected 3 fields, got 4"),
    ("a shorter row", "1,2", ": expected 3 fields, got 2"),
    ("a carriage return in a value", "1,2\r,3",
     ": expected 3 fields, got 2; a carriage return alone also ends a row: put a value that contains one in quotes"),
    ("a quote in the middle", '1,2"5,3', ', column \'b\': expected a number, got \'2"5\'; --on-bad-rows drop'),
    ("a space within a number", "1,1 234,3",
     ", column 'b': expected a number, got '1 234'; --thousands blank reads 1234; --on-bad-rows drop"),
    ("nan", "1,nan,3", ", column 'b': expected a finite number, got nan; --on-bad-rows drop leaves such rows out, null marks them"),
    ("an empty field", "1,,3", ", column 'b': expected a finite number, got null; --on-bad-rows drop"),
    ("NA", "1,NA,3", ", column 'b': expected a finite number, got 'NA', which stands for a missing value; --on-bad-rows drop"),
    ("beyond float32", "1,1e39,3",
     ", column 'b': expected a finite number, got 1e+39, which overflows float32; --on-bad-rows drop"),
    ("beyond float64", "1,2,1e400", ", column 'c': expected a finite number, got 1e400; --on-bad-rows drop"),
    ("digits of another script", "1,\uff12,3", ", column 'b': expected a number, got '２'; write 2 if it is that number; --on-bad-rows drop"),
    ("a currency", "1,$5,3", ", column 'b': expected a number, got '$5'; --unit '$' reads 5; --on-bad-rows drop"),
]:
    bad(f"csv: {name}", text(line), 3, says="in.csv: row 13 (index 12)" + said)
for name, make, said in [
    ("semicolons for commas", raw(sound_csv().replace(b",", b";")),
     "'a', 'b', 'c', got a;b;c; is the delimiter another character (--delimiter ';')?"),
    ("tabs for commas", raw(sound_csv().replace(b",", b"\t")),
     "'a', 'b', 'c', got 'a\\tb\\tc'; is the delimiter another character (--delimiter tab)?"),
    ("10,000 columns of other names", raw((",".join(f"x{i}" for i in range(10_000)) + "\n" + ",".join("1" * 10_000) + "\n").encode()),
     "'a', 'b', 'c', got x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, ..."),
    ("a header of numbers", raw("\n".join(LINES).encode()), "'a', 'b', 'c', got 0.0, 0.0, 1.0"),
]:
    bad(f"csv: {name}", make, 3, "--delimiter", ",", says="in.csv: expected the columns " + said)
bad("csv: a delimiter that is not there", raw(sound_csv()), 3, "--delimiter", ";",
    says="in.csv: expected the columns 'a', 'b', 'c', got a,b,c; is the delimiter another character (--delimiter ,)?")
for name, make, said in [
    ("Latin-1 in a value", text("1,2,\xe9", encoding="latin-1"),
     "line 14, byte 308: expected UTF-8 text, got b'\\xe9\\n'; --encoding latin-1 reads it, if that is its encoding"),
    ("text far down", raw(b"a,b,c\n" + b"1,2,3\n" * 999_999 + b"1,x,3\n"),
     "row 1000000 (index 999999), column 'b': expected a number, got 'x'; --on-bad-rows drop"),
    ("nothing", raw(b""), "expected a header line, got an empty file"),
    ("a zero byte", text("1,2\0,3"),
     "byte 307: expected UTF-8 text, got a NUL byte: this looks like a binary file, or like UTF-16 (--encoding utf-16-le reads it)"),
    ("a spreadsheet", raw(b"PK\x03\x04" + bytes(100)),
     "expected CSV, but this looks like a zip archive, such as a spreadsheet: save the sheet as CSV"),
    ("Parquet", lambda f: raw(Path(parquet()(f)).read_bytes(), "in.csv")(f),
     "expected CSV, but this looks like Parquet: --input-format parquet"),
    ("NPY", lambda f: raw(Path(npy(matrix())(f)).read_bytes(), "in.csv")(f),
     "expected CSV, but this looks like NPY: --input-format npy"),
]:
    bad(f"csv: {name}", make, 3, says="in.csv: " + said)
for name, make, said in [
    ("a column twice", text(head="a,b,b"), "'c', got a, b, b"),
    ("a column without a name", text(head="a,,c"), "'b', got a, , c"),
    ("a misspelled column", text(head="a,b,C"), "'c' (did you mean 'C'?), got a, b, C"),
]:
    bad(f"csv: {name}", make, 3, says="in.csv: expected the column " + said)
bad("csv: UTF-16 without a mark", text(encoding="utf-16-be"), 3,
    says="in.csv: byte 0: expected UTF-8 text, got a NUL byte: this looks like a binary file, or like UTF-16 (--encoding utf-16-be reads it)")
bad("csv: UTF-32", text(encoding="utf-32"), 3,
    says="in.csv: byte 2: expected UTF-8 text, got a NUL byte: this looks like a binary file, or like UTF-16 (--encoding utf-32 reads it)")
bad("csv: no header, other width", raw("\n".join([*LINES, "1,2"]).encode()), 3, "--no-header",
    says="in.csv: row 13 (index 12): expected 3 fields, got 2")
bad("csv: gzip cut short", packed(-9), 3,
    says="in.csv.gz: expected sound gzip data, got: ")
bad("csv: no gzip at all", raw(b"\x1f\x8bnot gzip", "in.csv.gz"), 3,
    says="in.csv.gz: expected sound gzip data, got: ")
bad("csv: a folder", lambda f: str((f / "in.csv").mkdir() or f / "in.csv"), 5,
    says="out.npy: expected a folder for the parts of the output, got a file")
bad("csv: a quote as delimiter", raw(sound_csv()), 2, "--delimiter", '"',
    says="--delimiter: expected one character, got '\"'")
# --- Parquet
for name, make, said in [
    ("a struct", parquet(b=NESTED), "struct<x: double>"),
    ("text", parquet(b=["x"] * 12), "string"),
    ("categories", parquet(b=pa.array(["x", "y"] * 6).dictionary_encode()),
     "dictionary<values=string, indices=int32, ordered=0>"),
    ("a timestamp", parquet(b=pa.array([0] * 12, pa.timestamp("us"))), "timestamp[us]"),
    ("nothing but nulls", parquet(b=pa.nulls(12)), "null"),
    ("lists in the place of numbers", parquet(b=[[1.0, 2.0]] * 12), "lists of 2 numbers"),
]:
    bad(f"parquet: {name}", make, 3, says="in.parquet: column 'b': expected numbers, got " + said)
for name, make, said in [
    ("a null", parquet(b=[1.0, None] * 6), "2 (index 1), column 'b': expected a finite number, got null"),
    ("a decimal beyond float32", parquet(a=pa.array([Decimal(10) ** 40] * 12, pa.decimal256(60, 2))),
     "1 (index 0), column 'a': expected a finite number, got 10000000000000000000000000000000000000000.00, which overflows float32"),
]:
    bad(f"parquet: {name}", make, 3, says="in.parquet: row " + said + "; --on-bad-rows drop")
bad("parquet: no columns", parquet(a=None, b=None, c=None), 3,
    says="in.parquet: expected the columns 'a', 'b', 'c', got none")
for name, make in [
    ("an unsupported codec", parquet_bytes(foreign_codec)),
    ("cut in half", parquet_bytes(lambda b: b[: len(b) // 2])),
    ("a footer of 4 GB", parquet_bytes(lambda b: b[:-8] + bytes([255] * 4) + b"PAR1")),
    ("nothing", raw(b"", "in.parquet")),
    ("a CSV", raw(sound_csv(), "in.parquet")),
]:
    bad(f"parquet: {name}", make, 3, says="in.parquet: expected a sound Parquet file, got: ")
for form in ("parquet", "npy", "npz"):
    bad(f"{form}: from stdin", lambda f: "-", 2, "--input-format", form,
        says=f"-: expected CSV, Arrow, JSON lines or LIBSVM on standard input, got {form}: it cannot be piped")
# --- NPY
for name, make in [
    ("objects", npy(np.array([[1, "x", None]] * 3, dtype=object))),
    ("a shape beyond the file", header("(9, 3)")),
    ("a shape beyond all memory", header("(2**62, 3)")),
    ("a negative shape", header("(-8, 3)")),
    ("code in the header", header("__import__('os').getcwd()")),
    ("an unknown version", header("(8, 3)", version=9)),
    ("cut in the data", npy(matrix(), lambda b: b[:-1])),
    ("a header that is no dict", npy(matrix(), lambda b: b[:10] + b"x" * 118 + b[128:])),
    ("a CSV", raw(sound_csv(), "in.npy")),
    ("a zip of arrays", raw(b"PK\x03\x04" + bytes(60), "in.npy")),
    ("a pickle", raw(b"\x80\x04cos\nsystem\n.", "in.npy")),
]:
    bad(f"npy: {name}", make, 3, says="in.npy: expected an NPY file of numbers, got: ")
for name, make, said in [
    ("text", npy(np.array([["1", "2", "3"]])), "<U1"),
    ("complex numbers", npy(matrix().astype(complex)), "complex128"),
    ("records", npy(np.zeros(3, [("a", "f4"), ("b", "f4")])), "[('a', '<f4'), ('b', '<f4')]"),
]:
    bad(f"npy: {name}", make, 3, says="in.npy: expected an array of numbers, got dtype " + said)
for name, make, said in [
    ("one dimension", npy(np.ones(3, "f4")),
     "two dimensions (rows, features), got shape (3,); reshape it to (rows, 1) for one feature or (1, features) for one row"),
    ("no dimension", npy(np.float32(1)), "two dimensions (rows, features), got shape ()"),
    ("two columns for three", npy(matrix()[:, :2]),
     "3 feature columns, got 2; columns without names are matched by position: remove a column that is not a feature, or name it as the label or in --keep"),
    ("no columns", npy(np.ones((2, 0), "f4")),
     "3 feature columns, got 0; columns without names are matched by position: remove a column that is not a feature, or name it as the label or in --keep"),
]:
    bad(f"npy: {name}", make, 3, says="in.npy: expected " + said)
for name, make, said in [
    ("NaN", npy(matrix(r3c1=np.nan)), "4 (index 3), column 'c1': expected a finite number, got nan"),
]:
    bad(f"npy: {name}", make, 3, says="in.npy: row " + said + "; --on-bad-rows drop")
# --- Arrow
for name, make, said in [
    ("a null", ipc(b=[1.0, None] * 6),
     "row 2 (index 1), column 'b': expected a finite number, got null; --on-bad-rows drop"),
    ("a CSV", raw(sound_csv(), "in.arrow"), "expected Arrow IPC, got bytes that start with b'a,b,c"),
]:
    bad(f"arrow: {name}", make, 3, says="in.arrow: " + said)
for name, make in [
    ("cut in half", ipc(change=lambda b: b[: len(b) // 2])),
    ("cut in its mark", ipc(change=lambda b: b[:7])),
    ("a stream that is cut", ipc(change=lambda b: b[: len(b) // 2], stream=True)),
    ("metadata of 4 GB", raw(b"\xff\xff\xff\xff\xff\xff\xff\x7f" + bytes(60), "in.arrow")),
]:
    bad(f"arrow: {name}", make, 3, says="in.arrow: expected sound Arrow IPC, got: ")
bad("arrow: Feather 1", raw(b"FEA1" + bytes(60), "in.feather"), 3,
    says="in.feather: expected Arrow IPC, got Feather of version 1; write it as version 2")
bad("arrow: as CSV", ipc(stream=True), 3, "--input-format", "csv",
    says="in.arrow: expected CSV, but this looks like Arrow: --input-format arrow")
# --- LIBSVM
for name, line, said in [
    ("an index of 0", "1 0:2 1:3", ": expected an index from 1 to 2,147,483,647, got 0"),
    ("descending indices", "1 2:2 1:3", ": expected ascending indices, got 1 after 2"),
    ("several labels", "1,2 1:2", ": expected one label, got '1,2'"),
]:
    bad(f"libsvm: {name}", libsvm(line), 3, says="in.svm: row 13 (index 12)" + said + "; --on-bad-rows drop")
for name, make, said in [
    ("Latin-1", libsvm("1 1:\xe9", encoding="latin-1"),
     "row 13 (index 12): expected a number after the index 1, got '�'; --on-bad-rows drop"),
    ("nothing", raw(b"", "in.svm"), "expected rows, got an empty file"),
]:
    bad(f"libsvm: {name}", make, 3, says="in.svm: " + said)
bad("libsvm: a zero byte", libsvm("1 1:\0"), 3,
    says="expected UTF-8 text, got a NUL byte")
bad("libsvm: keep the features", libsvm(), 2, "--keep", "all",
    says="in.svm: --keep: expected columns besides the sparse features, got features")
# --- SciPy's sparse matrices
for name, make, said in [
    ("CSC", sparse_npz(format=b"csc"), "expected a CSR matrix, got b'csc'; save its .tocsr()"),
    ("dense arrays", sparse_npz(format=None, indices=None),
     "expected a sparse matrix of scipy.sparse.save_npz, got a zip without one"),
    ("no indices", sparse_npz(indices=None), "expected a sparse matrix of scipy.sparse.save_npz, got: "),
    ("another width", sparse_npz(shape=[3, 4]), "expected 3 feature columns, got 4"),
    ("a column beyond the width", sparse_npz(indices=[0, 3, 1]),
     "indices: expected columns from 0 to 2, got others in rows 1 to 3"),
    ("rows that begin late", sparse_npz(indptr=[1, 2, 3, 3]), "indptr: expected to begin with 0, got 1"),
    ("fewer indices than data", sparse_npz(indices=[0, 1]),
     "expected 4 numbers in indptr and as many in indices as in data, got 4, 2 and 3"),
    ("a shape of terabytes", sparse_npz(shape=[1 << 45, 3]), "expected 35,184,372,088,833 numbers in indptr"),
    ("a shape below 0", sparse_npz(shape=[-3, 3]), "expected from 1 to 2,147,483,647 columns, got the shape (-3, 3)"),
    ("objects", sparse_npz(data=np.array([1, "x", None], dtype=object)),
     "expected a sparse matrix of scipy.sparse.save_npz, got: Python objects"),
    ("complex numbers", sparse_npz(data=np.ones(3, complex)),
     "expected a sparse matrix of numbers, got dtype complex128"),
    ("NaN", sparse_npz(data=[1.0, np.nan, 2.0]),
     "row 2 (index 1), column 'features[1]': expected a finite number, got nan; --on-bad-rows drop"),
    ("other bytes within", sparse_npz(change=lambda b: b.replace(np.array([1.5]).tobytes(), b"12345678")),
     "expected a sparse matrix of scipy.sparse.save_npz, got: Bad CRC-32"),
]:
    bad(f"npz: {name}", make, 3, says="in.npz: " + said)
# --- JSON lines
for name, line, said in [
    ("a key that is absent", '{"a": 1, "c": 3}',
     ", column 'b': expected a finite number, got null; --on-bad-rows drop"),
    ("a number beyond all", '{"a": 1, "b": 1e999, "c": 3}',
     ", column 'b': expected a finite number, got 1e999; --on-bad-rows drop"),
]:
    bad(f"jsonl: {name}", jsonl(line), 3, says="in.jsonl: row 13 (index 12)" + said)
# --- options
bad("keep: no such column", text(), 3, "--keep", "d",
    says="in.csv: --keep: expected the column 'd', got a, b, c")
bad("output: an unknown suffix", text(), 2, out="out.xyz",
    says="out.xyz: expected a name that ends in one of .csv, .csv.gz, .csv.zst, .tsv, .tsv.gz, .tsv.zst, .parquet, .pq, .npy, .arrow, .arrows, .feather, .ipc, .jsonl, .ndjson, .libsvm, .svmlight, .svm, .npz; otherwise name the format: --output-format csv")
bad("output: there already", text(), 2, "--no-clobber", out="out.npy",
    says="out.npy: expected no file of that name, got one; allow it to be replaced (--overwrite, in Python overwrite=True), or name another")
for form in ("parquet", "npz"):
    bad(f"output: {form} on stdout", text(), 2, "--output-format", form, out="-",
        says=f"-: expected CSV, Arrow, JSON lines or LIBSVM on standard output, got {form}; name a file")
bad("max-drift: 2", text(), 2, "--max-drift", "2",
    says="Invalid value for '--max-drift': 2.0 is not in the range 0.0<=x<=1.0.")
bad("max-drift: too much", text("99,99,99"), 6, "--max-drift", "0.05",
    says="in.csv: expected at most 5.00% of a column outside the range of the training rows (--max-drift), got 'c' 7.69%, 'b' 7.69%, 'a' 7.69%")
bad("max-bad-rows without a rule", text(), 2, "--max-bad-rows", "1%",
    says="--max-bad-rows: expected --on-bad-rows drop or null with it, got error")
# fmt: on


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    table = pa.table({name: [row[i] for row in ROWS] for i, name in enumerate("abc")})
    place = tmp_path_factory.mktemp("models") / "plain.joblib"
    kafeat.fit({"steps": [{"kind": "fourier", "n_components": 8, "frequencies": "iid"}]}, table).save(place)
    return place


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_bad_input(case, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = case.make(tmp_path)
    if case.out != "-":
        (tmp_path / case.out).write_bytes(b"previous")
    model = shutil.copy(model, tmp_path)
    before = {name: _content(name) for name in sorted(os.listdir())}
    arguments = ["transform", "--model", model, source, case.out, *case.options]
    done = CliRunner().invoke(command, arguments)
    if isinstance(done.exception, KafeatError):
        code, message = done.exception.exit_code, str(done.exception)
    else:
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        code, message = done.exit_code, done.output
    print(f"{case.name}: {code} {message}")
    assert code == case.code, message
    assert case.says in message, message
    assert {name: _content(name) for name in sorted(os.listdir())} == before


def _content(name):
    return None if os.path.isdir(name) else Path(name).read_bytes()
