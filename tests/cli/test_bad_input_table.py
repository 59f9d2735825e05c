"""One table of bad inputs: exit code, what the message names, and that nothing is lost or left half-written."""

import os
import pickle
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
    doubled_parquet,
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
    model: str = "plain"
    out: str = "out.npy"


CASES: list[Case] = []


def bad(name, make, code, *options, says, model="plain", out="out.npy"):
    CASES.append(Case(name, make, code, says, options, model, out))


# fmt: off

# --- CSV
bad("csv: a longer row", text("1,2,3,4"), 3,
    says="in.csv: row 13 (index 12): expected 3 fields, got 4")
bad("csv: a shorter row", text("1,2"), 3,
    says="in.csv: row 13 (index 12): expected 3 fields, got 2")
bad("csv: a carriage return in a value", text("1,2\r,3"), 3,
    says="in.csv: row 13 (index 12): expected 3 fields, got 2; the file has a carriage return alone, which ends a row, too: put a value that holds one in quotes")
bad("csv: semicolons for commas", raw(sound_csv().replace(b",", b";")), 3,
    says="in.csv: expected the columns 'a', 'b', 'c', got a;b;c; is the delimiter another character (--delimiter ';')?")
bad("csv: tabs for commas", raw(sound_csv().replace(b",", b"\t")), 3,
    says="in.csv: expected the columns 'a', 'b', 'c', got 'a\\tb\\tc'; is the delimiter another character (--delimiter $'\\t')?")
bad("csv: a delimiter that is not there", raw(sound_csv()), 3, "--delimiter", ";",
    says="in.csv: expected the columns 'a', 'b', 'c', got a,b,c; is the delimiter another character (--delimiter ',')?")
bad("csv: Latin-1 in a value", text("1,2,\xe9", encoding="latin-1"), 3,
    says="in.csv: line 14, byte 308: expected UTF-8 text, got b'\\xe9\\n'; convert it: iconv -f LATIN1 -t UTF-8, or whatever it is")
bad("csv: Latin-1 in the header", raw(b"a,b,\xe9\n1,2,3\n"), 3,
    says="in.csv: expected the column 'c', got a, b, �")
bad("csv: UTF-16", text(encoding="utf-16"), 3,
    says="in.csv: byte 3: expected UTF-8 text, got a NUL byte: this looks like a binary file, or like UTF-16 (iconv -f UTF-16 -t UTF-8 converts it)")
bad("csv: UTF-16 without a mark", text(encoding="utf-16-be"), 3,
    says="in.csv: byte 0: expected UTF-8 text, got a NUL byte: this looks like a binary file, or like UTF-16 (iconv -f UTF-16 -t UTF-8 converts it)")
bad("csv: UTF-32", text(encoding="utf-32"), 3,
    says="in.csv: byte 2: expected UTF-8 text, got a NUL byte: this looks like a binary file, or like UTF-16 (iconv -f UTF-16 -t UTF-8 converts it)")
bad("csv: an open quote", text('1,"2,3'), 3,
    says="in.csv: line 14: expected a quote that closes the value opened in this line, got none")
bad("csv: text behind a quote", text('1,"2"2,3'), 3,
    says="in.csv: line 14: expected the end of a value after the quote that closes it, got '2,3'; a quote within quotes is written twice")
bad("csv: a quote in the middle", text('1,2"5,3'), 3,
    says="in.csv: row 13 (index 12), column 'b': expected a number, got '2\"5'; --on-bad-rows drop")
bad("csv: a thousands separator in quotes", text('1,"1,234",3'), 3,
    says="in.csv: row 13 (index 12), column 'b': expected a number, got '1,234'; --thousands , reads 1234; --decimal , reads 1.234; --on-bad-rows drop")
bad("csv: a thousands separator", text("1,1,234,3"), 3,
    says="in.csv: row 13 (index 12): expected 3 fields, got 4")
bad("csv: a decimal comma", raw(b"a;b;c\n1,5;2;3\n"), 3, "--delimiter", ";",
    says="in.csv: row 1 (index 0), column 'a': expected a number, got '1,5'; --decimal , reads decimal commas; --on-bad-rows drop")
bad("csv: a space within a number", text("1,1 234,3"), 3,
    says="in.csv: row 13 (index 12), column 'b': expected a number, got '1 234'; --thousands blank reads 1234; --on-bad-rows drop")
bad("csv: text far down", raw(b"a,b,c\n" + b"1,2,3\n" * 999_999 + b"1,x,3\n"), 3,
    says="in.csv: row 1000000 (index 999999), column 'b': expected a number, got 'x'; --on-bad-rows drop")
bad("csv: a column twice", text(head="a,b,b"), 3,
    says="in.csv: expected the column 'c', got a, b, b")
bad("csv: a column without a name", text(head="a,,c"), 3,
    says="in.csv: expected the column 'b', got a, , c")
bad("csv: 10,000 columns of other names", raw((",".join(f"x{i}" for i in range(10_000)) + "\n" + ",".join("1" * 10_000) + "\n").encode()), 3,
    says="in.csv: expected the columns 'a', 'b', 'c', got x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, ...")
bad("csv: nothing", raw(b""), 3,
    says="in.csv: expected a header line, got an empty file")
bad("csv: blank lines", raw(b"\n\n\n"), 3,
    says="in.csv: expected a header line, got an empty file")
bad("csv: a zero byte", text("1,2\0,3"), 3,
    says="in.csv: byte 307: expected UTF-8 text, got a NUL byte: this looks like a binary file, or like UTF-16 (iconv -f UTF-16 -t UTF-8 converts it)")
bad("csv: a spreadsheet", raw(b"PK\x03\x04" + bytes(100)), 3,
    says="in.csv: expected CSV, but this looks like a zip archive, as files of spreadsheets are: save the sheet as CSV")
