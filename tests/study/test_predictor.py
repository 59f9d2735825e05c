"""`kafeat evaluate` of a model or config that ends in a predictor."""

import json
import re
from shlex import split

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, log_loss, roc_auc_score

import kafeat
from kafeat.errors import DataError
from kafeat.maths.calibration import reliability
from kafeat.maths.task import task_of
from kafeat.model.predictor import PredictedLabels
from kafeat.study import learners
from kafeat.study.models import ModelScoring, drawn

STEPS = [{"kind": "standardize"}, {"kind": "fourier", "n_components": 32}]
FEW = {"rows": 60, "exact_rows": 60, "jobs": 1}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.select([X[:, 0] > 0.6, X[:, 1] > 0.0], ["a", "b"], "c")
    noise = rng.random(300) < 0.15
    y[noise] = rng.choice(["a", "b", "c"], noise.sum())
    names = {f"x{i}": X[:, i] for i in range(3)}
    part = np.where(np.arange(300) % 4, "train", "test")
    return pa.table({**names, "y": y, "t": X[:, 0] ** 2 + X[:, 1], "u": X[:, 2] * 3.0, "part": part})


def config(kind, left_out):
    return {"columns": {"exclude": left_out}, "steps": [*STEPS, {"kind": kind}]}


@pytest.mark.parametrize("kind", ["ridge", "logistic"])
def test_scores_are_those_of_what_predict_writes(table, kind, tmp_path, in_process, run):
    data, model, out, told = (tmp_path / name for name in ("d.parquet", "m.joblib", "p.csv", "e.json"))
    pq.write_table(table, data)
    recipe = config(kind, ["t", "u"])
    fm = kafeat.fit(recipe, data, label="y", split="part", jobs=1)
    fm.save(model)
    options = split("--label y --split part --scoring f1 --rows 60 --exact-rows 60 --json")
    done = run("evaluate", "--model", model, data, *options, told)
    record = json.loads(told.read_text())
    assert in_process("predict", "--model", model, data, out, "--keep", "y,part").returncode == 0
    written = csv.read_csv(out).to_pandas()
    written = written[written["part"] == "test"]
    p = written[[f"probability_{one}" for one in "abc"]].to_numpy()
    y, predicted = written["y"], written["prediction"]
    expected = {
        "accuracy": accuracy_score(y, predicted), "balanced_accuracy": balanced_accuracy_score(y, predicted),
        "f1": f1_score(y, predicted, average="macro"), "log_loss": log_loss(y, p),
        "auc": roc_auc_score(y, p, multi_class="ovr"), "score": f1_score(y, predicted, average="macro"),
    }  # fmt: skip
    assert {name: record[f"{name}_model"] for name in expected} == pytest.approx(expected, rel=1e-6)
    assert record["test_rows_seen_model"] == 0
    assert re.search(rf"^m.joblib: its own predictions +32 +{expected['f1']:.4f} ± ", done.stdout, re.M)
    # A config is fitted on the same training rows, so its scores are those of the model.
    again = kafeat.evaluate(config=recipe, data=data, label="y", split="part", scoring="f1", **FEW)
    assert {name: again[f"{name}_model"] for name in expected} == pytest.approx(expected, rel=1e-6)


def test_several_numbers_in_any_order(table):
    fm = kafeat.fit(config("ridge", ["y", "part"]), table, label=["t", "u"], jobs=1)
    told = [kafeat.evaluate(fm, table, label, **FEW) for label in (["t", "u"], ["u", "t"])]
    assert told[0]["r2_model"] == pytest.approx(told[1]["r2_model"], rel=1e-12)
    assert told[0]["r2_model"] > 0.5
    assert "calibration_error_model" not in told[0]


def test_another_label_scores_the_features_alone(table):
    fm = kafeat.fit(config("ridge", ["t", "u", "part"]), table, label="y", jobs=1)
    with pytest.warns(kafeat.errors.KafeatWarning, match="predicts y, not t: its predictions are not scored"):
        told = kafeat.evaluate(fm, table, "t", **FEW)
    assert "score_model" not in told
    assert told["score_map"] is not None


