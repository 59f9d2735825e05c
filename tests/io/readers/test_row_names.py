"""Names of rows, as pandas and R write them, are no features."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.io.options import InputOptions
from kafeat.io.storage.location import parse_location

pd = pytest.importorskip("pandas")

RECIPE = {"steps": [{"kind": "minmax"}]}
DRAWS = np.random.default_rng(0).normal(size=(40, 2))


@pytest.fixture
def shuffled():
    return pd.DataFrame(DRAWS, columns=["x", "y"]).sample(frac=1, random_state=0)


def test_an_index_in_memory(shuffled):
    fm = kafeat.fit(RECIPE, shuffled)
    assert fm.columns.names == ("x", "y")
    np.testing.assert_array_equal(fm.transform(shuffled), fm.transform(shuffled.reset_index(drop=True)))


def test_by_position(shuffled):
    fm = kafeat.fit(RECIPE, DRAWS)
    np.testing.assert_array_equal(fm.transform(shuffled), fm.transform(shuffled.to_numpy()))


@pytest.mark.parametrize("name", ["f.parquet", "f.feather", "f.csv", "parts"])
@pytest.mark.parametrize("index", [None, "station"])
def test_an_index_in_a_file(tmp_path, shuffled, name, index):
    frame = shuffled.rename_axis(index)
    path = tmp_path / name
    if name == "f.csv":
        frame.to_csv(path)
    elif name == "f.feather":
        with pa.ipc.new_file(path, (table := pa.table(frame)).schema) as writer:
            writer.write_table(table)
    elif name == "parts":
        path.mkdir()
        frame.to_parquet(path / "a.parquet")
        frame.to_parquet(path / "b.parquet")
    else:
        frame.to_parquet(path)
    names = kafeat.fit(RECIPE, path).columns.names
    # a CSV with a name for its index says no more of it than of any other column
    assert names == (("station", "x", "y") if name == "f.csv" and index else ("x", "y"))
    with InputOptions().open(parse_location(path)) as source:
        assert source.limited(3).row_names == source.row_names


DEEP = "[" * 100_000


MAPS = [f'{{"map": {deep}' for deep in (DEEP, "[" * 900 + "]" * 900 + "}")]
INDEXES = [DEEP, *(f"{index}}}" for index in ("5", "null", '"x"', '{"x": 1}', '[["x"], 1, null]'))]


NOTES = [DEEP, "[1]", "no JSON", *MAPS, *(f'{{"index_columns": {index}' for index in INDEXES)]


@pytest.mark.parametrize("notes", NOTES)
@pytest.mark.parametrize("key", ["pandas", "kafeat"])
def test_notes_of_others_may_be_anything(tmp_path, key, notes):
    table = pa.table({"x": [1.0, 2.0]}).replace_schema_metadata({key: notes})
    pq.write_table(table, tmp_path / "a.parquet")
    with InputOptions().open(parse_location(tmp_path / "a.parquet")) as source:
        assert source.row_names == frozenset()
        assert source.notes.get("map") is None
    assert kafeat.fit(RECIPE, tmp_path / "a.parquet").columns.names == ("x",)


def test_an_index_that_is_named_is_a_feature(shuffled):
    frame = shuffled.rename_axis("id")
    recipe = {"columns": {"include": ["id", "x"]}, **RECIPE}
    assert kafeat.fit(recipe, frame).columns.names == ("id", "x")


def test_a_map_that_has_it_finds_it(tmp_path, shuffled):
    fm = kafeat.fit({"columns": {"include": ["__index_level_0__", "x"]}, **RECIPE}, shuffled)
    assert fm.transform(shuffled).shape == (40, 2)


HEADERS = [("x,,y\n1,2,3\n", ("x", "", "y")), (",,y\n1,2,3\n", None), ("\n1\n", None)]


@pytest.mark.parametrize(("text", "expected"), HEADERS)
def test_other_columns_without_names_stay(tmp_path, text, expected):
    (tmp_path / "f.csv").write_text(text)
    with InputOptions().open(parse_location(tmp_path / "f.csv")) as source:
        assert source.row_names == frozenset()
    if expected:
        assert kafeat.fit(RECIPE, tmp_path / "f.csv").columns.names == expected


def test_features_do_not_pass_on_the_notes(tmp_path, shuffled):
    """A file of features has no index, though its input had one."""
    shuffled.to_parquet(tmp_path / "in.parquet")
    fm = kafeat.fit(RECIPE, shuffled)
    fm.save(tmp_path / "m.joblib")
    from tests.jobs.files import transform_file

    transform_file(fm, tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert "pandas" not in {key.decode() for key in pq.read_schema(tmp_path / "out.parquet").metadata}
    assert json.loads(pq.read_schema(tmp_path / "out.parquet").metadata[b"kafeat"])