bad("csv: nothing but zero bytes", raw(bytes(1000)), 3,
    says="in.csv: byte 0: expected UTF-8 text, got a NUL byte: this looks like a binary file, or like UTF-16 (iconv -f UTF-16 -t UTF-8 converts it)")
bad("csv: nan", text("1,nan,3"), 3,
    says="in.csv: row 13 (index 12), column 'b': expected a finite number, got nan; --on-bad-rows drop")
bad("csv: inf", text("1,2,inf"), 3,
    says="in.csv: row 13 (index 12), column 'c': expected a finite number, got inf; --on-bad-rows drop")
bad("csv: -Infinity", text("-Infinity,2,3"), 3,
    says="in.csv: row 13 (index 12), column 'a': expected a finite number, got -Infinity; --on-bad-rows drop")
bad("csv: an empty field", text("1,,3"), 3,
    says="in.csv: row 13 (index 12), column 'b': expected a finite number, got null; --on-bad-rows drop")
bad("csv: NA", text("1,NA,3"), 3,
    says="in.csv: row 13 (index 12), column 'b': expected a finite number, got 'NA', which is read as null; --on-bad-rows drop")
bad("csv: null", text("1,null,3"), 3,
    says="in.csv: row 13 (index 12), column 'b': expected a finite number, got 'null', which is read as null; --on-bad-rows drop")
bad("csv: beyond float32", text("1,1e39,3"), 3,
    says="in.csv: row 13 (index 12), column 'b': expected a finite number, got 1e+39, which overflows float32; --on-bad-rows drop")
bad("csv: beyond float64", text("1,2,1e400"), 3,
    says="in.csv: row 13 (index 12), column 'c': expected a finite number, got 1e400; --on-bad-rows drop")
bad("csv: half of an exponent", text("1,2e,3"), 3,
    says="in.csv: row 13 (index 12), column 'b': expected a number, got '2e'; --on-bad-rows drop")
bad("csv: hexadecimal", text("1,0x10,3"), 3,
    says="in.csv: row 13 (index 12), column 'b': expected a number, got '0x10'; --on-bad-rows drop")
bad("csv: an underscore", text("1,1_000,3"), 3,
    says="in.csv: row 13 (index 12), column 'b': expected a number, got '1_000'; --on-bad-rows drop")
bad("csv: digits of another script", text("1,\uff12,3"), 3,
    says="in.csv: row 13 (index 12), column 'b': expected a number, got '２'; --on-bad-rows drop")
bad("csv: two signs", text("1,--2,3"), 3,
    says="in.csv: row 13 (index 12), column 'b': expected a number, got '--2'; --on-bad-rows drop")
bad("csv: a date", text("1,2026-01-02,3"), 3,
    says="in.csv: row 13 (index 12), column 'b': expected a number, got '2026-01-02'; --on-bad-rows drop")
bad("csv: a percentage", text("1,12%,3"), 3,
    says="in.csv: row 13 (index 12), column 'b': expected a number, got '12%'; --unit % reads it; --on-bad-rows drop")
bad("csv: a currency", text("1,$5,3"), 3,
    says="in.csv: row 13 (index 12), column 'b': expected a number, got '$5'; --unit '$' reads it; --on-bad-rows drop")
bad("csv: a missing column", text(head="a,b,d"), 3,
    says="in.csv: expected the column 'c', got a, b, d")
bad("csv: a misspelled column", text(head="a,b,C"), 3,
    says="in.csv: expected the column 'c' (did you mean 'C'?), got a, b, C")
bad("csv: a header of numbers", raw("\n".join(LINES).encode()), 3,
    says="in.csv: expected the columns 'a', 'b', 'c', got 0.0, 0.0, 1.0")
bad("csv: no header, other width", raw("\n".join([*LINES, "1,2"]).encode()), 3, "--no-header",
    says="in.csv: row 13 (index 12): expected 3 fields, got 2")
bad("csv: no header, fewer columns", raw(b"1,2\n3,4\n"), 3, "--no-header",
    says="in.csv: expected 3 feature columns, got 2; columns without names are matched by position: remove a column that is not a feature, or name it as the label or in --keep")
bad("csv: gzip cut short", packed(-9), 3,
    says="in.csv.gz: expected sound gzip data, got: ")
bad("csv: gzip of two bytes", packed(2), 3,
    says="in.csv.gz: expected sound gzip data, got: ")
bad("csv: no gzip at all", raw(b"\x1f\x8bnot gzip", "in.csv.gz"), 3,
    says="in.csv.gz: expected sound gzip data, got: ")
bad("csv: Parquet", lambda f: raw(Path(parquet()(f)).read_bytes(), "in.csv")(f), 3,
    says="in.csv: expected CSV, but this looks like Parquet: --input-format parquet")
bad("csv: NPY", lambda f: raw(Path(npy(matrix())(f)).read_bytes(), "in.csv")(f), 3,
    says="in.csv: expected CSV, but this looks like NPY: --input-format npy")
bad("csv: a folder", lambda f: str((f / "in.csv").mkdir() or f / "in.csv"), 5,
    says="out.npy: expected a folder for the parts of the output, got a file")
bad("csv: no such file", lambda f: str(f / "in.csv"), 5,
    says="in.csv: No such file or directory")
bad("csv: a bad delimiter", raw(sound_csv()), 2, "--delimiter", ",,",
    says="--delimiter: expected one character, got ',,'")
bad("csv: a quote as delimiter", raw(sound_csv()), 2, "--delimiter", '"',
    says="--delimiter: expected one character, got '\"'")
