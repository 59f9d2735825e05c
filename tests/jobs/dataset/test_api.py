"""`kafeat.transform` and `kafeat.predict` write what the commands write."""

import inspect
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.cli.command import Context
from kafeat.cli.main import kafeat as whole
from kafeat.errors import ArtifactError, KafeatWarning, PartsError, UsageError
from kafeat.jobs.dataset import api


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A map, a model that ends in a predictor, and a table of 500 rows."""
    path = tmp_path_factory.mktemp("api")
    rng = np.random.default_rng(0)
    table = pa.table({name: rng.normal(size=500) for name in ("a", "b", "y")})
    pq.write_table(table, path / "rows.parquet")
    steps = [{"kind": "standardize"}, {"kind": "fourier", "n_components": 16, "frequencies": "orthogonal"}]
    config = {"columns": {"exclude": ["y"]}, "chunk_rows": 100, "steps": steps}
    kafeat.fit(config, table, label="y").save(path / "map.joblib")
    kafeat.fit(config | {"steps": [*steps, "ridge"]}, table, label="y").save(path / "model.joblib")
    return path


def test_the_functions_write_the_bytes_of_the_commands(folder, tmp_path, run):
    source = folder / "rows.parquet"
    for call, model in ((kafeat.transform, folder / "map.joblib"), (kafeat.predict, folder / "model.joblib")):
        name, out = call.__name__, tmp_path / f"{call.__name__}.csv"
        written = call(source, out, model=model, keep="y", limit=300, output_dtype="float32")
        options = ("--keep", "y", "--limit", "300", "--output-dtype", "float32")
        run(name, "--model", model, source, tmp_path / "c.csv", *options)
        assert out.read_bytes() == (tmp_path / "c.csv").read_bytes()
        assert (written.path, written.rows) == (str(out), 300)
        told = (16, "features") if name == "transform" else (1, "predictions")
        assert (written.columns, written.content) == told


def test_a_map_in_memory_and_its_file_write_the_same(folder, tmp_path):
    fm = kafeat.load(folder / "map.joblib")
    for name, model in (("a", fm), ("b", str(folder / "map.joblib"))):
        stats = tmp_path / f"{name}.json"
        kafeat.transform(folder / "rows.parquet", tmp_path / f"{name}.npy", model=model, stats=stats)
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()
    paths = [json.loads((tmp_path / f"{name}.json").read_text())["model"]["path"] for name in "ab"]
    assert paths == [None, str(folder / "map.joblib")]


def test_parts_that_fail_are_raised_and_the_others_are_written(folder, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/good.csv").write_text("a,b\n1,2\n")
    (tmp_path / "in/poor.csv").write_text("a,b\n1,x\n")
    with pytest.raises(PartsError, match=r"poor\.csv: .*got 'x'"):
        kafeat.transform(tmp_path / "in", tmp_path / "out", model=folder / "map.joblib")
    assert (tmp_path / "out/good.csv").exists()
    assert not (tmp_path / "out/poor.csv").exists()


@pytest.mark.parametrize(("options", "message"), [
    ({"layout": "rows"}, "layout: expected one of columns, list, got 'rows'"),
    ({"on_bad_rows": "skip"}, "on_bad_rows: expected one of error, drop, null, got 'skip'"),
    ({"output_format": "xlsx"}, "output_format: expected one of csv, .*, got 'xlsx'"),
    ({"limit": 0}, "limit: expected a whole number of at least 1, got 0"),
    ({"jobs": 1.5}, "jobs: expected a whole number from 1 to 4,096, got 1.5"),
    ({"resume": True}, "resume: expected an input of many files, or rows_per_file, got one"),
    ({"engine": "processes"}, "engine: expected an input of many files"),
    ({"model": None}, "model: expected a path or URI, got NoneType"),
    ({"src": np.eye(2)}, "src: expected a path or URI, got ndarray; FeatureMap.transform takes tables"),
    # even if the run ends before anything is read, and has a record
    ({"stats": "rows.parquet", "model": "gone"}, "rows.parquet: expected --stats apart from the input"),
    ({"stats": "in/s.json", "src": "in", "model": "gone"}, "--stats apart from the input, got one inside"),
    ({"stats": "map.joblib", "src": "gone.csv"}, "map.joblib: expected --stats apart from the model"),
])  # fmt: skip
def test_wrong_arguments_are_refused_and_nothing_is_written(folder, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(folder)
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in/a.csv").write_text("a,b\n1,2\n")
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    asked = {"src": "rows.parquet", "dst": tmp_path / "z.npy", "model": "map.joblib"} | options
    with pytest.raises(UsageError, match=message):
        kafeat.transform(**asked)
    assert [*tmp_path.iterdir(), *(folder / "in").iterdir()] == [folder / "in/a.csv"]
    assert before == {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_record_begins_before_the_model_is_read(folder, tmp_path, monkeypatch):
    (tmp_path / "broken.joblib").write_bytes(b"no model")
    asked = {"model": tmp_path / "broken.joblib", "stats": tmp_path / "s.json", "interval": 0.9}
    for call in (kafeat.predict, kafeat.transform):
        with pytest.raises(ArtifactError, match="broken.joblib: expected"):
            call(folder / "rows.parquet", tmp_path / "y.csv", **asked)
        record = json.loads((tmp_path / "s.json").read_text())
        assert (record["state"], record["exit_code"]) == ("refused", 4)
        assert (record["model"]["path"], "rows" in record["input"]) == (str(asked["model"]), False)
        (tmp_path / "s.json").unlink()
    # a full disk, on which there is no room for the record either, does not hide why the run failed
    monkeypatch.setattr(api, "spelled", lambda _record: os.strerror(os.open("/gone", 0)))
    with pytest.raises(ArtifactError, match="broken.joblib: expected"):
        kafeat.predict(folder / "rows.parquet", tmp_path / "y.csv", **asked)
    assert not (tmp_path / "s.json").exists()


def test_a_caution_names_the_line_of_the_call(folder, tmp_path):
    table = pq.read_table(folder / "rows.parquet")[:40]
    fm = kafeat.fit(
        {"steps": ["standardize", {"kind": "fourier", "n_components": 4}, "ridge"]}, table, label="y"
    )
    for call in (kafeat.predict, kafeat.transform):
        with pytest.warns(KafeatWarning, match="errors of at least") as caught:
            call(folder / "rows.parquet", tmp_path / "y.csv", model=fm, interval=0.5)
        assert [one.filename for one in caught] == [__file__]


def test_predict_refuses_a_map(folder, tmp_path):
    with pytest.raises(UsageError, match="predictor"):
        kafeat.predict(folder / "rows.parquet", tmp_path / "y.csv", model=folder / "map.joblib")


@pytest.mark.parametrize(("call", "keywords", "message"), [
    (
        kafeat.predict,
        {"model": "m.joblib", "features": True},
        "got an unexpected keyword argument 'features'",
    ),
    (kafeat.transform, {}, "missing a required argument: 'model'"),
])  # fmt: skip
def test_a_wrong_keyword_is_told_by_the_name_of_the_function(call, keywords, message):
    with pytest.raises(TypeError, match=f"^kafeat.{call.__name__}: {message}$"):
        call("in.csv", "out.csv", **keywords)


@pytest.mark.parametrize("call", [kafeat.transform, kafeat.predict])
def test_every_option_of_the_command_is_a_keyword(call):
    command = whole.get_command(Context(whole), call.__name__)
    options = {max(one.opts, key=len).lstrip("-").replace("-", "_") for one in command.params}
    parameters = inspect.signature(call).parameters.values()
    keywords = {one.name for one in parameters if one.kind == one.KEYWORD_ONLY}
    of_a_terminal = {"quiet", "verbose", "log_format", "color"}
    assert options - keywords == {"source", "target", *of_a_terminal}
    assert keywords <= options
