import gzip
import hashlib
import subprocess
import sys
import tempfile
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kafeat.io.readers.memory import reader_of
from kafeat.io.readers.table import cut
from tests.io.tables import every_format, open_reader, read

SMALL = st.tuples(st.integers(1, 20), st.integers(1, 4))


@settings(max_examples=10)
@given(hnp.arrays(np.float64, SMALL, elements=st.floats(-3e38, 3e38)), st.integers(1, 25))
def test_formats_agree_to_the_bit_at_every_height(X, height):
    with tempfile.TemporaryDirectory() as folder:
        for path in every_format(Path(folder), X):
            assert read(path, "float64", height).tobytes() == X.tobytes(), path
            assert read(path, "float32", height).tobytes() == X.astype(np.float32).tobytes(), path


@settings(max_examples=10)
@given(
    st.sampled_from([np.int64, np.uint64, np.int8, np.float16, np.float32, np.bool_]).flatmap(
        lambda dtype: hnp.arrays(
            dtype,
            SMALL,
            elements={"allow_nan": False, "allow_infinity": False} if dtype(0.5) == 0.5 else None,
        )
    )
)
def test_every_type_goes_through_float64(X):
    truth = X.astype(np.float64)
    with tempfile.TemporaryDirectory() as folder:
        for path in every_format(Path(folder), X):
            assert read(path, "float64").tobytes() == truth.tobytes(), path
            assert read(path, "float32").tobytes() == truth.astype(np.float32).tobytes(), path
    assert read(reader_of(X)).tobytes() == truth.tobytes()


@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 12))
def test_cut_gives_whole_chunks_at_fixed_rows(sizes, height):
    whole = np.arange(sum(sizes))
    edges = np.cumsum([0, *sizes])
    pieces = [pa.record_batch({"i": whole[a:b]}) for a, b in pairwise(edges)]
    got = list(cut(pieces, height))
    assert [start for start, _ in got] == list(range(0, len(whole), height))
    assert all(table.num_rows == height for _, table in got[:-1])
    assert [i for _, table in got for i in table["i"].to_pylist()] == whole.tolist()


TYPES = {
    "decimal": pa.array(["0.1", "-3.30", "7"]).cast(pa.decimal128(38, 20)),
    "large decimal": pa.array(list(map(Decimal, ("0.1", "-3.3", "7"))), pa.decimal256(60, 3)),
    "dictionary": pa.array([0.1, -3.3, 7]).dictionary_encode(),
    "nested list": pa.array([[0.1], [-3.3], [7]], pa.list_(pa.float64(), 1)),
    "variable list": pa.array([[0.1], [-3.3], [7]], pa.list_(pa.float64())),
    "large list": pa.array([[0.1], [-3.3], [7]], pa.large_list(pa.float64())),
}


@pytest.mark.parametrize("name", TYPES)
def test_arrow_types(name):
    table = pa.table({"x": TYPES[name]})
    assert read(reader_of(table)).ravel().tolist() == [0.1, -3.3, 7]
    assert read(reader_of(table.slice(1))).ravel().tolist() == [-3.3, 7]


def test_csv_bools_delimiters_and_headers(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"true;2\nFALSE;4\n")
    with open_reader(tmp_path / "a.csv", delimiter=";", no_header=True) as source:
        assert [field.name for field in source.fields] == ["c0", "c1"]
        assert source.positional
        assert read(source).tolist() == [[1, 2], [0, 4]]
    (tmp_path / "c.csv").write_bytes(b'"a",b\n 1 ,+2\n-3,"4"')
    assert read(tmp_path / "c.csv").tolist() == [[1, 2], [-3, 4]]
    (tmp_path / "a.tsv").write_bytes(b"a\tb\n1\t2\n")
    assert read(tmp_path / "a.tsv").tolist() == [[1, 2]]
    (tmp_path / "b.csv").write_bytes(b"a\tb\n1\t2\n")
    for spelled in ("\t", "\\t", "tab"):
        with open_reader(tmp_path / "b.csv", delimiter=spelled) as source:
            assert read(source).tolist() == [[1, 2]]


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


def skipped(size: int, kind: int = 0) -> bytes:
    """A frame that decoders pass over: `pzstd` writes one before each of its frames."""
    return bytes([0x50 + kind, 0x2A, 0x4D, 0x18]) + size.to_bytes(4, "little") + b"x" * size


HALVES = b"a,b\n1,2\n3,", b"4\n5,6\n"


@pytest.mark.parametrize("packed", [
    b"".join(map(gzip.compress, HALVES)),
    b"".join(map(gzip.compress, [b"", HALVES[0], b"", HALVES[1], b"", b""])),
    b"".join(map(zstd, HALVES)),
    b"".join(map(zstd, [b"", HALVES[0], b"", HALVES[1], b""])),
    skipped(4) + zstd(HALVES[0]) + skipped(0, 15) + skipped(100_000) + zstd(HALVES[1]) + skipped(9, 14),
], ids=["members", "empty members", "frames", "empty frames", "skippable frames"])  # fmt: skip
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_packed_text_may_come_in_pieces(tmp_path, packed, name):
    (tmp_path / name).write_bytes(packed)
    assert read(tmp_path / name).tolist() == [[1, 2], [3, 4], [5, 6]]


def test_rows_longer_than_the_first_look(tmp_path, short_look):
    X = np.arange(4 * 500).reshape(4, -1)
    (tmp_path / "a.csv").write_text("\n".join(",".join(f"{x:050d}" for x in row) for row in X))
    assert (tmp_path / "a.csv").stat().st_size > 5 * short_look
    with open_reader(tmp_path / "a.csv", no_header=True) as source:
        assert np.array_equal(read(source), X)


def test_digest_is_what_sha256sum_prints(tmp_path):
    for path in every_format(tmp_path, np.ones((3, 2))):
        with open_reader(path) as source:
            assert source.digest() == hashlib.sha256(path.read_bytes()).hexdigest()


def test_digest_of_memory_depends_on_content_only():
    table = pa.table({"a": range(5)})
    pieces = pa.concat_tables([table.slice(0, 2), table.slice(2)])
    assert reader_of(table).digest() == reader_of(pieces).digest() != reader_of(table.slice(1)).digest()
    X = np.arange(6.0).reshape(2, 3)
    assert reader_of(X).digest() == reader_of(np.asfortranarray(X)).digest() != reader_of(X.T).digest()


def test_parquet_does_not_load_csv():
    code = "import sys, kafeat.io.readers.parquet, kafeat.io.formats; sys.exit('pyarrow.csv' in sys.modules)"
    subprocess.run(
        [sys.executable, "-c", code], check=True
    )  # what is imported shows in a fresh process alone
