"""A NUL byte is refused in every text, wherever it stands, and no CSV is written with one."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import DataError

MAP = kafeat.fit({"columns": {"include": ["x"]}, "steps": ["standardize"]}, pa.table({"x": [1.0, 2.0]}))
LINES = {
    "csv": (b"x,id\n", b"1.0,some text\n"),
    "csv.gz": (b"x,id\n", b"1.0,some text\n"),
    "jsonl": (b"", b'{"x":1.0,"id":"some text"}\n'),
}


@pytest.mark.parametrize("suffix", LINES)
@pytest.mark.parametrize(("looks", "more"), [(0.0, 20), (1.0, -1), (1.0, 0), (1.0, 5), (1.5, 0)])
def test_a_nul_is_refused_wherever_it_is(tmp_path, short_look, suffix, looks, more):
    """Arrow takes it as a character of a text. The column with it need not be read."""
    head, line = LINES[suffix]
    text, place = bytearray(head + line * (2 * short_look // len(line))), int(looks * short_look) + more
    text[place] = 0
    source = tmp_path / f"in.{suffix}"
    source.write_bytes(gzip.compress(text, 1) if suffix.endswith(".gz") else text)
    for rule in ("error", "drop"):
        told = rf"in.{suffix}: byte {place}: expected UTF-8 text, got a NUL byte"
        with pytest.raises(DataError, match=told):
            kafeat.transform(source, tmp_path / "out.npy", model=MAP, on_bad_rows=rule)
    assert not (tmp_path / "out.npy").exists()


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int8(), pa.large_string())])
def test_no_csv_has_a_nul(tmp_path, kind):
    table = pa.table({"x": [1.0, 2.0], "id": pa.array(["a", "b\0c"]).cast(kind)})
    source = tmp_path / "in.parquet"
    pq.write_table(table, source)
    message = r"row 2 \(index 1\), column 'id': expected a \w+ that CSV can hold, got 'b\\x00c'; leave it out"
    with pytest.raises(DataError, match=message):
        kafeat.transform(source, tmp_path / "out.csv", model=MAP, keep=["id"])
    kafeat.transform(source, tmp_path / "out.jsonl", model=MAP, keep=["id"])
    assert '"b\\u0000c"' in (tmp_path / "out.jsonl").read_text()
