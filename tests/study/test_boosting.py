"""Gradient boosting beside a map: scikit-learn's, in bounded time, or a word why there is none."""

import sys

import numpy as np
import pyarrow as pa
import pytest

import kafeat

boosting = pytest.importorskip("kafeat.study.boosting")
CONFIG = {"columns": {"include": ["a", "b"]}, "steps": [{"kind": "fourier", "n_components": 8}]}
FEW = {"config": CONFIG, "rows": 20, "exact_rows": 40, "jobs": 1}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    ring = np.hypot(*X.T)
    words = np.array(["far", "mid", "near"])[np.digitize(-ring, [-1.5, -0.8])]
    part = np.where(np.arange(300) % 4, "train", "test")
    return pa.table({"a": X[:, 0], "b": X[:, 1], "c": words, "y": ring, "z": X[:, 0] ** 2, "part": part})


def raw(table):
    """The columns, and true for the rows to train on."""
    X = np.column_stack([table["a"], table["b"]])
    return X, np.asarray(table["part"]) == "train"


def test_scores_are_those_of_scikit_learn(table):
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.metrics import log_loss

    X, train = raw(table)
    found = kafeat.evaluate(data=table, label="c", split="part", **FEW)
    y = np.asarray(table["c"])
    expected = HistGradientBoostingClassifier(random_state=0).fit(X[train], y[train])
    assert found["score_boosting"] == expected.score(X[~train], y[~train])
    assert found["log_loss_boosting"] == pytest.approx(log_loss(y[~train], expected.predict_proba(X[~train])))
    assert (found["rounds_boosting"], found["rows_boosting"]) == (100, 225)
    assert found["score_boosting"] > found["score_constant"] + 0.2
    y = np.asarray(table["y"])
    found = kafeat.evaluate(data=table, label="y", split="part", **FEW)
    regressor = HistGradientBoostingRegressor(random_state=0).fit(X[train], y[train])
    expected = regressor.score(X[~train], y[~train])
    # The unit of the label is removed first.
    assert found["score_boosting"] == pytest.approx(expected, abs=0.01)


def test_several_labels_have_their_mean(table):
    apart = [kafeat.evaluate(data=table, label=name, **FEW)["score_boosting"] for name in ("y", "z")]
    found = kafeat.evaluate(data=table, label=["y", "z"], **FEW)
    assert found["score_boosting"] == pytest.approx(np.mean(apart))


def test_work_is_bounded_by_rounds_then_rows_then_left_out():
    assert boosting.plan(1_000, 10, 1) == (1_000, {})
    rows, parameters = boosting.plan(50_000, 200, 7)
    assert parameters["max_iter"] == 50
    assert 2_000 < rows < 50_000
    assert boosting.plan(10_000_000, 5, 1)[0] <= 100_000
    assert boosting.plan(60_000, 784, 10)[0] == 2_000
    assert boosting.plan(60_000, 784, 100) is None


def test_fewer_rows_are_said(table, monkeypatch):
    monkeypatch.setattr(boosting, "MOST_ROWS", 100)
    found = kafeat.evaluate(data=table, label="c", **FEW)
    assert found["rows_boosting"] == 100
    assert "gradient boosting (scikit-learn, 100 rounds, 100 rows)" in found._repr_html_()


@pytest.mark.parametrize(("prepare", "reason"), [
    (lambda patch: patch.setitem(sys.modules, "sklearn.ensemble", None), "; pip install 'kafeat[evaluate]'"),
    (lambda patch: patch.setattr(boosting, "_TOO_MUCH", 0.0) or patch.setattr(boosting, "_MUCH", 0.0),
     "it would take long with 2 columns and 3 trees a round"),
])  # fmt: skip
def test_what_is_left_out_has_a_reason(table, monkeypatch, prepare, reason):
    prepare(monkeypatch)
    found = kafeat.evaluate(data=table, label="c", **FEW)
    assert "score_boosting" not in found
    assert "gradient boosting" not in found._repr_html_()
    assert found["boosting_left_out"].endswith(reason)


def test_one_class_among_the_training_rows_is_left_out(table):
    late = np.where(np.asarray(table["a"]) > 0, "x", "y")
    words = np.where(np.asarray(table["part"]) == "train", "x", late)
    found = kafeat.evaluate(data=table.append_column("w", pa.array(words)), label="w", split="part", **FEW)
    assert found["boosting_left_out"] == "its training rows have one class"


def test_a_class_of_one_row_does_not_end_a_long_training():
    """Above 10,000 rows scikit-learn holds out a tenth of each class, which a single row has not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(15_000, 1))
    words = np.where(X[:, 0] > 0, "a", "b").astype(object)
    words[0] = "rare"
    table = pa.table({"a": X[:, 0], "c": words, "part": np.where(np.arange(15_000) % 5, "train", "test")})
    table = table.set_column(2, "part", pa.array(["train", *table["part"].to_pylist()[1:]]))
    config = {"columns": {"include": ["a"]}, "steps": CONFIG["steps"]}
    found = kafeat.evaluate(data=table, label="c", split="part", **{**FEW, "config": config})
    assert found["score_boosting"] > 0.99
