"""Few rows, and rows held out by time: `fit` and `predict` say that intervals may hold less than they promise."""

import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import KafeatWarning

FEW = "at least 60 held-out rows, got those of {}: intervals of 90 % then cover fewer new rows"
BY_TIME = "rows were held out by time, so coverage is as stated only for rows that are as near in time"


@pytest.fixture
def model(run, tmp_path, monkeypatch):
    """Fit a model of so many rows by the command, and return what it said."""
    monkeypatch.chdir(tmp_path)

    def fit(n, *options, label="y"):
        rng = np.random.default_rng(0)
        x = rng.standard_normal(n)
        y = x + 0.1 * rng.standard_normal(n)
        columns = {"x": x, "t": np.arange(n), "y": y, "c": np.where(y > 0.0, "p", "q")}
        pq.write_table(pa.table(columns), "in.parquet")
        (tmp_path / "c.yaml").write_text("columns: {include: [x]}\nsteps: [standardize, ridge]\n")
        done = run("fit in.parquet m --config c.yaml --label", label, *options)
        return done.stderr

    return fit


@pytest.mark.parametrize("label", ["y", "c"])
@pytest.mark.parametrize(("n", "by_time"), [(59, False), (60, False), (300, True), (40, True)])
def test_fit_and_predict_say_it(model, in_process, n, by_time, label):
    options = ("--split-by", "time:t") if by_time else ()
    said = model(n, *options, label=label)
    fm = kafeat.load("m")
    held = len(fm.needed_intervals().scores)
    expected = [FEW.format(held)] * (held < 60) + [BY_TIME] * by_time
    asked = in_process("predict", "--model", "m", "in.parquet", "o.csv", "--interval", "0.8").stderr
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kafeat.transform("in.parquet", "o.csv", model="m", interval=0.8)
        in_python = [str(one.message) for one in caught]
        fm.predict_interval(pq.read_table("in.parquet"), 0.8)
    assert {one.category for one in caught} <= {KafeatWarning}
    assert [one.filename == __file__ for one in caught] == [True] * 2 * len(expected)
    for lines in (in_python, [str(one.message) for one in caught[len(in_python) :]]):
        assert len(lines) == len(expected)
        assert all(what in line for what, line in zip(expected, lines, strict=True))
    for text in (said, asked):
        for what in (FEW.format(held), BY_TIME):
            assert (what in text) == (what in expected)


def test_predictions_without_intervals_say_nothing(model, in_process):
    assert "interval" not in model(40, "--no-intervals")
    model(40)
    assert "interval" not in in_process("predict", "--model", "m", "in.parquet", "o.csv").stderr
