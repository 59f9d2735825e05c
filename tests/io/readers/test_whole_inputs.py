"""No row vanishes: rows are counted against what a file promises, and a file stays as it is while it is read."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import kafeat
from kafeat.errors import DataError
from kafeat.io.columns.columns import Column, Columns
from kafeat.io.data_set import Part
from kafeat.io.options import InputOptions
from kafeat.io.storage.location import parse_location
from kafeat.jobs.fit.fit import fit_reader
from kafeat.jobs.fit.messages import Listener
from kafeat.model.feature_map import FeatureMap
from tests.io.tables import open_reader
from tests.jobs.files import transform_file

ROWS, FEWER, MORE = 40_000, 24_000, 42_000


@pytest.fixture(scope="module")
def fm() -> FeatureMap:
    config = {"chunk_rows": 256, "steps": [{"kind": "projection", "n_components": 1}]}
    return kafeat.fit(config, pa.table({"a": [1.0, 2.0], "b": [1.0, 0.0]}))


def table() -> pa.Table:
    return pa.table({"a": np.arange(float(ROWS)), "b": np.arange(float(ROWS))})


def few() -> pa.Table:
    return table().slice(0, 4096)


def write_parquet(path: Path) -> None:
    plain = {"use_dictionary": False, "write_statistics": False, "compression": None}
    pq.write_table(table(), path, row_group_size=ROWS // 2, **plain)


def varint(number: int) -> bytes:
    """A whole number as Thrift's compact protocol writes it."""
    number, out = 2 * number, bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def places(data: bytes, number: int) -> tuple[list[int], list[int]]:
    """Positions of that number in the headers of pages and in the footer."""
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    found = [match.start() for match in re.finditer(re.escape(varint(number)), data)]
    return [at for at in found if at < footer], [at for at in found if at >= footer]


