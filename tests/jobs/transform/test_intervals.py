"""`predict --interval`: its columns in every format, and their check by `verify`."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.json
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import GateError, UsageError
from kafeat.io.options import OutputOptions
from kafeat.jobs.transform.options import RowOptions
from tests.jobs.files import transform_file, verify_file

FORMATS = ("parquet", "arrow", "csv", "jsonl")


def read(place):
    readers = {".parquet": pq.read_table, ".arrow": pa.feather.read_table, ".csv": pa.csv.read_csv}
    return readers.get(place.suffix, pa.json.read_json)(place)


@pytest.mark.parametrize("format", FORMATS)
def test_ends_stand_behind_the_prediction(format, model, data, table, tmp_path):
    fm, place = model("y"), tmp_path / f"out.{format}"
    kafeat.predict(data, place, model=fm, interval=0.9, keep="id")
    got = read(place)
    assert got.column_names == ["id", "prediction", "lower", "upper"]
    ends = fm.predict_interval(table, 0.9)
    np.testing.assert_array_equal(np.column_stack([got["lower"], got["upper"]]), ends)
    np.testing.assert_array_equal(got["prediction"], fm.predict(table))


@pytest.mark.parametrize("format", FORMATS)
def test_sets_are_a_boolean_for_each_class(format, model, data, table, tmp_path):
    fm, place = model("c"), tmp_path / f"out.{format}"
    kafeat.predict(data, place, model=fm, interval=[0.8, 0.95])
    got = read(place)
    sets = ["set_no_0.8", "set_yes_0.8", "set_no_0.95", "set_yes_0.95"]
    assert got.column_names == ["prediction", *sets, "probability_no", "probability_yes"]
    for level, names in ((0.8, sets[:2]), (0.95, sets[2:])):
        found = np.column_stack([got[name].to_numpy(zero_copy_only=False) for name in names])
        np.testing.assert_array_equal(found, fm.predict_interval(table, level))


@pytest.mark.parametrize(("labels", "levels", "names"), [
    (("y",), (0.8, 0.95), ["prediction", "lower_0.8", "upper_0.8", "lower_0.95", "upper_0.95"]),
    (("y", "z"), (0.9,), ["prediction_y", "prediction_z", "lower_y", "upper_y", "lower_z", "upper_z"]),
    (("c",), (0.9,), ["prediction", "set_no", "set_yes", "probability_no", "probability_yes"]),
])  # fmt: skip
def test_names_follow_those_of_the_predictions(labels, levels, names, model, data, tmp_path):
    for prefix in ("", "m1_"):
        kafeat.predict(data, tmp_path / "o.parquet", model=model(*labels), interval=levels, prefix=prefix)
        assert read(tmp_path / "o.parquet").column_names == [prefix + name for name in names]


@pytest.mark.parametrize("label", ["y", "c"])
def test_predictions_have_the_same_bytes_beside_intervals(label, model, data, tmp_path):
    kafeat.predict(data, tmp_path / "plain.parquet", model=model(label, intervals=False))
    for jobs in (1, 2):
        kafeat.predict(data, tmp_path / f"{jobs}.parquet", model=model(label), interval=0.9, jobs=jobs)
        got, plain = read(tmp_path / f"{jobs}.parquet"), read(tmp_path / "plain.parquet")
        assert got.select(plain.column_names).equals(plain)
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()


@pytest.mark.parametrize("label", ["y", "c"])
def test_bad_rows_have_no_interval(label, model, table, tmp_path):
    spoiled = table.set_column(0, "x0", pa.array([None, *table["x0"].to_pylist()[1:]]))
    pq.write_table(spoiled, tmp_path / "data.parquet")
    rules = RowOptions(on_bad_rows="null")
    writing = OutputOptions(fsync=False, interval=(0.9,))
    transform_file(
        model(label), tmp_path / "data.parquet", tmp_path / "o.parquet", writing=writing, rules=rules
    )
    got = read(tmp_path / "o.parquet")
    assert [got[name].null_count for name in got.column_names] == [1] * len(got.column_names)


@pytest.mark.sampled
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("label", ["y", "c"])
def test_verify_finds_an_interval_that_is_wrong(format, label, model, data, tmp_path):
    fm, place = model(label), tmp_path / f"o.{format}"
    fm.save(tmp_path / "m.joblib")
    stats = str(tmp_path / "s.json")
    kafeat.predict(data, place, model=tmp_path / "m.joblib", interval=(0.8, 0.9), stats=stats)
    files = (str(tmp_path / "m.joblib"), data, str(place))
    assert verify_file(*files, stats=stats).rows == 700
    assert verify_file(*files, interval=(0.8, 0.9)).rows == 700
    with pytest.raises(GateError, match="expected"):
        verify_file(*files, interval=(0.8, 0.95))


def test_what_has_no_interval_is_refused(model, data, tmp_path):
    for fm, options, message in (
        (model("y", intervals=False), {"interval": 0.9}, "fit it again .without --no-intervals"),
        (model("y"), {"interval": (0.9, 0.9)}, "each probability once, got 0.9 twice"),
        (model("y"), {"interval": 1.0}, "between 0 and 1"),
        (model("y"), {"interval": 0.9999}, "at most 0.9985, as the model knows the errors of 700"),
        (model("c"), {"interval": 0.9, "output_format": "npy"}, "expected a format with columns of names"),
    ):
        with pytest.raises(UsageError, match=message):
            kafeat.predict(data, tmp_path / "o.out", model=fm, **{"output_format": "csv"} | options)
    with pytest.raises(UsageError, match="--interval: expected predictions, got features"):
        kafeat.transform(data, tmp_path / "o.csv", model=model("y"), features=True, interval=0.9)
    assert not (tmp_path / "o.out").exists()


def test_numbers_alone_hold_ends_too(model, data, table, tmp_path):
    fm = model("y")
    kafeat.predict(data, tmp_path / "o.npy", model=fm, interval=0.9)
    expected = np.column_stack([fm.predict(table), fm.predict_interval(table)])
    np.testing.assert_array_equal(np.load(tmp_path / "o.npy"), expected)
