"""`kafeat evaluate --all-rows`: the scores of a finished model on all rows of a file, against scikit-learn."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.study.models import score_predictions

metrics = pytest.importorskip("sklearn.metrics")
MAP = {"kind": "fourier", "n_components": 16}


def table(rows, seed):
    X = np.random.default_rng(seed).normal(size=(rows, 2))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] > 0.3, "high", "low")
    names = {"y": y, "z": np.sin(X[:, 0]), "w": X[:, 1] ** 2}
    return pa.table({"a": X[:, 0], "b": X[:, 1], **names})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of classes, one of two numbers, and a map; and rows that none of them has seen."""
    folder = tmp_path_factory.mktemp("predictions")
    train = table(300, 0)
    pa_csv.write_csv(train, folder / "train.csv")
    pa_csv.write_csv(table(80, 1), folder / "test.csv")
    pa_csv.write_csv(table(0, 1), folder / "empty.csv")
    columns = {"include": ["a", "b"]}
    for name, label, last in (("y", "y", "logistic"), ("zw", ["z", "w"], "ridge")):
        config = {"columns": columns, "steps": [MAP, {"kind": last, "penalty": 0.01}]}
        kafeat.fit(config, str(folder / "train.csv"), label).save(folder / f"{name}.joblib")
    kafeat.fit({"columns": columns, "steps": [MAP]}, train).save(folder / "map.joblib")
    return folder


def record(run, folder, *words):
    done = run("evaluate --all-rows --json -", *words, cwd=folder)
    (found,) = json.loads(done.stdout)["records"]
    return found


def test_classes_of_all_rows_are_scored_as_predict_writes_them(run, folder):
    found, test = record(run, folder, "--model", "y.joblib", "test.csv"), table(80, 1)
    fm = kafeat.load(folder / "y.joblib")
    true, predicted = test["y"].to_numpy(zero_copy_only=False), fm.predict(test)
    assert (found["label"], found["rows_test"], found["scoring"]) == ("y", 80, "accuracy")
    assert found["score_model"] == found["accuracy_model"] == metrics.accuracy_score(true, predicted) > 0.8
    assert found["log_loss_model"] == pytest.approx(metrics.log_loss(true, fm.predict_proba(test)), rel=1e-12)
    assert found["score_constant"] == max(np.mean(true == "high"), np.mean(true == "low"))
    assert found["test_rows_seen_model"] is None
    assert record(run, folder, "--model", "y.joblib", "train.csv")["test_rows_seen_model"] == 300


def test_a_table_and_a_gate(in_process, folder):
    words = ("evaluate", "--model", "y.joblib", "--all-rows")
    done = in_process(*words, "test.csv", "--min-score", "0.5", cwd=folder)
    assert done.returncode == 0
    assert done.stdout.startswith("y.joblib: predictions of 80 rows\n")
    assert "\naccuracy of the best constant prediction of these rows: 0." in done.stdout
    assert "may have learned from 300 of these rows" in in_process(*words, "train.csv", cwd=folder).stdout
    low = in_process(*words, "test.csv", "--min-score", "1.5", "--quiet", cwd=folder)
    assert (low.returncode, low.stdout) == (6, "")
    assert low.stderr.startswith("kafeat: y.joblib: score_model: expected at least 1.5, got 0.")


REFUSED = [
    ("--model map.joblib test.csv", 2, "map.joblib: expected a model that ends in a predictor"),
    ("test.csv", 2, "--all-rows: expected --model MODEL, got none"),
    ("--model y.joblib test.csv --learner ridge", 2, "--all-rows: expected no --learner with it"),
    ("--model y.joblib test.csv --label w", 2, "y.joblib: expected a model that predicts w, got one"),
    ("--model y.joblib test.csv --label q", 3, "test.csv: --label: expected the column 'q'"),
    ("--model y.joblib empty.csv", 3, "empty.csv: expected rows to score, got none"),
]


@pytest.mark.parametrize(("words", "code", "says"), REFUSED)
def test_what_cannot_be_scored_is_refused(in_process, folder, words, code, says):
    done = in_process("evaluate", *words.split(), "--all-rows", cwd=folder)
    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr


@pytest.mark.parametrize("values", [np.arange(60) % 2 == 0, np.arange(60) / 7], ids=["classes", "numbers"])
def test_a_label_and_a_split_with_control_characters_in_their_names(tmp_path, values):
    label, split = "la\nbel", "sp\tlit"
    part, names = ["train", "train", "test"] * 20, ["a", "b", label, split]
    table = pa.table([values.astype(float), np.arange(60) % 7, values, part], names=names)
    pq.write_table(table, tmp_path / "in.parquet")
    source, model = str(tmp_path / "in.parquet"), str(tmp_path / "m.joblib")
    config = {"steps": [{"kind": "standardize"}, {"kind": "ridge", "penalty": 1e-6}]}
    kafeat.fit(config, source, label=label, split=split).save(model)
    [found] = score_predictions([model], source, jobs=1)
    record = found.flat()
    assert record["score_model"] > 0.99
    assert record["test_rows_seen_model"] == 40