def lying(
    path: Path, *, rows: int | None = None, groups: int | None = None, pages: int | None = None
) -> None:
    """Let the footer promise other rows in the file, or in each of its two groups, or pages hold other values."""
    write_parquet(path)
    data = bytearray(path.read_bytes())
    (_, [whole]), (in_pages, in_groups) = places(data, ROWS), places(data, ROWS // 2)
    # what else has that number: of a page the levels behind its head, of a column its encodings
    new = {whole: rows} | dict.fromkeys(in_groups[4::5], groups) | dict.fromkeys(in_pages[::2], pages)
    for at, number in new.items():
        if number is not None:
            assert len(varint(number)) == 3
            data[at : at + 3] = varint(number)
    path.write_bytes(data)


@pytest.mark.parametrize("ending", ["arrow", "csv", "npy"])
@pytest.mark.parametrize(("lie", "message"), [
    ({"rows": FEWER}, f"expected {FEWER:,} rows in its row groups, as in the footer, got {ROWS:,}"),
    ({"groups": FEWER // 2}, f"expected {ROWS:,} rows in its row groups, as in the footer, got {FEWER:,}"),
    ({"pages": FEWER // 2}, f"expected {ROWS:,} rows, as the file says, got {FEWER:,}"),
    ({"rows": MORE, "groups": MORE // 2}, "column 'a': expected 21,000 values in row group 1, .* got 20,000"),
    ({"rows": FEWER, "groups": FEWER // 2}, "column 'a': expected 12,000 values in row group 1, .* got 20,000"),
])  # fmt: skip
def test_a_footer_that_promises_other_rows_is_refused(fm, tmp_path, lie, message, ending):
    lying(tmp_path / "in.parquet", **lie)
    with pytest.raises(DataError, match=f"in.parquet: {message}"):
        transform_file(fm, tmp_path / "in.parquet", tmp_path / f"out.{ending}")
    assert os.listdir(tmp_path) == ["in.parquet"]


def written(path: Path, rows: pa.Table) -> str:
    """A file of these rows, in the format that its name tells."""
    ending = path.suffix
    if ending == ".parquet":
        pq.write_table(rows, path, row_group_size=4096, compression=None, use_dictionary=False)
    elif ending == ".csv":
        pa_csv.write_csv(rows, path)
    elif ending == ".npy":
        X = np.column_stack([column.to_numpy() for column in rows.columns])
        np.save(path, np.asfortranarray(X) if ".f." in path.name else X)
    elif ending == ".npz":
        sparse.save_npz(path, sparse.csr_matrix(np.column_stack([c.to_numpy() for c in rows.columns])))
    else:
        new = pa.ipc.new_file if ending == ".arrow" else pa.ipc.new_stream
        with new(path, rows.schema) as writer:
            writer.write_table(rows, max_chunksize=4096)
    return str(path)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.9])
@pytest.mark.parametrize("ending", ["parquet", "npy", "f.npy", "arrow", "arrows", "npz"])
def test_a_file_that_is_cut_while_it_is_read_is_refused(tmp_path, ending, share):
    path = written(tmp_path / f"in.{ending}", table())
    with open_reader(path) as source:
        chunks = source.chunks(
            Columns((Column(source.fields[0].name, source.fields[0].width),), False, None), [], 256
        )
        rows = next(chunks).rows
        os.truncate(path, int(share * os.path.getsize(path)))
        with pytest.raises(DataError, match=rf"in.{ending}: "):
            rows += sum(len(chunk.matrix(np.dtype("f8"))) for chunk in chunks)
    assert rows < ROWS


class Changing:
    """Told of every chunk that is done: does something to the input after the first."""

    def __init__(self, change: Callable[[], object]) -> None:
        self._change, self._done = change, False

    def __call__(self, _rows: int) -> None:
        if not self._done:
            self._done = True
            self._change()


@pytest.mark.parametrize("how", ["in place", "replaced", "grown", "removed"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "npy", "arrow"])
def test_an_input_that_changes_is_refused_and_the_output_stays_what_it_was(fm, tmp_path, ending, how):
    path, out = tmp_path / f"in.{ending}", tmp_path / "out.csv"
    written(path, few())
    out.write_text("the last one\n")

    def change() -> None:
        if how == "in place":
            data = path.read_bytes()
            with path.open("r+b") as file:  # a row near the end becomes another, and no size tells
                file.seek(len(data) // 10 * 9)
                file.write(data[len(data) // 10 * 9 :])
        elif how == "grown":
            with path.open("ab") as file:
                file.write(b"1,2\n")
        elif how == "replaced":
            os.replace(written(tmp_path / f"new.{ending}", few()), path)
        else:
            path.unlink()

    told = rf"in.{ending}: expected a file that stays as it is, got one that changed"
    with pytest.raises(DataError, match=told):
        asked = {"on_bad_rows": "drop", "rejects": tmp_path / "rejects.csv"}
        asked["hashed"] = how != "removed"  # there is nothing to hash
        transform_file(fm, path, out, announce=lambda _rows: Changing(change), **asked)
    assert out.read_text() == "the last one\n"
    assert not (tmp_path / "rejects.csv").exists()


def test_a_part_must_be_the_file_that_was_listed(fm, tmp_path):
    path = written(tmp_path / "in.csv", few())
    listed = Part.of(parse_location(path))
    written(tmp_path / "in.csv", table())
    with pytest.raises(DataError, match=r"in.csv: expected a file that stays as it is, got one that changed"):
        transform_file(fm, listed, tmp_path / "out.npy")


@pytest.mark.parametrize("name", ["in.csv", "in"])
def test_a_fit_refuses_a_file_that_changes(fm, tmp_path, name):
    (tmp_path / "in").mkdir()
    for place in ("in.csv", "in/a.csv"):
        written(tmp_path / place, few())
    change = Changing(lambda: [os.utime(tmp_path / place) for place in ("in.csv", "in/a.csv")])
    with (
        InputOptions().open(parse_location(tmp_path / name)) as source,
        pytest.raises(DataError, match=r".csv: expected a file that stays as it is, got one that changed"),
    ):
        fit_reader(fm.config, source, None, listener=Listener(rows=change))


def test_a_fit_counts_the_rows_of_every_part(fm, tmp_path):
    (tmp_path / "in").mkdir()
    written(tmp_path / "in/a.parquet", few())
    lying(tmp_path / "in/b.parquet", pages=FEWER // 2)
    told = f"b.parquet: expected {ROWS:,} rows, as the file says, got {FEWER:,}: it is"
    with pytest.raises(DataError, match=told):
        kafeat.fit(fm.config, tmp_path / "in")


def test_an_evaluation_sees_one_and_the_same_file(fm, tmp_path):
    path = written(tmp_path / "in.csv", few())
    with pytest.raises(DataError, match=r"in.csv: expected a file that stays as it is, got one that changed"):
        kafeat.evaluate(fm, path, rows=100, exact_rows=100, say=lambda _step: os.utime(path))
