"""A view of some rows of a reader leaves the reader as it is, and rows set aside are an argument of one call."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafeat.errors import DataError, UsageError
from kafeat.io.columns.selection import choose
from tests.io.tables import open_reader

X = np.arange(200.0).reshape(100, 2)


def _rows(reader):
    columns = choose(reader, None, [], ())
    return [(chunk.start, chunk.matrix(np.dtype("f8")).tolist()) for chunk in reader.chunks(columns, [], 30)]


@pytest.mark.parametrize("name", ["x.npy", "x.parquet"])
def test_a_view_has_its_rows_and_the_reader_keeps_all(tmp_path, name):
    path = tmp_path / name
    if name.endswith(".npy"):
        np.save(path, X)
    else:
        pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), path, row_group_size=40)
    with open_reader(path) as reader:
        first, second = reader.select_rows(35, 70), reader.select_rows(0, 10)
        assert _rows(first) == [(35, X[35:65].tolist()), (65, X[65:70].tolist())]
        assert _rows(second) == [(0, X[:10].tolist())]
        assert (reader.rows, first.rows, second.rows) == (100, 35, 10)
        assert sum(len(rows) for _, rows in _rows(reader)) == 100


def test_rows_of_text_cannot_be_selected(tmp_path):
    (tmp_path / "x.csv").write_text("a\n1\n")
    refused = pytest.raises(UsageError, match="expected Parquet or NPY, whose rows can be found directly")
    with open_reader(tmp_path / "x.csv") as reader, refused:
        reader.select_rows(0, 1)


def test_set_aside_holds_for_one_call(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3\n4,5\n")
    with open_reader(tmp_path / "x.csv") as reader:
        columns = choose(reader, None, [], ())
        [chunk] = reader.chunks(columns, [], 10, set_aside=True)
        X, sound = chunk.decode(np.dtype("f8"))
        assert not sound
        [invalid] = chunk.invalid_values(X)
        assert (invalid.row, invalid.problem) == (1, "expected 2 fields, got 1")
        with pytest.raises(DataError, match=r"row 2 \(index 1\): expected 2 fields, got 1"):
            list(reader.chunks(columns, [], 10))


def test_a_reader_with_settled_widths_is_another_view(tmp_path):
    (tmp_path / "x.svm").write_text("1 1:2 7:3\n0 2:1\n")
    with open_reader(tmp_path / "x.svm") as reader:
        before = reader.fields
        view = reader.settled()
        assert (reader.fields, [field.width for field in view.fields]) == (before, [None, 7])
        assert reader.settled().fields == view.fields
