"""The result of `kafeat.evaluate`: a dict, a table for notebooks, a data frame and plots."""

import re
import sys
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.errors import UsageError
from kafeat.study.records import Table

STEPS = [{"kind": "standardize"}, {"kind": "fourier", "frequencies": "orthogonal", "weights": "uniform"}]
UNLABELLED = {"config": STEPS, "sweep": {"n_components": [4, 8]}, "rows": 50, "jobs": 1}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    return pa.table({"a": X[:, 0], "<b>": X[:, 1], "y": np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=300)})


@pytest.fixture(scope="module")
def found(table):
    return kafeat.evaluate(
        data=table, label="y", config={"steps": STEPS}, sweep=["n_components=8,64"], seeds=2, rows=100, jobs=1
    )


class Rows(HTMLParser):
    """The cells of each row of a table."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.tags = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_data(self, data):
        if self.rows:
            self.rows[-1].append(data)


def test_the_tables_have_the_figures_of_the_summary(found):
    parsed = Rows(found._repr_html_())
    printed = [re.split(r" {2,}", line) for line in str(found).splitlines()]
    assert printed[-len(parsed.rows) :] == parsed.rows
    heads, *rows = parsed.rows
    assert heads == ["on", "columns", "R²"]
    names = ["a constant", "raw columns", "gradient boosting (scikit-learn, 2 rounds)", "map 1", "map 1"]
    assert [row[0] for row in rows] == [*names, "exact kernel, 240 rows"]
    assert [row[1] for row in rows if row[0] == "map 1"] == ["8", "64"]
    score = found["summary"][1]["score_map"]["mean"]
    of_rows = 2 * np.sqrt(score / 60) * (1 - score)  # the standard error of R² on 60 test rows
    error = max(of_rows, found["summary"][1]["score_map"]["standard_error"])
    assert rows[4][2] == f"{score:.4f} ± {error:.1g}"
    assert parsed.tags == {"table", "caption", "thead", "tbody", "tr", "th", "td"}


def test_text_of_strangers_is_escaped(table):
    found = kafeat.evaluate(data=table.select(["a", "<b>"]), **UNLABELLED)
    for entry in found["summary"]:
        entry["map"] = "<script>alert(1)</script>"
    assert "script" not in Rows(found._repr_html_()).tags


def test_the_html_table_has_the_score_of_a_model_beside_a_map(table):
    X, steps = table.select(["a", "<b>"]), [{"kind": "standardize"}]
    y, chains = table["y"].to_numpy(), (steps, [*steps, {"kind": "ridge"}])
    maps = [kafeat.fit({"steps": chain}, X, label=y) for chain in chains]
    found = kafeat.evaluate(maps, table, label="y", rows=50, jobs=1)
    scores = {row[0]: row[-1] for row in Rows(found._repr_html_()).rows}
    assert "map 1: its own predictions" not in scores
    score = found["summary"][1]["score_model"]["mean"]
    assert scores["map 2: its own predictions"].startswith(f"{score:.4f}")


def test_the_data_frame_has_means_errors_and_settings(found):
    pytest.importorskip("pandas")
    frame = found.to_pandas()
    assert list(frame["n_components"]) == [8, 64]
    assert frame["score_map"][1] == found["summary"][1]["score_map"]["mean"]
    assert frame["score_map_error"][1] == found["summary"][1]["score_map"]["standard_error"]
    assert not [name for name in frame if isinstance(frame[name][0], dict)]
    table = pa.RecordBatchReader.from_stream(found).read_all()
    assert table.column_names == list(frame)
    assert table["score_map"].to_pylist() == list(frame["score_map"])


def test_a_stream_of_arrow_has_all_columns_and_text_for_several_types():
    rows = Table([{"gamma": "median", "n": 1}, {"gamma": 0.5, "n": 2, "score": 0.25}])
    read = pa.RecordBatchReader.from_stream(rows).read_all()
    assert read.to_pydict() == {"gamma": ["median", "0.5"], "n": [1, 2], "score": [None, 0.25]}


def test_plots_show_the_scores(found, pyplot):
    axes = found.plot()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("columns D", "R²")
    line = axes.containers[0].lines[0]
    np.testing.assert_array_equal(line.get_xdata(), [8, 64])
    np.testing.assert_array_equal(line.get_ydata(), [one["score_map"]["mean"] for one in found["summary"]])


def test_without_a_label_the_errors_are_plotted(table, pyplot):
    found = kafeat.evaluate(data=table.select(["a", "<b>"]), **UNLABELLED)
    line = found.plot().containers[0].lines[0]
    errors = [one["relative_frobenius"]["mean"] for one in found["summary"]]
    np.testing.assert_array_equal(line.get_ydata(), errors)
    assert Rows(found._repr_html_()).rows[0][:3] == ["map", "columns", "relative, Frobenius norm"]


def test_a_tuning_is_plotted_over_columns(table, pyplot):
    X, y = table.select(["a", "<b>"]), table["y"].to_numpy()
    fixed = kafeat.tune(X, y, columns=16, trials=3, jobs=1)
    (point,) = fixed.plot().containers
    assert (list(point.lines[0].get_xdata()), list(point.lines[0].get_ydata())) == ([16], [fixed.score])
    free = kafeat.tune(X, y, trials=3, jobs=1)
    assert list(free.plot().containers[0].lines[0].get_xdata()) == [row["columns"] for row in free.curve]


NEEDED = [("plot", "matplotlib", "'kafeat[evaluate]'"), ("to_pandas", "pandas", "'kafeat[evaluate]'")]


@pytest.mark.parametrize(("name", "module", "remedy"), NEEDED)
def test_without_a_library_the_remedy_is_named(found, monkeypatch, name, module, remedy):
    monkeypatch.setitem(sys.modules, module, None)
    told = f"^{name}: expected {module}, got: .*pip install {re.escape(remedy)}$"
    with pytest.raises(UsageError, match=told):
        getattr(found, name)()
    assert found._repr_html_()
