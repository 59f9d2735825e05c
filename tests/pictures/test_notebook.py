"""A map in a notebook."""

import html
import sys
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.errors import DataError, UsageError


class Cells(HTMLParser):
    """The texts of a table, and every tag."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


def test_the_table_says_what_the_map_is(digits_table):
    config = {"columns": {"exclude": ["label"]}, "steps": [{"kind": "pca", "n_components": 3}]}
    fm = kafeat.fit(config, digits_table)
    cells = Cells(fm._repr_html_())
    rows = dict(zip(cells.texts[1::2], cells.texts[2::2], strict=True))
    assert rows == {
        "inputs": "64: p00, p01, p02, p03, p04, p05, …, p63",
        "step 0": "pca (n_components: 3, whiten: false)",
        "features": "3, float32",
        "fitted on": "1,797 of 1,797 rows of <table>",
    }
    assert set(cells.tags) == {"table", "caption", "tbody", "tr", "th", "td"}


def test_names_of_strangers_are_text(tmp_path):
    names = ["<script>alert(1)</script>", '"><img src=x onerror=a()>', "a&b", "\x1b[31m"]
    table = pa.table({name: [1.0, 2.0] for name in names})
    file = tmp_path / "<b>x.parquet"
    import pyarrow.parquet as pq

    pq.write_table(table, file)
    with pytest.raises(DataError, match="without control characters"):
        kafeat.fit({"steps": [{"kind": "minmax"}]}, str(file))
    pq.write_table(table.drop_columns(names[3:]), file)
    text = kafeat.fit({"steps": [{"kind": "minmax"}]}, str(file))._repr_html_()
    cells = Cells(text)
    assert set(cells.tags) == {"table", "caption", "tbody", "tr", "th", "td"}
    assert f"3: {', '.join(names[:3])}" in cells.texts
    assert html.escape(names[1]) in text
    assert "2 of 2 rows of <b>x.parquet" in cells.texts


@pytest.fixture(scope="module")
def exact():
    """A map that is its kernel: the linear one on standardized columns."""
    X = np.random.default_rng(0).normal(size=(300, 5))
    return kafeat.fit({"dtype": "float64", "steps": [{"kind": "standardize"}]}, X), X


def test_pictures_show_what_they_say(exact, pyplot):
    fm, X = exact
    pictures = fm.plot_kernel(X, rows=100)
    K, G, difference = (axes.images[0].get_array() for axes in pictures)
    assert K.shape == (100, 100)
    # every dot product is a sum of 5 products of size ≤ 16: 5·16 roundings of ε/2 and twice that for the norms of both
    np.testing.assert_allclose(G, K, rtol=0, atol=200 * np.finfo(float).eps)
    np.testing.assert_array_equal(G - K, difference)
    axes = fm.plot_distances(X)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("distance before the map", "distance after the map")
    assert pictures[0].figure.get_size_inches()[0] == pytest.approx(
        13.2
    )  # three times as wide as one picture
    assert pictures[0].figure.get_suptitle().startswith("standardize: relative error ")


def test_tables_lists_and_few_rows_will_do(exact, pyplot):
    fm, X = exact
    fm.plot_kernel(X[:2].tolist())
    fm.plot_kernel(X, rows=2)
    with pytest.raises(DataError, match="X: expected at least 2 rows to compare, got 1"):
        fm.plot_kernel(X[:1])
    with pytest.raises(UsageError, match="rows: expected at least 2 to compare, got 1"):
        fm.plot_kernel(X, rows=1)


def test_without_matplotlib_the_remedy_is_named(exact, monkeypatch):
    fm, X = exact
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert fm._repr_html_()
    told = r"^plot: expected matplotlib, got: .*pip install 'kafeat\[evaluate\]'$"
    with pytest.raises(UsageError, match=told):
        fm.plot_kernel(X)