def test_a_class_that_the_model_does_not_know_is_a_miss(table):
    known = table.filter(pa.compute.not_equal(table["y"], "c"))
    fm = kafeat.fit(config("ridge", ["t", "u", "part"]), known, label="y", jobs=1)
    told = kafeat.evaluate(fm, table, "y", split="part", **FEW)
    test = table.filter(pa.compute.equal(table["part"], "test"))
    right = fm.predict(test) == test["y"].to_numpy(zero_copy_only=False).astype(str)
    assert told["accuracy_model"] == pytest.approx(right.mean(), rel=1e-12)


def test_a_model_of_the_other_task_is_refused(table):
    fm = kafeat.fit(config("ridge", ["t", "u", "part"]), table, label="y", jobs=1)
    numbers = table.set_column(table.column_names.index("y"), "y", table["t"])
    with pytest.raises(DataError, match="expected classes, which the model predicts, got numbers"):
        kafeat.evaluate(fm, numbers, "y", **FEW)


MODELS = {"Ridge": Ridge, "RidgeClassifier": RidgeClassifier}


@pytest.mark.parametrize("label", ["t", "y"])
def test_ridge_of_scikit_learn_with_the_value_told_scores_the_same(table, label):
    recipe = config("ridge", [name for name in "ytu" if name != label])
    told = kafeat.evaluate(config=recipe, data=table, label=label, split="part", **FEW)
    fm = kafeat.fit(recipe, table, label=label, split="part", jobs=1)
    Z, y = fm.transform(table).astype(float), table[label].to_numpy()
    test = table["part"].to_numpy() == "test"
    for which in ("map", "model"):
        theirs = eval(told[f"equivalent_{which}"], MODELS).fit(Z[~test], y[~test])
        if (label, which) == ("y", "model"):
            # The intercept of ours has the biases of the classes, and targets of 0 and 1 in the place of ±1.
            theirs.intercept_ = 2.0 * fm.predictor.fitted.state["intercept"] - 1.0
        assert theirs.score(Z[test], y[test]) == pytest.approx(told[f"score_{which}"], rel=1e-6)


@pytest.mark.parametrize("classes", ["abc", "ab"])
def test_logistic_regression_of_scikit_learn_with_the_value_told_scores_the_same(table, classes):
    rows = table.filter(pa.compute.is_in(table["y"], pa.array(list(classes))))
    recipe = config("logistic", ["t", "u"])
    told = kafeat.evaluate(config=recipe, data=rows, label="y", split="part", **FEW)
    fm = kafeat.fit(recipe, rows, label="y", split="part", jobs=1)
    Z, y = fm.transform(rows).astype(float), rows["y"].to_numpy().astype(str)
    test = rows["part"].to_numpy() == "test"
    made = eval(told["equivalent_model"], {"LogisticRegression": LogisticRegression})
    theirs = made.set_params(tol=1e-9, max_iter=10_000).fit(Z[~test], y[~test])
    # Both minimize the same strictly convex loss: they differ by their tolerances only.
    assert log_loss(y[test], theirs.predict_proba(Z[test])) == pytest.approx(told["log_loss_model"], rel=1e-4)


def test_calibration_error_is_the_mean_gap_of_the_bins():
    # Four rows at 0.9, half of them right, and two at 0.6, both right.
    p = np.array([[0.9, 0.1]] * 4 + [[0.4, 0.6]] * 2)
    told = reliability(p, np.array([0, 0, 1, 1, 1, 1]))
    assert told.accuracy.tolist() == [1.0, 0.5]
    assert told.error == pytest.approx((2 * 0.4 + 4 * 0.4) / 6, rel=1e-12)


def test_confusion_of_known_predictions():
    labels = PredictedLabels(("y",), "text", ("a", "c"))
    y = np.array(["a", "b", "c", "c"])
    scoring = ModelScoring.of(task_of(y), labels)
    known = scoring.known(learners.Tested(np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]), y))
    _, (counts, classes) = drawn(scoring.task, known)
    assert classes == ("a", "b", "c")
    assert counts.tolist() == [[1, 0, 0], [1, 0, 0], [1, 0, 1]]


@pytest.mark.slow
def test_the_report_draws_the_predictions(table, tmp_path):
    recipe, page = config("ridge", ["t", "u", "part"]), str(tmp_path / "c")
    kafeat.evaluate(config=recipe, data=table, label="y", report=page, **FEW)
    drawn = {path.stem for path in (tmp_path / "c").iterdir()}
    assert {"reliability-map-1", "confusion-map-1"} <= drawn
