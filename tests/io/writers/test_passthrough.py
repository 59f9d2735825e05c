"""Kept columns of odd types and values: written as they are, or refused before anything is written."""

import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import DataError, UsageError
from kafeat.io.writers.passthrough import ValueDifference, difference
from tests.io.tables import open_reader
from tests.jobs.files import transform_file

READ = {
    "arrow": lambda path: pa.ipc.open_file(path).read_all()["k"],
    "arrows": lambda path: pa.ipc.open_stream(path).read_all()["k"],
    "parquet": lambda path: pq.read_table(path)["k"],
    "jsonl": lambda path: [json.loads(line)["k"] for line in path.read_text().splitlines()],
    "csv": lambda path: [line.rpartition(",")[0] for line in path.read_text().splitlines()][1:],
}


@pytest.fixture(scope="module")
def fm():
    return kafeat.fit({"steps": [{"kind": "projection", "n_components": 1}]}, pa.table({"x": [1.0, 2.0]}))


@pytest.fixture
def kept(tmp_path, fm):
    """Read a passthrough column back."""

    def kept(column, ending, source="arrow", rule="error", x=None):
        table = pa.table({"x": np.arange(1.0, len(column) + 1) if x is None else x, "k": column})
        path, out = tmp_path / f"i.{source}", tmp_path / f"o.{ending}"
        if source == "parquet":
            pq.write_table(table, path)
        else:
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table, max_chunksize=2)
        try:
            transform_file(fm, path, out, keep=("k",), on_bad_rows=rule)
        finally:
            assert out.exists() or not list(tmp_path.glob("*o.*"))
        return READ[ending](out)

    return kept


def stamps(values, unit, zone=None):
    return pa.array(values, pa.int64()).cast(pa.timestamp(unit, zone))


def in_list(values):
    return pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), values)


def in_struct(values):
    return pa.StructArray.from_arrays([values], ["a"])


def in_map(values):
    offsets = pa.array(range(len(values) + 1), pa.int32())
    return pa.MapArray.from_arrays(offsets, pa.array(["a"] * len(values)), values)


WORDS = pa.array(["a", "b", None, "b"])
VIEWS = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1]), pa.array(["a", "b"], pa.string_view()))


@pytest.mark.parametrize("ending", ["arrow", "arrows", "jsonl", "parquet", "csv"])
@pytest.mark.parametrize("words", [WORDS.dictionary_encode(), VIEWS], ids=["text", "views"])
def test_categories_are_written_as_what_they_stand_for(kept, words, ending):
    found = kept(words, ending)
    if ending in ("csv", "jsonl"):
        assert found == [word or ("" if ending == "csv" else None) for word in WORDS.to_pylist()]
    else:
        assert found.to_pylist() == WORDS.to_pylist()
        if ending != "parquet":
            assert found.type == pa.string()


TENSOR = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(4.0).reshape(2, 2))
RUNS = pa.array([1, 2, 3, 4], pa.int32())
OTHERS = "text or to one column for each value"


@pytest.mark.parametrize("ending", ["arrow", "arrows", "jsonl", "parquet", "csv", "libsvm"])
@pytest.mark.parametrize(("column", "kind", "target"), [
    (WORDS.cast(pa.string_view()), "string_view", "string"),
    (WORDS.cast(pa.binary()).cast(pa.binary_view()), "binary_view", "binary"),
    (pa.RunEndEncodedArray.from_arrays(RUNS, WORDS), "run_end_encoded<", "string"),
    (pa.DictionaryArray.from_arrays([0, 1], pa.array([[1], [2]])), "dictionary<", OTHERS),
    (in_list(WORDS), "list<", OTHERS),
    (in_struct(WORDS), "struct<", OTHERS),
    (in_map(WORDS), "map<", OTHERS),
    (pa.array([["a"], None], pa.list_view(pa.string())), "list_view<", OTHERS),
    (TENSOR, "extension<arrow.fixed_shape_tensor", OTHERS),
], ids=lambda one: one[:12] if isinstance(one, str) else "")  # fmt: skip
def test_nested_columns_views_and_runs_are_refused_at_once(kept, column, ending, kind, target):
    told = (
        f"i.arrow: column 'k': expected a passthrough column of plain values, got {kind}.*; cast it first, "
    )
    with pytest.raises(DataError, match=rf"{told}to {target}, or leave it out of --keep$") as refused:
        kept(column, ending)
    assert refused.value.exit_code == 3


def coded(values):
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.int8()), values)


VALUES = [pa.array(["a", None], kind) for kind in (pa.string(), pa.large_string(), pa.string_view())]
VALUES += [pa.array([5, None]), pa.array([1, 2], pa.duration("ms")), pa.nulls(2)]


@pytest.mark.parametrize("values", VALUES, ids=lambda values: str(values.type))
def test_parquet_holds_what_dictionaries_of_any_values_stand_for(kept, values):
    """Parquet has dictionaries of text only, and no null among their words."""
    column = coded(values)
    found = kept(column, "parquet")
    assert found.to_pylist() == column.to_pylist()
    again = kept(column, "arrow")
    assert again.to_pylist() == column.to_pylist()