# --- Parquet
bad("parquet: a struct", parquet(b=NESTED), 3,
    says="in.parquet: column 'b': expected numbers, got struct<x: double>")
bad("parquet: text", parquet(b=["x"] * 12), 3,
    says="in.parquet: column 'b': expected numbers, got string")
bad("parquet: categories", parquet(b=pa.array(["x", "y"] * 6).dictionary_encode()), 3,
    says="in.parquet: column 'b': expected numbers, got dictionary<values=string, indices=int32, ordered=0>")
bad("parquet: numbers as text", parquet(b=["1"] * 12), 3,
    says="in.parquet: column 'b': expected numbers, got string")
bad("parquet: a timestamp", parquet(b=pa.array([0] * 12, pa.timestamp("us"))), 3,
    says="in.parquet: column 'b': expected numbers, got timestamp[us]")
bad("parquet: a date", parquet(b=pa.array([0] * 12, pa.date32())), 3,
    says="in.parquet: column 'b': expected numbers, got date32[day]")
bad("parquet: a time", parquet(b=pa.array([0] * 12, pa.time64("us"))), 3,
    says="in.parquet: column 'b': expected numbers, got time64[us]")
bad("parquet: bytes", parquet(b=[b"x"] * 12), 3,
    says="in.parquet: column 'b': expected numbers, got binary")
bad("parquet: a map", parquet(b=pa.array([[("k", 1.0)]] * 12, pa.map_(pa.string(), pa.float64()))), 3,
    says="in.parquet: column 'b': expected numbers, got map<string, double ('b')>")
bad("parquet: nothing but nulls", parquet(b=pa.nulls(12)), 3,
    says="in.parquet: column 'b': expected numbers, got null")
bad("parquet: a null", parquet(b=[1.0, None] * 6), 3,
    says="in.parquet: row 2 (index 1), column 'b': expected a finite number, got null; --on-bad-rows drop")
bad("parquet: a null among whole numbers", parquet(b=pa.array([1, None] * 6, pa.int64())), 3,
    says="in.parquet: row 2 (index 1), column 'b': expected a finite number, got null; --on-bad-rows drop")
bad("parquet: a null in a decimal", parquet(b=pa.array([Decimal("1.25"), None] * 6)), 3,
    says="in.parquet: row 2 (index 1), column 'b': expected a finite number, got null; --on-bad-rows drop")
bad("parquet: NaN", parquet(c=[1.0] * 11 + [float("nan")]), 3,
    says="in.parquet: row 12 (index 11), column 'c': expected a finite number, got nan; --on-bad-rows drop")
bad("parquet: inf", parquet(a=[float("inf")] + [1.0] * 11), 3,
    says="in.parquet: row 1 (index 0), column 'a': expected a finite number, got inf; --on-bad-rows drop")
bad("parquet: inf of half floats", parquet(a=np.array([np.inf] + [1.0] * 11, dtype=np.float16)), 3,
    says="in.parquet: row 1 (index 0), column 'a': expected a finite number, got inf; --on-bad-rows drop")
bad("parquet: beyond float32", parquet(a=[1e39] + [1.0] * 11), 3,
    says="in.parquet: row 1 (index 0), column 'a': expected a finite number, got 1e+39, which overflows float32; --on-bad-rows drop")
bad("parquet: a decimal beyond float32", parquet(a=pa.array([Decimal(10) ** 40] * 12, pa.decimal256(60, 2))), 3,
    says="in.parquet: row 1 (index 0), column 'a': expected a finite number, got 10000000000000000000000000000000000000000.00, which overflows float32; --on-bad-rows drop")
bad("parquet: lists in the place of numbers", parquet(b=[[1.0, 2.0]] * 12), 3,
    says="in.parquet: column 'b': expected numbers, got lists of 2 numbers")
bad("parquet: lists of text", parquet(b=[["x"]] * 12), 3,
    says="in.parquet: column 'b': expected numbers, got list<element: string>")
bad("parquet: a column twice", doubled_parquet, 3,
    says="in.parquet: column 'a': expected one column of that name, got 2; rename one")
bad("parquet: a missing column", parquet(b=None), 3,
    says="in.parquet: expected the column 'b', got a, c")
bad("parquet: a misspelled column", parquet(b=None, B=[1.0] * 12), 3,
    says="in.parquet: expected the column 'b' (did you mean 'B'?), got a, c, B")
bad("parquet: no columns", parquet(a=None, b=None, c=None), 3,
    says="in.parquet: expected the columns 'a', 'b', 'c', got none")
bad("parquet: an unsupported codec", parquet_bytes(foreign_codec), 3,
    says="in.parquet: expected a sound Parquet file, got: ")
bad("parquet: cut in the footer", parquet_bytes(lambda b: b[:-5]), 3,
    says="in.parquet: expected a sound Parquet file, got: ")
