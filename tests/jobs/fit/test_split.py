"""fit --split: the map of the training rows alone, and what is told of it."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import DataError, UsageError
from tests.recipes import words

IID = {"kind": "fourier", "n_components": 8, "frequencies": "iid"}
CONFIG = {"fit_rows": "all", "steps": [{"kind": "standardize"}, IID]}


@pytest.fixture
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    test = rng.random(400) < 0.3
    X[test] += 1e4
    name = np.where(test, np.where(X[:, 0] > 1e4, "only", "x"), np.where(X[:, 0] > 0, "x", "z"))
    y = np.where(X[:, 1] > np.median(X[:, 1]), "one", "other")
    return pa.table([*X.T, name, y, np.where(test, "Test", "train")], names=words("a b name y part"))


def train(table: pa.Table) -> pa.Table:
    return table.filter(pa.array([value == "train" for value in table["part"].to_pylist()]))


def same(one: kafeat.FeatureMap, other: kafeat.FeatureMap) -> None:
    assert one.columns == other.columns
    for a, b in zip(one.chain.steps, other.chain.steps, strict=True):
        for name, value in a.state.items():
            np.testing.assert_array_equal(value, b.state[name])
    assert one.column_ranges is not None
    assert other.column_ranges is not None
    np.testing.assert_array_equal(one.column_ranges.high, other.column_ranges.high)


BY_LABEL = {"kind": "nystroem", "n_components": 8, "landmarks": "dual_kmeans"}
CODED = [{"kind": "one_hot", "columns": ["name"]}, {"kind": "standardize"}]


@pytest.mark.parametrize("config", [CONFIG, {**CONFIG, "steps": CODED}, {**CONFIG, "steps": [BY_LABEL]}])
def test_the_map_is_that_of_the_training_rows(config, table, tmp_path):
    alone = kafeat.fit(config, train(table), label="y")
    whole = kafeat.fit(config, table, label="y", split="part")
    assert "part" not in whole.columns.names
    same(whole, alone)
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=64)
    same(kafeat.fit(config, tmp_path / "x.parquet", label="y", split="part"), alone)
    (tmp_path / "parts").mkdir()
    for i in range(4):
        pq.write_table(table.slice(100 * i, 100), tmp_path / "parts" / f"{i}.parquet")
    same(kafeat.fit(config, tmp_path / "parts", label="y", split="part"), alone)


def test_a_sample_is_of_training_rows(table):
    fm = kafeat.fit({**CONFIG, "fit_rows": 50}, table, label="y", split="part")
    assert fm.provenance.rows_fitted <= 50
    assert fm.column_ranges is not None
    assert fm.column_ranges.high.max() < 100.0


def test_it_is_the_map_that_evaluate_fits(table):
    """The same rows are drawn, so the error on the same rows is the same."""
    config = {**CONFIG, "fit_rows": 60}
    fm = kafeat.fit(config, table, label="y", split="part")
    fitted, given = (
        kafeat.evaluate(data=table, label="y", split="part", rows=60, **how)
        for how in ({"config": config}, {"model": fm})
    )
    assert given["relative_frobenius"] == fitted["relative_frobenius"]
    assert given["score_map"] == fitted["score_map"]
    assert given["rows_seen_in_fit"] == fitted["rows_seen_in_fit"] == 0


def test_rows_seen_are_training_rows_without_a_split_too(table):
    fm = kafeat.fit(CONFIG, table, label="y", split="part")
    found = kafeat.evaluate(fm, table, label="y", rows=400)
    assert found["rows_seen_in_fit"] == train(table).num_rows == fm.provenance.rows_fitted


@pytest.mark.parametrize(("values", "split", "error", "match"), [
    (["train", "tset", "train"], "part", DataError,
     r"row 2 \(index 1\), split 'part': expected train or test, got 'tset'"),
    (["test"] * 3, "part", DataError, r"split 'part': expected at least one row of train, got none"),
    ([0.0, 1.0, 2.0], "part", DataError, r"split 'part': expected train or test, got 0"),
    (["train", None, "train"], "part", DataError, r"row 2 \(index 1\), split 'part': expected a value, got null"),
    (["train"] * 3, "prat", DataError, r"--split: expected the column 'prat' \(did you mean 'part'\?\)"),
    (["train"] * 3, "y", UsageError, "split: expected another column than the label, got y"),
])  # fmt: skip
def test_mistakes(values, split, error, match):
    table = pa.table({"a": [1.0, 2.0, 3.0], "y": [0, 1, 1], "part": values})
    with pytest.raises(error, match=match):
        kafeat.fit({"steps": ["minmax"]}, table, label="y", split=split)


def test_a_file_of_training_rows_only_is_fine():
    table = pa.table({"a": [1.0, 2.0, 3.0], "part": ["TRAIN", "train", "Train"]})
    assert kafeat.fit({"steps": ["minmax"]}, table, split="part").provenance.rows_fitted == 3
