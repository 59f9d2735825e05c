"""The scripts of `examples/`, on the sample data or on small made-up tables. tests/engines has the one for Dask."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.recipes import words
from tests.zygote import ROOT

pytest.importorskip("matplotlib")

EXAMPLES = ROOT / "examples"


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run a script in this process, and return what it prints; the last argument is a picture that it must draw."""

    def run(name, *words, picture="picture.png"):
        path = tmp_path / picture
        monkeypatch.setattr(sys, "argv", [name, *map(str, words), str(path)])
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        if picture.endswith("png"):
            assert path.read_bytes().startswith(b"\x89PNG")
        return capsys.readouterr().out

    yield run
    sys.modules["matplotlib.pyplot"].close("all") if "matplotlib.pyplot" in sys.modules else None


def accuracies(text):
    return [float(number) for number in re.findall(r"(?:accuracy|class:) +(\d\.\d+)", text)]


@pytest.mark.slow
def test_digits(run, tmp_path):
    pq.write_table(pq.read_table(ROOT / "sample_data/digits.parquet").slice(0, 600), tmp_path / "few.parquet")
    *widths, raw, _ = accuracies(run("digits", tmp_path / "few.parquet"))[:7]
    assert len(widths) == 5
    assert widths[-1] > widths[0]
    assert raw > 0.5


@pytest.mark.slow
def test_adult_is_predicted_better_than_by_its_larger_class(run, tmp_path):
    run("made_up_adult", 1500, picture="adult.csv")
    assert ">50K" in (tmp_path / "adult.csv").read_text()
    model, larger = accuracies(run("adult", tmp_path / "adult.csv"))
    assert model > larger


def test_california(run, tmp_path):
    rng = np.random.default_rng(0)
    names = words("longitude latitude housingMedianAge totalRooms totalBedrooms population households")
    names.append("medianIncome")
    X = rng.normal(size=(900, len(names)))
    columns = dict(zip(names, X.T, strict=True))
    columns |= {"medianHouseValue": np.sin(2.0 * X[:, 0]) + X[:, 6] ** 2, "split": np.repeat("train", 900)}
    pq.write_table(pa.table(columns), tmp_path / "california.parquet")
    printed = run("california", tmp_path / "california.parquet")
    model, linear = map(float, re.findall(r": (-?\d\.\d+)", printed))
    assert model > linear + 0.3


@pytest.mark.slow
def test_visual_words(run, tmp_path):
    rng = np.random.default_rng(0)
    label = rng.integers(3, size=1600)
    counts = rng.poisson(rng.gamma(1.0, 2.0, size=(3, 12))[label])
    table = pa.table(
        {f"x{i}": counts[:, i] for i in range(12)} | {"label": label, "split": np.repeat("train", 1600)}
    )
    pq.write_table(table, tmp_path / "words.parquet")
    scores = accuracies(run("visual_words", tmp_path / "words.parquet"))
    assert len(scores) == 4
    assert min(scores) > 0.8


@pytest.mark.slow
def test_a_student_learns_from_a_teacher(run, tmp_path):
    table = pq.read_table(ROOT / "sample_data/digits.parquet")
    pq.write_table(table.slice(0, 1200), tmp_path / "few.parquet")
    ridge, teacher, student = accuracies(run("teacher", tmp_path / "few.parquet", picture="m.joblib"))
    assert student - ridge > 0.85 * (teacher - ridge) > 0.0


@pytest.mark.slow
def test_a_million_rows_but_for_most_of_them(run, tmp_path):
    run("make_rows", 2000, picture="rows.csv")
    assert "2,000 rows; at most" in run("million_rows", tmp_path / "rows.csv")


def test_a_bad_night_is_refused_and_the_others_are_kept(run, tmp_path):
    nights = run("nightly", tmp_path / "week").splitlines()
    assert nights[2] == "Wed: 3 parts, 1 of them new"
    assert nights[3].startswith("Thu: exit code 6: Thu.parquet: expected at most 5.00% of a column")
    assert nights[4] == "Fri: 4 parts, 1 of them new"
    assert sorted(one.name for one in (tmp_path / "week/features").glob("*.parquet")) == [
        f"{night}.parquet" for night in ("Fri", "Mon", "Tue", "Wed")
    ]


def test_every_script_is_run_here_or_on_dask_and_tells_how_it_is_called():
    tested = Path(__file__).read_text() + (ROOT / "tests/engines/test_example_on_dask.py").read_text()
    for script in EXAMPLES.glob("*.py"):
        assert re.search(rf'run\("{script.stem}"|examples/{script.name}', tested), script.name
        assert f"`{script.name} " in script.read_text(), script.name
