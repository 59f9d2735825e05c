"""Labels are numbers or text, however Arrow stores them; a missing one is refused with its row."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.errors import DataError
from kafeat.io.columns.columns import Columns
from kafeat.io.readers.memory import reader_of
from kafeat.jobs.fit.labels import read_label
from kafeat.types import Array


def coded(values: pa.Array, codes: list[int | None]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), values)


def label_of(column: pa.Array) -> Array:
    source = reader_of(pa.table({"y": column}))
    [chunk] = source.chunks(Columns((), False, None), ["y"], 100)
    return read_label(chunk, "y")


@pytest.mark.parametrize(("column", "expected"), [
    (pa.array([True, False, True]), [True, False, True]),
    (pa.array([1, 2, 3], pa.uint64()), [1, 2, 3]),
    (pa.array(np.array([1.5, 2.0, 3.0], np.float16)), [1.5, 2.0, 3.0]),
    (pa.array([Decimal("1.5"), Decimal("2.5"), Decimal("0.1")]), [1.5, 2.5, 0.1]),
    (pa.array(["a", "b", "a"]).cast(pa.string_view()), ["a", "b", "a"]),
    (coded(pa.array(["a", "b", None]), [0, 1, 0]), ["a", "b", "a"]),
    (coded(pa.array(["a", "b"]).cast(pa.string_view()), [0, 1, 0]), ["a", "b", "a"]),
    (coded(pa.array([5, 6, None]), [0, 1, 0]), [5, 6, 5]),
    (coded(pa.array([Decimal("1.5"), Decimal("2.5")]), [0, 1, 0]), [1.5, 2.5, 1.5]),
    (pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", "b"])), ["a", "a", "b"]),
])  # fmt: skip
def test_a_label_is_what_its_column_stands_for(column, expected):
    assert label_of(column).tolist() == expected


@pytest.mark.parametrize("column", [
    pa.array(["a", None, "b"]),
    pa.array([1.0, None, 2.0]),
    coded(pa.array(["a", "b"]), [0, None, 1]),
    coded(pa.array(["a", None]), [0, 1, 0]),
    pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), pa.array(["a", None])),
])  # fmt: skip
def test_a_missing_label_is_refused_with_its_row(column):
    with pytest.raises(DataError, match=r"<table>: row 2 \(index 1\), label 'y': expected a value, got null"):
        label_of(column)


@pytest.mark.parametrize("column", [
    pa.nulls(2),
    pa.array([b"a", b"b"]),
    pa.array([[1], [2]]),
    pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
    pa.array([datetime.date(2024, 1, 1)] * 2),
    pa.array([1, 2], pa.timestamp("us", "UTC")),
    coded(pa.array([1, 2], pa.time32("s")), [0, 1]),
    pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]),
])  # fmt: skip
def test_what_is_neither_number_nor_text_is_no_label(column):
    told = r"<table>: label 'y': expected numbers or text, got .*; cast it first"
    with pytest.raises(DataError, match=told):
        label_of(column)


_OF_LABELS = {"steps": [{"kind": "fourier", "gamma": {"validate": [0.1, 1.0]}, "n_components": 4}]}


@pytest.mark.parametrize(("label", "message"), [
    (np.array(["a", None] * 30, dtype=object), r"row 2 \(index 1\): expected text, got None"),
    (np.array(["a", float("nan")] * 30, dtype=object), r"row 2 \(index 1\): expected text, got nan"),
    (np.array([1.0, "a"] * 30, dtype=object), r"row 2 \(index 1\): expected numbers or text, got 'a'"),
    (np.array(["a", " "] * 30), r"row 2 \(index 1\): expected a value, got ' '"),
    (np.ones(60) * 1j, "expected numbers or text, got an array of complex128"),
    (np.full(60, "2020-01-01", dtype="M8[D]"), r"expected numbers or text, got an array of datetime64"),
])  # fmt: skip
def test_an_array_of_labels_is_checked_as_a_column_is(label, message):
    with pytest.raises(DataError, match=f"label: {message}"):
        kafeat.fit(_OF_LABELS, np.random.default_rng(0).normal(size=(60, 2)), label)


def test_numbers_in_an_array_of_objects_are_numbers():
    X = np.random.default_rng(0).normal(size=(60, 2))
    labels = X[:, 0], X[:, 0].astype(object)
    scores = [kafeat.fit(_OF_LABELS, X, y).provenance.searches[0].scores for y in labels]
    assert scores[0] == scores[1]
