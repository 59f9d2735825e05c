"""A run over parts destroys nothing that it reads, and none of its own outputs."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from kafeat.errors import SystemRefusedError, UsageError
from kafeat.io.storage.location import parse_location
from kafeat.runtime.engine import Engine
from tests.jobs.files import CONFIG, contents, transform_parts
from tests.recipes import fit_once


def table(rows: int) -> pa.Table:
    X = np.random.default_rng(3).normal(size=(rows, 2))
    return pa.table({"a": X[:, 0], "b": X[:, 1]})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a map, a data set of two parts and a CSV beside them that is none, and one file."""
    monkeypatch.chdir(tmp_path)
    fit_once(CONFIG, table(300)).save("map.joblib")
    for name in ("in/a.parquet", "in/deep/b.parquet", "one.parquet"):
        Path(name).parent.mkdir(exist_ok=True)
        pq.write_table(table(300), name)
    pa_csv.write_csv(table(10), "in/a.csv")
    pa_csv.write_csv(table(300), "one.csv")
    return tmp_path


@pytest.mark.parametrize(("source", "out", "rejects", "says"), [
    ("in/*.parquet", "out", "in", "in: expected --rejects apart from the input"),
    ("in/*.parquet", "out", "./in/", "./in/: expected --rejects apart from the input"),
    ("in", "out", "in/rejects", "in/rejects: expected --rejects apart from the input"),
    ("in", "out", ".", ".: expected --rejects apart from the input"),
    ("list.txt", "out", "in/deep", "in/deep: expected --rejects apart from the input"),
    ("in", "out", "out", "out: expected an output apart from --rejects, got the same"),
    ("in", "out", "out/bad", "out/bad: expected --rejects apart from the output, got one inside"),
    ("in", "out/good", "out", "out/good: expected an output apart from --rejects, got one inside"),
    ("in", "out", "-", "--rejects: expected a folder for the rejects of the parts, got standard output"),
])  # fmt: skip
def test_rejects_among_inputs_or_features_are_refused(source, out, rejects, says, here):
    (here / "list.txt").write_text("in/a.parquet\nin/deep/b.parquet\n")
    before = contents(here)
    with pytest.raises(UsageError, match=f"^{says}"):
        transform_parts("map.joblib", source, out, output_format="csv", on_bad_rows="drop", rejects=rejects)
    assert contents(here) == before


def test_rejects_in_the_place_of_a_file_are_refused_before_the_work(here):
    with pytest.raises(SystemRefusedError, match=r"^one.csv: expected a folder for the rejects of the parts"):
        transform_parts("map.joblib", "in", "out", on_bad_rows="drop", rejects="one.csv")
    assert not Path("out").exists()


def test_rejects_beside_a_glob_that_does_not_match_them_are_fine(here):
    transform_parts("map.joblib", "in/*.parquet", "out", on_bad_rows="drop", rejects="in/rejects")
    assert set(contents(here / "in" / "rejects")) == {"a.parquet.csv"}


def test_every_part_has_rejects_of_its_own(here):
    for name in ("a.csv", "a.parquet.csv"):
        Path("in", name).write_text("a,b\n1,none\n")
    bad = table(2).set_column(0, "a", pa.array([np.nan, 0.5]))
    pq.write_table(bad, "in/a.parquet")
    run = transform_parts("map.joblib", "in", "out", on_bad_rows="drop", rejects="rejects")
    told = contents(here / "rejects")
    assert set(told) == {"a.csv", "a.parquet.csv", "a.parquet.csv.csv", "deep/b.parquet.csv"}
    assert run.bad_rows == 3 == sum(text.count(b"\n") - 1 for text in told.values())


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_an_output_around_the_file_that_is_cut_is_refused(suffix, here):
    Path("out").mkdir()
    # a part of an earlier run, as it might be taken for an input
    transform_parts("map.joblib", f"one.{suffix}", "out", rows_per_file=256, overwrite=True)
    before = contents(here)
    with pytest.raises(UsageError, match="^out: expected an output apart from the input, got one inside"):
        transform_parts("map.joblib", f"out/one-00000.{suffix}", "out", rows_per_file=256, overwrite=True)
    assert contents(here) == before


@pytest.mark.parametrize(("rejects", "engine"), [("rejects", "threads"), (None, "processes")])
def test_what_text_cannot_be_is_told_before_parts_are_removed(rejects, engine, here):
    transform_parts("map.joblib", "one.csv", "out", rows_per_file=256)
    before = contents(here)
    with pytest.raises(UsageError, match="expected Parquet or NPY"):
        transform_parts("map.joblib", "one.csv", "out", rows_per_file=256, overwrite=True,
                        on_bad_rows="drop", rejects=rejects, engine=Engine(engine))  # fmt: skip
    assert contents(here) == before


@pytest.mark.parametrize(("out", "rejects"), [("models", None), ("out", "models")])
def test_a_model_inside_of_what_is_written_is_refused(out, rejects, here):
    Path("models").mkdir()
    shutil.copy("map.joblib", "models/a.joblib")
    with pytest.raises(UsageError, match="^models: expected .* apart from the model, got one inside"):
        transform_parts("models/a.joblib", "in", out, on_bad_rows="drop", rejects=rejects, overwrite=True)


@pytest.mark.parametrize(("stats", "says"), [
    ("in/a.parquet", "--stats apart from the input, got the same"),
    ("in/stats.json", "--stats apart from the input, got one inside"),
    ("list.txt", "--stats apart from the input, got the same"),
    ("map.joblib", "--stats apart from the model, got the same"),
    ("out/a.parquet", "--stats apart from the output, got one inside"),
    ("rejects/a.csv", "--stats apart from --rejects, got one inside"),
])  # fmt: skip
def test_stats_in_the_place_of_something_else_are_refused(stats, says, here):
    (here / "list.txt").write_text("in/a.parquet\n")
    source = "list.txt" if stats == "list.txt" else "in"
    with pytest.raises(UsageError, match=f"^{stats}: expected {says}"):
        transform_parts(
            "map.joblib", source, "out", on_bad_rows="drop", rejects="rejects", stats=parse_location(stats)
        )


@pytest.mark.parametrize("source", ["in", "in/*.parquet", "in/"])
def test_many_files_are_not_cut(source, here):
    with pytest.raises(UsageError, match=r"^--rows-per-file: expected one file to cut, got many: in"):
        transform_parts("map.joblib", source, "out", rows_per_file=256)
