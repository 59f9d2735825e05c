"""Probabilities of classes as the label, which a slower model has predicted: `task: soft`."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, log_loss

import kafeat
from kafeat.errors import ConfigError, DataError, UsageError
from kafeat.maths.scoring import SCORES
from kafeat.maths.task import classes_of_columns, task_of
from kafeat.sklearn import FeatureMapClassifier
from kafeat.study.models import score_predictions

RNG = np.random.default_rng(0)
N, NAMES = 300, ["p_ant", "p_bee", "p_cow"]
X = RNG.normal(size=(N, 3))
P = np.exp(2.0 * X @ RNG.normal(size=(3, 3)))
P /= P.sum(axis=1, keepdims=True)
HARD = np.array(["ant", "bee", "cow"])[P.argmax(axis=1)]
TABLE = pa.table(dict(zip("abc", X.T, strict=True)) | dict(zip(NAMES, P.T, strict=True)))
WITH_CLASSES = TABLE.append_column("animal", pa.array(HARD))


def config(kind="ridge", **parameters):
    step = {"kind": kind, "task": "soft", "penalty": 0.1, **parameters}
    return {"dtype": "float64", "columns": {"exclude": ["animal"]}, "steps": ["standardize", step]}


def fitted(kind="ridge", table=TABLE, label=tuple(NAMES), **options):
    return kafeat.fit(config(kind), table, label=label, jobs=1, **options)


def test_logistic_is_that_of_rows_repeated_for_each_class_with_its_probability_as_weight():
    weights = np.random.default_rng(1).random(N)
    fm = fitted("logistic", TABLE.append_column("w", pa.array(weights)), weight="w")
    Z, shares = fm.transform(X), (P * weights[:, None]).ravel(order="F")
    theirs = LogisticRegression(
        C=1.0 / float(fm.predictor.fitted.state["lambda"]), tol=1e-10, max_iter=10_000
    )
    theirs.fit(np.tile(Z, (3, 1)), np.repeat([0, 1, 2], N), shares)
    # Gradients of at most 1e-9 a row, as for classes.
    np.testing.assert_allclose(fm.predict_proba(X), theirs.predict_proba(Z), rtol=0, atol=1e-5)


def test_ridge_predicts_the_probabilities_and_calibrates_them():
    fm = fitted()
    state, Z = fm.predictor.fitted.state, fm.transform(X)
    theirs = Ridge(alpha=float(state["lambda"]), solver="cholesky").fit(Z, P)
    np.testing.assert_allclose(state["weights"], theirs.coef_.T, rtol=0, atol=1e-9)
    made = fm.predict_proba(X)
    # exp, sum and quotient of three numbers
    np.testing.assert_allclose(made.sum(axis=1), 1.0, rtol=0, atol=10 * np.finfo(float).eps)
    # At the optimum of the calibration, mean probabilities differ by bias / n from those of the label.
    np.testing.assert_allclose(made.mean(axis=0), P.mean(axis=0), rtol=0, atol=0.02)


@pytest.mark.parametrize("kind", ["ridge", "logistic"])
def test_probabilities_of_0_and_1_give_the_model_of_the_classes(kind):
    hard = kafeat.fit(config(kind, task="auto"), X, label=HARD)
    soft = kafeat.fit(config(kind), X, label=np.eye(3, dtype=int)[P.argmax(axis=1)])
    for name, array in hard.predictor.fitted.state.items():
        assert np.array_equal(array, soft.predictor.fitted.state[name])
    assert soft.classes.tolist() == [0, 1, 2]


@pytest.mark.parametrize(("columns", "classes"), [
    (["p_setosa", "p_versicolor", "p_virginica"], ["setosa", "versicolor", "virginica"]),
    (["p_versicolor", "p_virginica"], ["versicolor", "virginica"]),
    (["probability_10", "probability_11"], ["10", "11"]),
    (["p_a_x", "p_a_y", "p_b"], ["a_x", "a_y", "b"]),
    (["p_", "p_a"], ["p_", "p_a"]),
    (["yes", "no"], ["yes", "no"]),
])  # fmt: skip
def test_classes_are_the_columns_without_their_common_prefix(columns, classes):
    assert classes_of_columns(columns) == classes


@pytest.mark.parametrize(("name", "write"), [("x.csv", csv.write_csv), ("x.parquet", pq.write_table)])
def test_files_tables_and_the_order_of_columns_give_one_model(name, write, tmp_path, in_process):
    file, model = str(tmp_path / name), str(tmp_path / "m")
    write(WITH_CLASSES, file)
    (tmp_path / "c.yaml").write_text(json.dumps(config("logistic")))
    labels = [word for name in reversed(NAMES) for word in ("--label", name)]
    said = in_process("fit", "--config", tmp_path / "c.yaml", file, model, *labels).stderr
    assert "label: probabilities of classes (3 columns, in 300 rows" in said
    fm = fitted("logistic", WITH_CLASSES)
    assert np.array_equal(kafeat.load(model).predict_proba(X), fm.predict_proba(X))
    lines = in_process("predict", "--model", model, file, "-", "--keep", "animal").stdout.splitlines()
    assert lines[0] == "animal,prediction,probability_ant,probability_bee,probability_cow"
    assert [line.split(",")[1] for line in lines[1:]] == fm.predict(X).tolist()
    told = in_process("inspect", model).stdout
    assert "predicts 3 classes (ant, bee, cow), fitted on 300 rows" in told
    assert "labels: p_ant, p_bee, p_cow" in told


def test_scores_are_those_of_rows_repeated_for_each_class(tmp_path):
    saved = str(tmp_path / "m")
    fitted("logistic").save(saved)
    made = kafeat.load(saved).predict_proba(X)
    task = task_of(P, "soft", NAMES)
    repeated = np.repeat([0, 1, 2], N), np.tile(made, (3, 1))
    expected = log_loss(*repeated, sample_weight=P.ravel(order="F"))
    assert SCORES["log_loss"].figure(task, made, P) == pytest.approx(expected, rel=1e-12)
    assert SCORES["brier"].figure(task, made, P) == pytest.approx(np.square(made - P).sum(axis=1).mean())
    right = accuracy_score(P.argmax(axis=1), made.argmax(axis=1))
    assert SCORES["accuracy"].figure(task, made, P) == right
    [of_soft, of_hard] = [
        score_predictions([saved], WITH_CLASSES, label)[0].scored.tested["model"]
        for label in (NAMES, ["animal"])
    ]  # fmt: skip
    assert of_soft["log_loss"] == pytest.approx(expected, rel=1e-12)
    assert of_soft["accuracy"] == of_hard["accuracy"] == right
    assert "calibration_error" in of_hard.keys() - of_soft.keys()


def test_tune_chooses_by_the_log_loss_and_evaluate_scores_the_recipe():
    tuning = kafeat.tune(TABLE, NAMES, 8, task="soft", predictor="logistic", trials=2, seeds=1, jobs=1)
    assert str(tuning.scoring) == "log loss"
    assert tuning.config.predictor.task == "soft"
    assert tuning.boosting is None
    shares = P.mean(axis=0)
    # A constant predicts the mean of the label. Its loss is the entropy of that.
    assert tuning.scoring.stated(tuning.constant_score) == pytest.approx(-shares @ np.log(shares), rel=1e-9)
    assert tuning.score > tuning.constant_score
    again = kafeat.tune(TABLE, NAMES, 8, base=tuning.config, trials=1, seeds=1, boosting=False, jobs=1)
    assert again.config.predictor.task == "soft"
    assert tuning.fit().classes.tolist() == ["ant", "bee", "cow"]
    found = kafeat.evaluate(config=tuning.config, data=TABLE, label=NAMES[::-1], jobs=1)
    assert (found["task"], found["label"]) == ("classification", NAMES)
    assert found["log_loss_model"] < found["log_loss_constant"]


def test_steps_that_learn_from_probabilities_gain_nothing_from_labels_of_noise():
    noise = np.random.default_rng(1).dirichlet(np.ones(3), size=N)
    steps = [{"kind": "trees", "n_components": 3, "n_trees": 30}, {"kind": "logistic", "task": "soft"}]
    (search,) = kafeat.fit({"steps": steps}, X, label=noise).provenance.searches
    # Trees that had seen a row would know its noise. The standard error of the share of the loss is below 0.02.
    assert max(search.scores) < 0.05


def spoilt(row, values):
    spoilt = P.copy()
    spoilt[row] = values
    return TABLE.set_column(3, "p_ant", pa.array(spoilt[:, 0])).set_column(4, "p_bee", pa.array(spoilt[:, 1]))


SUM = r"labels p_ant, p_bee, p_cow: row 8 \(index 7\): expected probabilities of at least 0 with the sum 1 "
# What must know of probabilities and does not: each refuses them in one sentence.
REFUSED = {
    "sum": (lambda: fitted(table=spoilt(7, P[7] + 0.2)), DataError, SUM + r"\(within 0.01\), got .* with the sum 1.4"),
    "negative": (lambda: fitted(table=spoilt(7, [-0.5, 1.5 - P[7, 2], 0.0])), DataError, SUM + ".*got -0.5 to"),
    "class left out": (lambda: fitted(label=NAMES[:2]), DataError, "give the column of every class"),
    "one column": (lambda: fitted(label="p_ant"), UsageError, "expected several columns with `task: soft`.*'p_ant'"),
    "classes": (lambda: kafeat.fit(config(), X, HARD), UsageError, r"an array \(300, k\) of the probabilities"),
    "no label": (lambda: kafeat.fit(config(), TABLE), UsageError, "expected a label to predict"),
    "class weights": (lambda: fitted(class_weight="balanced"), ConfigError, "class_weight: expected none with `task"),
    "intervals": (
        lambda: fitted(intervals=True).predict_interval(X), UsageError, "on a label other than probabilities",
    ),
    "learner": (
        lambda: kafeat.evaluate(config=config(), data=TABLE, label=NAMES, learner="logistic"),
        UsageError, "learner: expected ridge",
    ),
    "two tasks": (
        lambda: kafeat.evaluate(config=config(), data=TABLE, label=NAMES, task="regression"),
        UsageError, "expected the same task for --task and all maps, got soft and regression",
    ),
    "two tasks of tune": (
        lambda: kafeat.tune(TABLE, NAMES, task="soft", base=config(task="regression")),
        UsageError, "expected regression, the task of the predictor in the config, got soft",
    ),
    "scikit-learn": (
        lambda: FeatureMapClassifier(config()["steps"]).fit(X, HARD),
        UsageError, "ridge: task: expected auto or classification, got soft",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_one_sentence_refuses(case):
    run, error, told = REFUSED[case]
    with pytest.raises(error, match=told):
        run()


def test_sums_within_the_tolerance_are_divided_out():
    rounded = fitted(table=TABLE.set_column(3, "p_ant", pa.array(P[:, 0] + 0.005)))
    exact = P + np.array([0.005, 0.0, 0.0])
    made = fitted(label=exact / exact.sum(axis=1, keepdims=True), table=X).predict_proba(X)
    np.testing.assert_allclose(rounded.predict_proba(X), made, rtol=0, atol=1e-12)
