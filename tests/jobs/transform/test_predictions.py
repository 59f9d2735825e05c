"""`transform` and `predict` of models that end in a predictor: every format, layout and rule for bad rows."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import DataError, GateError, UsageError
from kafeat.jobs.transform.options import RowOptions
from tests.jobs.files import transform_file, transform_parts, verify_file
from tests.jobs.transform.conftest import CLASSES, CONFIG


def written(fm, data, place, jobs=2, **writing):
    rules = writing.pop("rules", RowOptions())
    done = transform_file(fm, data, place, fsync=False, **writing, rules=rules, jobs=jobs)
    assert done.what == "predictions"
    return place


READ = {
    "parquet": pq.read_table,
    "arrow": pa.feather.read_table,
    "csv": pa.csv.read_csv,
    "jsonl": lambda place: pa.Table.from_pylist(
        [json.loads(line) for line in Path(place).read_text().splitlines()]
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("format", READ)
@pytest.mark.parametrize("kind", CLASSES)
def test_classes_have_their_own_type_in_every_format(model, table, data, tmp_path, kind, format):
    fm = model(kind)
    out = READ[format](written(fm, data, tmp_path / f"out.{format}", keep=["id"]))
    own = [str(c) for c in fm.classes.tolist()]
    spelled = {"boolean": ["false", "true"], "number": ["0", "1", "2"]}.get(kind, own)
    assert out.column_names == ["id", "prediction", *(f"probability_{one}" for one in spelled)]
    assert out["prediction"].to_pylist() == fm.predict(table).tolist()
    assert out["id"].to_pylist() == list(range(700))
    p = np.column_stack([out[name].to_numpy() for name in out.column_names[2:]])
    # CSV and JSON lines have the shortest text that reads back to the same double.
    assert p.tobytes() == np.ascontiguousarray(fm.predict_proba(table)).tobytes()


@pytest.mark.parametrize("format", READ)
def test_numbers_in_every_format(model, table, data, tmp_path, format):
    one, two = model("y"), model("y", "z")
    out = READ[format](written(one, data, tmp_path / f"one.{format}"))
    assert out.column_names == ["prediction"]
    assert out["prediction"].to_numpy().tobytes() == one.predict(table).tobytes()
    out = READ[format](written(two, data, tmp_path / f"two.{format}", prefix="ridge_"))
    assert out.column_names == ["ridge_prediction_y", "ridge_prediction_z"]
    expected = np.ascontiguousarray(two.predict(table)[:, 1])
    assert out["ridge_prediction_z"].to_numpy().tobytes() == expected.tobytes()


def test_npy_has_probabilities_or_numbers(model, table, data, tmp_path):
    p, y = (np.load(written(model(one), data, tmp_path / f"{one}.npy")) for one in ("text", "y"))
    assert np.array_equal(p, model("text").predict_proba(table))
    assert np.array_equal(y[:, 0], model("y").predict(table))


def test_layout_list_and_smaller_numbers(model, table, data, tmp_path):
    fm = model("text")
    out = pq.read_table(written(fm, data, tmp_path / "p.parquet", layout="list", output_dtype="float32"))
    assert out.schema.field("probability").type == pa.list_(pa.field("item", pa.float32(), nullable=False), 3)
    p = np.array(out["probability"].to_pylist(), np.float32)
    assert p.tobytes() == fm.predict_proba(table).astype("f4").tobytes()
    assert out["prediction"].to_pylist() == fm.predict(table).tolist()


def test_features_are_written_where_they_are_wanted(model, table, data, tmp_path):
    fm = model("text")
    done = transform_file(fm, data, tmp_path / "z.npy", features=True, fsync=False)
    assert (done.what, done.columns) == ("features", 3)
    assert np.array_equal(np.load(tmp_path / "z.npy"), fm.transform(table))


def test_bytes_do_not_depend_on_jobs_or_parts(model, data, tmp_path):
    fm = model("text")
    one, four = (written(fm, data, tmp_path / f"{jobs}.parquet", jobs, keep=["id"]) for jobs in (1, 4))
    assert one.read_bytes() == four.read_bytes()
    run = transform_parts(fm, data, tmp_path / "parts", keep=["id"], rows_per_file=200)
    assert (run.parts, run.rows, run.columns, run.what) == (4, 700, 3, "predictions")
    parts = pa.concat_tables([pq.read_table(part) for part in sorted((tmp_path / "parts").glob("*.parquet"))])
    assert parts.equals(pq.read_table(one))


@pytest.mark.parametrize("label", ["text", "integer", "boolean", "y"])
def test_bad_rows_have_null_predictions_or_none(model, table, tmp_path, label):
    fm, bad = model(label), [3, 250]
    x = table["x1"].to_numpy().copy()
    x[bad] = np.nan
    spoiled = str(tmp_path / "bad.parquet")
    pq.write_table(table.set_column(1, "x1", pa.array(x)), spoiled)
    with pytest.raises(DataError, match="column 'x1': expected a finite number, got nan"):
        written(fm, spoiled, tmp_path / "none.parquet")
    assert not (tmp_path / "none.parquet").exists()
    out = pq.read_table(written(fm, spoiled, tmp_path / "null.parquet", on_bad_rows="null"))
    good = np.setdiff1d(np.arange(700), bad)
    for name in out.column_names:
        assert [i for i, value in enumerate(out[name].to_pylist()) if value is None] == bad
    assert out["prediction"].take(pa.array(good)).to_pylist() == fm.predict(table)[good].tolist()
    rest = pq.read_table(written(fm, spoiled, tmp_path / "drop.parquet", on_bad_rows="drop", keep=["id"]))
    assert rest["id"].to_pylist() == good.tolist()
    assert rest["prediction"].to_pylist() == fm.predict(table)[good].tolist()


def test_a_prediction_that_the_type_cannot_hold_is_refused_with_its_row(table, data, tmp_path):
    big = table.set_column(table.column_names.index("y"), "y", pa.array(table["y"].to_numpy() * 1e6))
    fm = kafeat.fit(CONFIG, big, "y")
    with pytest.raises(DataError, match=r"row 1 .*: expected predictions that float16 can hold, got "):
        written(fm, data, tmp_path / "p.parquet", output_dtype="float16")
    assert not (tmp_path / "p.parquet").exists()


def test_a_passthrough_column_of_the_same_name_is_refused(model, table, tmp_path):
    spoiled = table.rename_columns(["prediction" if n == "id" else n for n in table.column_names])
    pq.write_table(spoiled, tmp_path / "in.parquet")
    for label, format in (("text", "parquet"), ("y", "csv")):
        told = "expected .*columns with other names than the .*, got '?prediction"
        with pytest.raises(UsageError, match=told):
            place = tmp_path / f"out.{format}"
            written(model(label), tmp_path / "in.parquet", place, keep=["prediction"])
    with pytest.raises(UsageError, match="other names than the predictions"):
        written(model("text"), str(tmp_path / "in.parquet"), tmp_path / "out.parquet", keep=None)
    options = {"keep": ["prediction"], "prefix": "m_"}
    out = pq.read_table(written(model("text"), tmp_path / "in.parquet", tmp_path / "o.parquet", **options))
    assert out.column_names[:3] == ["prediction", "m_prediction", "m_probability_no"]


def test_verify_finds_a_class_and_a_probability_that_were_changed(model, data, tmp_path):
    fm = model("text")
    fm.save(tmp_path / "model.joblib")
    place = written(fm, data, tmp_path / "p.csv", keep=["id"])
    text = place.read_text().splitlines()
    number, prediction, *probabilities = text[5].split(",")
    assert prediction in ("no", "perhaps")
    other = {"no": "perhaps", "perhaps": "no"}[prediction]
    place.write_text("\n".join([*text[:5], ",".join([number, other, *probabilities]), *text[6:]]) + "\n")
    told = f"column 'prediction': expected '{prediction}' as the model predicts, got '{other}'"
    with pytest.raises(GateError, match=told):
        verify_file(tmp_path / "model.joblib", data, place)
    probabilities[0] = "0.123"
    place.write_text("\n".join([*text[:5], ",".join([number, prediction, *probabilities]), *text[6:]]) + "\n")
    with pytest.raises(GateError, match="column 'probability_[a-z]*': expected .*, got 0.123"):
        verify_file(tmp_path / "model.joblib", data, place)


def test_predictions_need_no_label_in_the_data(model, table, tmp_path):
    pq.write_table(table.select(["x2", "x0", "x1"]), tmp_path / "in.parquet")
    out = pq.read_table(written(model("y"), str(tmp_path / "in.parquet"), tmp_path / "out.parquet"))
    assert out["prediction"].to_numpy().tobytes() == model("y").predict(table).tobytes()