bad("parquet: cut in half", parquet_bytes(lambda b: b[: len(b) // 2]), 3,
    says="in.parquet: expected a sound Parquet file, got: ")
bad("parquet: its magic only", raw(b"PAR1", "in.parquet"), 3,
    says="in.parquet: expected a sound Parquet file, got: ")
bad("parquet: encrypted", parquet_bytes(lambda b: b[:-4] + b"PARE"), 3,
    says="in.parquet: expected a sound Parquet file, got: ")
bad("parquet: a wrong magic", parquet_bytes(lambda b: b"XXXX" + b[4:-4] + b"XXXX"), 3,
    says="in.parquet: expected a sound Parquet file, got: ")
bad("parquet: a footer of 4 GB", parquet_bytes(lambda b: b[:-8] + bytes([255] * 4) + b"PAR1"), 3,
    says="in.parquet: expected a sound Parquet file, got: ")
bad("parquet: a footer of zeros", parquet_bytes(lambda b: b[:-58] + bytes(50) + b[-8:]), 3,
    says="in.parquet: expected a sound Parquet file, got: ")
bad("parquet: nothing", raw(b"", "in.parquet"), 3,
    says="in.parquet: expected a sound Parquet file, got: ")
bad("parquet: a CSV", raw(sound_csv(), "in.parquet"), 3,
    says="in.parquet: expected a sound Parquet file, got: ")
bad("parquet: no such file", lambda f: str(f / "in.parquet"), 5,
    says="in.parquet: No such file or directory")
bad("parquet: from stdin", lambda f: "-", 2, "--input-format", "parquet",
    says="-: expected CSV, Arrow, JSON lines or LIBSVM on standard input, got parquet: it cannot be piped")
# --- NPY
bad("npy: objects", npy(np.array([[1, "x", None]] * 3, dtype=object)), 3,
    says="in.npy: expected an NPY file of numbers, got: ")
bad("npy: text", npy(np.array([["1", "2", "3"]])), 3,
    says="in.npy: expected an array of numbers, got dtype <U1")
bad("npy: complex numbers", npy(matrix().astype(complex)), 3,
    says="in.npy: expected an array of numbers, got dtype complex128")
bad("npy: dates", npy(np.zeros((2, 3), "M8[s]")), 3,
    says="in.npy: expected an array of numbers, got dtype datetime64[s]")
bad("npy: records", npy(np.zeros(3, [("a", "f4"), ("b", "f4")])), 3,
    says="in.npy: expected an array of numbers, got dtype [('a', '<f4'), ('b', '<f4')]")
bad("npy: one dimension", npy(np.ones(3, "f4")), 3,
    says="in.npy: expected two dimensions (rows, features), got shape (3,); reshape it to (rows, 1) for one feature or (1, features) for one row")
bad("npy: three dimensions", npy(np.ones((2, 3, 1), "f4")), 3,
    says="in.npy: expected two dimensions (rows, features), got shape (2, 3, 1)")
bad("npy: no dimension", npy(np.float32(1)), 3,
    says="in.npy: expected two dimensions (rows, features), got shape ()")
bad("npy: two columns for three", npy(matrix()[:, :2]), 3,
    says="in.npy: expected 3 feature columns, got 2; columns without names are matched by position: remove a column that is not a feature, or name it as the label or in --keep")
bad("npy: four columns for three", npy(np.ones((2, 4), "f4")), 3,
    says="in.npy: expected 3 feature columns, got 4; columns without names are matched by position: remove a column that is not a feature, or name it as the label or in --keep")
bad("npy: no columns", npy(np.ones((2, 0), "f4")), 3,
    says="in.npy: expected 3 feature columns, got 0; columns without names are matched by position: remove a column that is not a feature, or name it as the label or in --keep")
bad("npy: NaN", npy(matrix(r3c1=np.nan)), 3,
    says="in.npy: row 4 (index 3), column 'c1': expected a finite number, got nan; --on-bad-rows drop")
bad("npy: inf", npy(matrix(r11c2=np.inf)), 3,
    says="in.npy: row 12 (index 11), column 'c2': expected a finite number, got inf; --on-bad-rows drop")
bad("npy: beyond float32", npy(matrix().astype(float) * 1e39), 3,
    says="in.npy: row 1 (index 0), column 'c2': expected a finite number, got 1e+39, which overflows float32; --on-bad-rows drop")
bad("npy: a shape beyond the file", header("(9, 3)"), 3,
    says="in.npy: expected an NPY file of numbers, got: ")
bad("npy: a shape of terabytes", header("(1000000000000, 3)"), 3,
    says="in.npy: expected an NPY file of numbers, got: ")
bad("npy: a shape beyond all memory", header("(2**62, 3)"), 3,
    says="in.npy: expected an NPY file of numbers, got: ")
bad("npy: a negative shape", header("(-8, 3)"), 3,
    says="in.npy: expected an NPY file of numbers, got: ")
bad("npy: a shape of text", header("('8', 3)"), 3,
    says="in.npy: expected an NPY file of numbers, got: ")
bad("npy: code in the header", header("__import__('os').getcwd()"), 3,
    says="in.npy: expected an NPY file of numbers, got: ")
bad("npy: an unknown type", header("(8, 3)", "'<q9'"), 3,
    says="in.npy: expected an NPY file of numbers, got: ")
bad("npy: objects in the header", header("(8, 3)", "'|O'"), 3,
    says="in.npy: expected an NPY file of numbers, got: ")
bad("npy: an unknown version", header("(8, 3)", version=9), 3,
    says="in.npy: expected an NPY file of numbers, got: ")
bad("npy: cut in the header", npy(matrix(), lambda b: b[:40]), 3,
    says="in.npy: expected an NPY file of numbers, got: ")
bad("npy: cut in the data", npy(matrix(), lambda b: b[:-1]), 3,
    says="in.npy: expected an NPY file of numbers, got: ")
bad("npy: a header that is no dict", npy(matrix(), lambda b: b[:10] + b"x" * 118 + b[128:]), 3,
    says="in.npy: expected an NPY file of numbers, got: ")
bad("npy: nothing", raw(b"", "in.npy"), 3,
    says="in.npy: expected an NPY file of numbers, got: ")
bad("npy: a CSV", raw(sound_csv(), "in.npy"), 3,
    says="in.npy: expected an NPY file of numbers, got: ")
bad("npy: a zip of arrays", raw(b"PK\x03\x04" + bytes(60), "in.npy"), 3,
    says="in.npy: expected an NPY file of numbers, got: ")
bad("npy: a pickle", raw(b"\x80\x04cos\nsystem\n.", "in.npy"), 3,
    says="in.npy: expected an NPY file of numbers, got: ")
bad("npy: from stdin", lambda f: "-", 2, "--input-format", "npy",
    says="-: expected CSV, Arrow, JSON lines or LIBSVM on standard input, got npy: it cannot be piped")
# --- Arrow
bad("arrow: a null", ipc(b=[1.0, None] * 6), 3,
    says="in.arrow: row 2 (index 1), column 'b': expected a finite number, got null; --on-bad-rows drop")
bad("arrow: NaN", ipc(c=[1.0] * 11 + [float("nan")]), 3,
    says="in.arrow: row 12 (index 11), column 'c': expected a finite number, got nan; --on-bad-rows drop")
bad("arrow: text", ipc(b=["x"] * 12), 3,
    says="in.arrow: column 'b': expected numbers, got string")
bad("arrow: a missing column", ipc(b=None), 3,
    says="in.arrow: expected the column 'b', got a, c")
bad("arrow: cut in half", ipc(change=lambda b: b[: len(b) // 2]), 3,
    says="in.arrow: expected sound Arrow IPC, got: ")
bad("arrow: cut in its mark", ipc(change=lambda b: b[:7]), 3,
    says="in.arrow: expected sound Arrow IPC, got: ")
bad("arrow: a stream that is cut", ipc(change=lambda b: b[: len(b) // 2], stream=True), 3,
    says="in.arrow: expected sound Arrow IPC, got: ")
bad("arrow: nothing", raw(b"", "in.arrow"), 3,
    says="in.arrow: expected Arrow IPC, got bytes that start with b''")
bad("arrow: a CSV", raw(sound_csv(), "in.arrow"), 3,
    says="in.arrow: expected Arrow IPC, got bytes that start with b'a,b,c")
bad("arrow: Feather 1", raw(b"FEA1" + bytes(60), "in.feather"), 3,
    says="in.feather: expected Arrow IPC, got Feather of version 1; write it as version 2")
bad("arrow: metadata of 4 GB", raw(b"\xff\xff\xff\xff\xff\xff\xff\x7f" + bytes(60), "in.arrow"), 3,
    says="in.arrow: expected sound Arrow IPC, got: ")
bad("arrow: as CSV", ipc(stream=True), 3, "--input-format", "csv",
    says="in.arrow: expected CSV, but this looks like Arrow: --input-format arrow")
# --- LIBSVM
bad("libsvm: a word", libsvm("1 1:2 x"), 3,
    says="in.svm: row 13 (index 12): expected index:value, got 'x'; --on-bad-rows drop")
bad("libsvm: a word as a value", libsvm("1 1:x"), 3,
    says="in.svm: row 13 (index 12): expected a number after the index 1, got 'x'; --on-bad-rows drop")
bad("libsvm: no value", libsvm("1 1: 2:3"), 3,
    says="in.svm: row 13 (index 12): expected index:value, got '1:'; --on-bad-rows drop")
bad("libsvm: an index of 0", libsvm("1 0:2 1:3"), 3,
    says="in.svm: row 13 (index 12): expected an index from 1 to 2,147,483,647, got 0; --on-bad-rows drop")
bad("libsvm: an index below 0", libsvm("1 -1:2"), 3,
    says="in.svm: row 13 (index 12): expected index:value, got '-1:2'; --on-bad-rows drop")
bad("libsvm: an index with an exponent", libsvm("1 1e2:2"), 3,
    says="in.svm: row 13 (index 12): expected index:value, got '1e2:2'; --on-bad-rows drop")
bad("libsvm: descending indices", libsvm("1 2:2 1:3"), 3,
    says="in.svm: row 13 (index 12): expected ascending indices, got 1 after 2; --on-bad-rows drop")
bad("libsvm: an index twice", libsvm("1 2:2 2:3"), 3,
    says="in.svm: row 13 (index 12): expected ascending indices, got 2 after 2; --on-bad-rows drop")
bad("libsvm: an index beyond the map", libsvm("1 2:2 4:3"), 3,
    says="in.svm: row 13 (index 12): expected no index above 3, the width of the map, got 4; --on-bad-rows drop")
bad("libsvm: an index beyond all", libsvm("1 99999999999999:2"), 3,
    says="in.svm: row 13 (index 12): expected an index from 1 to 2,147,483,647, got 99999999999999; --on-bad-rows drop")
bad("libsvm: several labels", libsvm("1,2 1:2"), 3,
    says="in.svm: row 13 (index 12): expected one label, got '1,2'; --on-bad-rows drop")
bad("libsvm: no label", libsvm("1:2 2:3"), 3,
    says="in.svm: row 13 (index 12): expected a number as the label, got '1:2'; --on-bad-rows drop")
bad("libsvm: NaN", libsvm("1 1:2 3:nan"), 3,
    says="in.svm: row 13 (index 12), column 'features[2]': expected a finite number, got nan; --on-bad-rows drop")
bad("libsvm: inf", libsvm("1 1:-inf"), 3,
    says="in.svm: row 13 (index 12), column 'features[0]': expected a finite number, got -inf; --on-bad-rows drop")
bad("libsvm: beyond float32", libsvm("1 2:1e39"), 3,
    says="in.svm: row 13 (index 12), column 'features[1]': expected a finite number, got 1e+39, which overflows float32; --on-bad-rows drop")
bad("libsvm: Latin-1", libsvm("1 1:\xe9", encoding="latin-1"), 3,
    says="in.svm: row 13 (index 12): expected a number after the index 1, got '�'; --on-bad-rows drop")
bad("libsvm: a zero byte", libsvm("1 1:\0"), 3,
    says="expected the text of LIBSVM, got a NUL byte")
bad("libsvm: nothing", raw(b"", "in.svm"), 3,
    says="in.svm: expected rows, got an empty file")
bad("libsvm: a CSV", raw(sound_csv(), "in.svm"), 3,
    says="in.svm: row 1 (index 0): expected one label, got 'a,b,c'; --on-bad-rows drop")
bad("libsvm: keep the features", libsvm(), 2, "--keep", "all",
    says="in.svm: --keep: expected columns beside the sparse features, got features")
# --- SciPy's sparse matrices
bad("npz: CSC", sparse_npz(format=b"csc"), 3,
    says="in.npz: expected a CSR matrix, got b'csc'; save it .tocsr()")
bad("npz: dense arrays", sparse_npz(format=None, indices=None), 3,
    says="in.npz: expected a sparse matrix of scipy.sparse.save_npz, got a zip without one")
bad("npz: no indices", sparse_npz(indices=None), 3,
    says="in.npz: expected a sparse matrix of scipy.sparse.save_npz, got: ")
bad("npz: another width", sparse_npz(shape=[3, 4]), 3,
    says="in.npz: expected 3 feature columns, got 4")
bad("npz: a column beyond the width", sparse_npz(indices=[0, 3, 1]), 3,
    says="in.npz: indices: expected columns from 0 to 2, got others in rows 1 to 3")
bad("npz: a column below 0", sparse_npz(indices=[0, -1, 1]), 3,
    says="in.npz: indices: expected columns from 0 to 2, got others in rows 1 to 3")
bad("npz: rows that descend", sparse_npz(indptr=[0, 2, 1, 3]), 3,
    says="in.npz: indptr: expected ascending numbers up to 3, got others in rows 1 to 3")
bad("npz: rows beyond the entries", sparse_npz(indptr=[0, 1, 2, 9]), 3,
    says="in.npz: indptr: expected ascending numbers up to 3, got others in rows 1 to 3")
bad("npz: rows that begin late", sparse_npz(indptr=[1, 2, 3, 3]), 3,
    says="in.npz: indptr: expected to begin with 0, got 1")
bad("npz: fewer indices than data", sparse_npz(indices=[0, 1]), 3,
    says="in.npz: expected 4 numbers in indptr and as many in indices as in data, got 4, 2 and 3")
bad("npz: a shape of terabytes", sparse_npz(shape=[1 << 45, 3]), 3,
    says="in.npz: expected 35,184,372,088,833 numbers in indptr")
bad("npz: a shape below 0", sparse_npz(shape=[-3, 3]), 3,
    says="in.npz: expected from 1 to 2,147,483,647 columns, got the shape (-3, 3)")
bad("npz: objects", sparse_npz(data=np.array([1, "x", None], dtype=object)), 3,
    says="in.npz: data: expected a vector of numbers, got object of shape (3,)")
bad("npz: complex numbers", sparse_npz(data=np.ones(3, complex)), 3,
    says="in.npz: expected a sparse matrix of numbers, got dtype complex128")
bad("npz: NaN", sparse_npz(data=[1.0, np.nan, 2.0]), 3,
    says="in.npz: row 2 (index 1), column 'features[1]': expected a finite number, got nan; --on-bad-rows drop")
bad("npz: cut in half", sparse_npz(change=lambda b: b[: len(b) // 2]), 3,
    says="in.npz: expected a sparse matrix of scipy.sparse.save_npz, got: File is not a zip file")
bad("npz: other bytes within", sparse_npz(change=lambda b: b.replace(np.array([1.5]).tobytes(), b"12345678")), 3,
    says="in.npz: expected a sparse matrix of scipy.sparse.save_npz, got: Bad CRC-32")
bad("npz: nothing", raw(b"", "in.npz"), 3,
    says="in.npz: expected a sparse matrix of scipy.sparse.save_npz, got: File is not a zip file")
# --- JSON lines
bad("jsonl: an object in an object", jsonl('{"a": 1, "b": {"x": 2}, "c": 3}'), 3,
    says="in.jsonl: row 13 (index 12): key 'b': expected a plain value, got an object; flatten it first")
bad("jsonl: an array that no feature needs", jsonl('{"a": 1, "b": 2, "c": 3, "d": [1]}'), 3,
    says="in.jsonl: row 13 (index 12): key 'd': expected a plain value, got an array; flatten it first")
bad("jsonl: a key twice", jsonl('{"a": 1, "b": 2, "c": 3, "b": 2}'), 3,
    says="in.jsonl: row 13 (index 12): key 'b': expected one value, got 2")
bad("jsonl: a key that is absent", jsonl('{"a": 1, "c": 3}'), 3,
    says="in.jsonl: row 13 (index 12), column 'b': expected a finite number, got null; --on-bad-rows drop")
bad("jsonl: a word", jsonl('{"a": 1, "b": "x", "c": 3}'), 3,
    says="in.jsonl: row 13 (index 12), column 'b': expected a number, got 'x'; --on-bad-rows drop")
bad("jsonl: NaN", jsonl('{"a": 1, "b": NaN, "c": 3}'), 3,
    says="in.jsonl: row 13 (index 12): expected a number or null, got NaN, which JSON does not have")
bad("jsonl: a number beyond all", jsonl('{"a": 1, "b": 1e999, "c": 3}'), 3,
    says="in.jsonl: row 13 (index 12), column 'b': expected a finite number, got 1e999; --on-bad-rows drop")
bad("jsonl: cut short", jsonl('{"a": 1, "b": 2'), 3,
    says="in.jsonl: row 13 (index 12): expected JSON, got the end of the line at character 16 (Expecting ',' delimiter)")
bad("jsonl: two objects in a line", jsonl('{"a": 1} {"b": 2}'), 3,
    says="in.jsonl: row 13 (index 12): expected JSON, got '{\"b\": 2}' at character 10 (Extra data)")
bad("jsonl: Latin-1", jsonl('{"a": 1, "b": "é", "c": 3}', encoding="latin-1"), 3,
    says="in.jsonl: row 13 (index 12): expected UTF-8 text, got b'\\xe9\", ' (byte 16); iconv converts it")
bad("jsonl: one array", raw(b'[{"a": 1}]\n', "in.jsonl"), 3,
    says="in.jsonl: row 1 (index 0): expected a JSON object, got '[{\"a\": 1}]'; jq -c writes an object a line")
bad("jsonl: nothing", raw(b"", "in.jsonl"), 3, says="in.jsonl: expected the columns 'a', 'b', 'c', got none")
bad("jsonl: named as CSV", raw(b'{"a": 1, "b": 2}\n'), 3,
    says="; are these JSON lines (--input-format jsonl)?")
bad("a layout of tensors", text(), 2, "--layout", "tensor", out="out.parquet",
    says="'tensor' is not one of 'columns', 'list'")
bad("npz: on standard output", text(), 2, "--output-format", "npz", out="-",
    says="-: expected CSV, Arrow, JSON lines or LIBSVM on standard output, got npz; name a file")
bad("npz: null rows", text(), 2, "--on-bad-rows", "null", out="out.npz",
    says="out.npz: expected --on-bad-rows error or drop for NPZ, got null: sparse rows have no nulls")
bad("libsvm: two labels", text(), 2, "--keep", "a,b", out="out.svm",
    says="out.svm: expected one passthrough column in LIBSVM, its label, got a, b")
# --- what a step refuses
bad("chi2: a negative value", text("1,-2,3"), 3, model="chi2",
    says="in.csv: row 13 (index 12), column 'b': expected a value of at least 0, got -2; --on-bad-rows drop")
bad("chi2: a negative value in NPY", npy(matrix(r4c0=-1.0)), 3, model="chi2",
    says="in.npy: row 5 (index 4), column 'c0': expected a value of at least 0, got -1; --on-bad-rows drop")
bad("skewed: below minus the skewedness", text("1,-2,3"), 3, model="skewed",
    says="in.csv: row 13 (index 12), column 'b': expected a value above -skewedness = -1, got -2; --on-bad-rows drop")
bad("log1p: below -1", text("1,-2,3"), 3, model="log1p",
    says="in.csv: row 13 (index 12), column 'b': expected a value above -1, got -2; --on-bad-rows drop")
bad("overflow in a polynomial", text("1,1e20,3"), 3, model="polynomial",
    says="in.csv: row 13 (index 12): expected features that float32 can hold, got inf: scale the input, or fit with dtype: float64; --on-bad-rows drop")
bad("overflow behind a scaler", text("1,3e38,3"), 3, model="scaled",
    says="in.csv: row 13 (index 12), column 'b': after standardize: expected a value that float32 can hold, got 6.08334e+38: scale the input, or fit with dtype: float64; --on-bad-rows drop")
bad("one_hot: an unknown category", text(head="a,b,c"), 3, model="one_hot",
    says="in.csv: row 1 (index 0), column 'b': expected one of the 2 categories of the fit, got '0.0'; one_hot with unknown: ignore accepts others; --on-bad-rows drop")
bad("a missing number with no impute", text("1,,3"), 3, model="plain",
    says="in.csv: row 13 (index 12), column 'b': expected a finite number, got null; --on-bad-rows drop")
bad("a word with impute", text("1,x,3"), 3, model="impute",
    says="in.csv: row 13 (index 12), column 'b': expected a number, got 'x'; --null-values names words for what is missing; --on-bad-rows drop")
bad("an infinity with impute", text("1,inf,3"), 3, model="impute",
    says="in.csv: row 13 (index 12), column 'b': expected a finite number, got inf; --on-bad-rows drop")
# --- options
bad("keep: no such column", text(), 3, "--keep", "d",
    says="in.csv: --keep: expected the column 'd', got a, b, c")
bad("keep: the name of a feature", raw(b"a,b,c,f0\n1,2,3,4\n"), 2, "--keep", "f0",
    says="out.npy: expected passthrough columns with other names than the features, got f0; choose another prefix for the features")
bad("keep: columns in NPY", text(), 2, "--keep", "a", out="out.npy",
    says="out.npy: expected no passthrough columns in NPY, got a")
bad("layout: lists in CSV", text(), 2, "--layout", "list", out="out.csv",
    says="out.csv: expected the columns layout for CSV, got list; Parquet, Arrow and JSON lines hold lists")
bad("compression: zstd of NPY", text(), 2, "--compression", "zstd", out="out.npy",
    says="out.npy: expected no compression for NPY, got 'zstd'")
bad("compression: snappy of CSV", text(), 2, "--compression", "snappy", out="out.csv",
    says="out.csv: expected a compression of none, gzip or zstd for CSV, got 'snappy'")
bad("output: an unknown suffix", text(), 2, out="out.xyz",
    says="out.xyz: expected a name that ends in one of .csv, .csv.gz, .csv.zst, .tsv, .tsv.gz, .tsv.zst, .parquet, .pq, .npy, .arrow, .arrows, .feather, .ipc, .jsonl, .ndjson, .libsvm, .svmlight, .svm, .npz; else name the format with --output-format")
bad("output: no suffix", text(), 2, out="out",
    says="out: expected a name that ends in one of .csv, .csv.gz, .csv.zst, .tsv, .tsv.gz, .tsv.zst, .parquet, .pq, .npy, .arrow, .arrows, .feather, .ipc, .jsonl, .ndjson, .libsvm, .svmlight, .svm, .npz; else name the format with --output-format")
bad("output: no such folder", text(), 5, out="no/such/out.npy",
    says="no/such/out.npy: expected a folder no/such, got none: make it first (mkdir -p)")
bad("output: a folder", text(), 5, out="folder.npy",
    says="folder.npy: expected a file, got a directory")
bad("output: the input", text(), 2, out="in.csv",
    says="in.csv: expected an output apart from the input, got the same file")
bad("output: the model", text(), 2, "--output-format", "npy", out="plain.joblib",
    says="plain.joblib: expected an output apart from the model, got the same file")
bad("output: there already", text(), 2, "--no-clobber", out="out.npy",
    says="out.npy: expected no file of that name, got one; allow it to be replaced (--overwrite, in Python overwrite=True), or name another")
bad("output: Parquet on stdout", text(), 2, "--output-format", "parquet", out="-",
    says="-: expected CSV, Arrow, JSON lines or LIBSVM on standard output, got parquet; name a file")
bad("jobs: 0", text(), 2, "--jobs", "0",
    says="Invalid value for '--jobs' / '-j': 0 is not in the range 1<=x<=4096.")
bad("max-drift: 2", text(), 2, "--max-drift", "2",
    says="Invalid value for '--max-drift': 2.0 is not in the range 0.0<=x<=1.0.")
bad("max-drift: too much", text("99,99,99"), 6, "--max-drift", "0.05",
    says="in.csv: expected at most 5.00% of a column outside of the range of the fit (--max-drift), got 'c' 7.69%, 'b' 7.69%, 'a' 7.69%")
bad("rejects without a rule", text(), 2, "--rejects", "why.csv",
    says="--rejects: expected --on-bad-rows drop or null with it, got error")
bad("max-bad-rows: too many", text("1,x,3", "1,2"), 3, "--max-bad-rows", "1", "--on-bad-rows", "drop",
    says="in.csv: expected at most 1 bad row (--max-bad-rows), got 2 of 14; the first is row 13 (index 12), column 'b': expected a number, got 'x'")
bad("max-bad-rows without a rule", text(), 2, "--max-bad-rows", "1%",
    says="--max-bad-rows: expected --on-bad-rows drop or null with it, got error")
bad("max-bad-rows: a word", text(), 2, "--max-bad-rows", "few", "--on-bad-rows", "drop",
    says="--max-bad-rows: expected a number of rows such as 10, or a percentage such as 0.5%, got 'few'")
bad("rejects: the output", text(), 2, "--rejects", "out.npy", "--on-bad-rows", "drop",
    says="out.npy: expected an output apart from --rejects, got the same file")
bad("stats: the output", text(), 2, "--stats", "out.npy",
    says="out.npy: expected an output apart from --stats, got the same file")
bad("stats: no such folder", text(), 5, "--stats", "no/such/stats.json",
    says="no/such/stats.json: expected a folder no/such, got none: make it first (mkdir -p)")
bad("float16 that overflows", text("1,1e20,3"), 3, "--output-dtype", "float16", model="linear",
    says="in.csv: row 13 (index 12): expected features that float16 can hold, got 5.7735e+19: choose a wider --output-dtype, or scale the input; --on-bad-rows drop")
bad("model: no such file", text(), 5, model="none",
    says="none.joblib: No such file or directory")
bad("model: a CSV", text(), 4, model="text",
    says="text.joblib: expected a kafeat model, got a file without its closing checksum: it is cut short, or no model (`kafeat fit` makes one)")
bad("model: a pickle", text(), 4, model="pickle",
    says="pickle.joblib: expected a kafeat model, got a file without its closing checksum: it is cut short, or no model (`kafeat fit` makes one)")
# fmt: on


def steps(*kinds):
    return {"steps": [{"kind": kind} if isinstance(kind, str) else kind for kind in kinds]}


FOURIER = {"kind": "fourier", "n_components": 8, "frequencies": "iid"}
MAPS = {
    "plain": steps(FOURIER),
    "chi2": steps("homogeneous"),
    "skewed": steps({"kind": "skewed", "n_components": 4, "skewedness": 1.0}),
    "log1p": steps("log1p", FOURIER),
    "polynomial": steps({"kind": "polynomial_features", "degree": 2}),
    "scaled": steps("standardize", {"kind": "polynomial_features", "degree": 1}),
    "impute": steps("impute", FOURIER),
    "linear": steps({"kind": "polynomial_features", "degree": 1}),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    table = pa.table({name: [row[i] for row in ROWS] for i, name in enumerate("abc")})
    for name, config in MAPS.items():
        kafeat.fit(config, table).save(folder / f"{name}.joblib")
    coded = steps({"kind": "one_hot", "columns": ["b"]}, FOURIER)
    kafeat.fit(coded, table.set_column(1, "b", pa.array(["x", "y"] * 6))).save(folder / "one_hot.joblib")
    (folder / "text.joblib").write_text("a,b\n1,2\n")
    (folder / "pickle.joblib").write_bytes(pickle.dumps({"format": 1}))
    return folder


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_bad_input(case, models, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = case.make(tmp_path)
    if case.out == "folder.npy":
        (tmp_path / case.out).mkdir()
    elif "/" not in case.out and case.out not in ("-", "in.csv", "plain.joblib"):
        (tmp_path / case.out).write_bytes(b"previous")
    model = tmp_path / f"{case.model}.joblib"
    if (models / model.name).exists():
        model.write_bytes((models / model.name).read_bytes())
    before = {name: _content(name) for name in sorted(os.listdir())}
    arguments = ["transform", "--model", model.name, source, case.out, *case.options]
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


def test_the_table_is_long():
    assert len(CASES) >= 140
    assert len({case.name for case in CASES}) == len(CASES)
