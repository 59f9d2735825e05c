"""Rows of nulls in the places of rows with too few or too many fields, whenever the reader tells of them."""

from types import SimpleNamespace

import pyarrow as pa
import pytest

from kafeat.io.readers.csv import WrongWidthRows


def batch(*values):
    return pa.RecordBatch.from_pydict({"a": pa.array(values, pa.string())})


def invalid(ragged, number):
    row = SimpleNamespace(number=number, expected_columns=1, actual_columns=2, text=f"text {number}")
    assert ragged.take(row) == "skip"


@pytest.mark.parametrize("late", [False, True])
def test_rows_of_nulls_stand_where_the_rows_stood(late):
    problems = {}
    ragged = WrongWidthRows(problems)

    def batches():
        invalid(ragged, 1)
        invalid(ragged, 4)
        yield batch("b", "c")
        invalid(ragged, 6)
        invalid(ragged, 7)
        yield batch("e", "h")
        invalid(ragged, 9)
        if not late:
            yield batch()

    found = [
        value
        for piece in ragged.with_null_rows(batches(), batch().schema)
        for value in piece.column(0).to_pylist()
    ]
    assert found == [None, "b", "c", None, "e", None, None, "h", None]
    assert problems[3] == ("expected 1 fields, got 2", "text 4")