def test_words_stay_words_in_parquet(kept):
    found = kept(coded(pa.array(["a", None])), "parquet")
    assert pa.types.is_dictionary(found.type)
    assert found.to_pylist() == ["a", None, None, "a"]


INTERVAL = pa.array([(1, 2, 3)] * 2, pa.month_day_nano_interval())


@pytest.mark.parametrize(("column", "ending", "kind"), [
    (INTERVAL, "parquet", "month_day_nano_interval"),
    (INTERVAL, "csv", "month_day_nano_interval"),
    (INTERVAL, "jsonl", "month_day_nano_interval"),
    (stamps([0, 1], "us", "Mars/Phobos"), "csv", "timestamp.us, tz=Mars/Phobos"),
    (stamps([0, 1], "us", "Mars/Phobos"), "jsonl", "timestamp.us, tz=Mars/Phobos"),
    (pa.array([Decimal("1E+5")], pa.decimal128(10, -3)), "parquet", "decimal128"),
])  # fmt: skip
def test_types_that_a_format_has_not(kept, column, ending, kind):
    told = rf"o.{ending}: column 'k': expected a passthrough column .*, got {kind}"
    with pytest.raises(UsageError, match=told) as refused:
        kept(column, ending)
    assert "leave it out of --keep, or write " in str(refused.value)


BIG_DATE = pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32())


@pytest.mark.parametrize(("column", "ending", "message"), [
    (stamps([0, 2**62], "s"), "jsonl", r"timestamp\[s\] that JSON lines .*, got 4611686018427387904"),
    (stamps([0, -(2**62)], "s"), "csv", r"timestamp\[s\] that CSV can hold, got -4611686018427387904"),
    (stamps([0, 2**62], "s"), "parquet", r"timestamp\[s\] that Parquet .*, got 4611686018427387904"),
    (stamps([0, 2**55], "s").dictionary_encode(), "jsonl",
     r"timestamp\[s\] that JSON lines can hold, got 36028797018963968"),
    (BIG_DATE, "csv", r"date32\[day\] that CSV can hold, got 2147483647"),
    (pa.array([0, 86_400_000 * 2**31]).cast(pa.date64()), "parquet", r"date64\[ms\] that Parquet"),
])  # fmt: skip
def test_dates_and_times_beyond_a_format(kept, column, ending, message):
    with pytest.raises(DataError, match=rf"i.arrow: row 2 \(index 1\), column 'k': expected a {message}"):
        kept(column, ending)
    with pytest.raises(DataError, match=r"row 4 \(index 3\), column 'k': expected a "):
        kept(pa.concat_arrays([column, column]), ending, rule="drop", x=[1.0, np.nan, 2.0, 3.0])
    assert len(kept(column, ending, rule="drop", x=[1.0, np.nan])) == 1  # what is dropped is not looked at


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_times_that_are_none(kept, ending):
    times = pa.array([0, 24 * 3600 * 10**9]).cast(pa.time64("ns"))
    told = r"i.parquet: row 2 .*: expected a time64\[ns\] .* hold, got 86400000000000"
    with pytest.raises(DataError, match=told):
        kept(times, ending, "parquet")


def test_the_last_dates_that_can_be_held(kept):
    days = pc.cast(stamps([-62135596800, 253402300799], "s"), pa.date32())  # of the years 1 and 9999
    assert kept(days, "csv") == ["0001-01-01", "9999-12-31"]
    assert kept(stamps([2**63 // 1000], "s"), "parquet").cast(pa.int64()).to_pylist() == [
        2**63 // 1000 * 1000
    ]
    assert kept(BIG_DATE, "parquet").equals(pa.chunked_array([BIG_DATE]))


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "arrow"])
@pytest.mark.parametrize("nest", [lambda text: text, pa.Array.dictionary_encode])
def test_text_of_parquet_that_is_no_utf8(kept, nest, ending):
    offsets, data = np.array([0, 2, 4, 7], "i4"), b"ok\xff\xfe\xed\xa0\x80"
    text = pa.StringArray.from_buffers(3, pa.py_buffer(offsets), pa.py_buffer(data))
    told = r"i.parquet: row 2 \(index 1\), column 'k': expected UTF-8 text, got b'\\xff\\xfe'"
    with pytest.raises(DataError, match=told):
        kept(nest(text), ending, "parquet")


def test_a_whole_number_of_thousands_of_digits_is_kept_as_text(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(f"a,b,c\n1,{'9' * 400},{'9' * 5000}\n")
    with open_reader(path) as source:
        assert source.passthrough_schema(["a", "b", "c"]).types == [pa.int64(), pa.string(), pa.string()]


def test_of_several_differences_the_first_row_is_named():
    ours = pa.table({"a": [1, 2, 3], "b": [1, 2, 3]})
    theirs = pa.table({"a": [1, 2, 9], "b": [1, 7, 3]})
    assert difference(ours, theirs) == ValueDifference(1, "b", "2", "7")
    assert difference(ours, ours) is None
