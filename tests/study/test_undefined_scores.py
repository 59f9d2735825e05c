"""Rows of one class or of one value: scores that are defined are given, and the others are null."""

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat

metrics = pytest.importorskip("sklearn.metrics")
N = 150
X = np.random.default_rng(2).normal(size=(N, 2))
CLASSES = np.select([X[:, 0] > 0.7, X[:, 1] > 0.3], ["high", "mid"], "low")
NUMBERS, OTHER = 2.0 * X[:, 0] + 1.0, np.sin(X[:, 1])
STEPS = [{"kind": "standardize"}, {"kind": "fourier", "n_components": 16}]
LABELS = {"c": "ridge", "k": "logistic", "v": "ridge", "vu": "ridge"}


def table(rows, **columns):
    every = {"a": X[:, 0], "b": X[:, 1], "k": (X[:, 0] > 0).astype(int)}
    every |= {"c": CLASSES, "v": NUMBERS, "u": OTHER}
    return pa.table({name: np.asarray(values)[rows] for name, values in (every | columns).items()})


def config(*last):
    return {"columns": {"include": ["a", "b"]}, "steps": [*STEPS, *({"kind": one} for one in last)]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    for label, kind in LABELS.items():
        fm = kafeat.fit(config(kind), table(slice(None)), list(label), jobs=1)
        fm.save(folder / f"{label}.joblib")
    some = np.flatnonzero(CLASSES == "high")
    some = some[: 2 * (len(some) // 2) + 1]  # the mean of an odd number of 0.1 is another number
    for name, rows, value in (("one", some, 0.1), ("row", some[:1], 0.1), ("zero", some, 0.0)):
        pq.write_table(table(rows, v=np.full(N, value)), folder / f"{name}.parquet")
    return folder


def strict(text):
    """Parse JSON, in which NaN is no value."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


def record(run, folder, model, data, *words):
    done = run(f"evaluate --model {model}.joblib {data}.parquet --all-rows --json -", *words, cwd=folder)
    assert not done.stderr
    [found] = strict(done.stdout)["records"]
    return found


@pytest.mark.parametrize("data", ["one", "row"])
@pytest.mark.parametrize(("model", "label"), [("c", "c"), ("k", "k")])
def test_all_rows_of_one_class(run, folder, model, label, data):
    found, rows = record(run, folder, model, data), pq.read_table(folder / f"{data}.parquet")
    fm, true = kafeat.load(folder / f"{model}.joblib"), rows[label].to_numpy(zero_copy_only=False)
    right = metrics.accuracy_score(true, fm.predict(rows))
    assert found["score_model"] == found["accuracy_model"] == found["balanced_accuracy_model"] == right
    log_loss = metrics.log_loss(true, fm.predict_proba(rows), labels=fm.classes)
    assert found["log_loss_model"] == pytest.approx(log_loss, rel=1e-9)
    assert found["score_constant"] == 1.0
    assert found["auc_model"] is None
    found = record(run, folder, model, data, "--scoring", "auc")
    assert found["score_model"] is found["score_constant"] is None


@pytest.mark.parametrize("data", ["one", "row", "zero"])
@pytest.mark.parametrize("model", ["v", "vu"])
def test_all_rows_of_one_value(run, folder, model, data):
    found, rows = record(run, folder, model, data), pq.read_table(folder / f"{data}.parquet")
    fm = kafeat.load(folder / f"{model}.joblib")
    true = np.column_stack([rows[name] for name in model])
    predicted = fm.predict(rows).reshape(true.shape)
    assert found["mae_model"] == pytest.approx(metrics.mean_absolute_error(true, predicted), rel=1e-9)
    assert found["mse_model"] == pytest.approx(metrics.mean_squared_error(true, predicted), rel=1e-9)
    assert found["score_model"] is found["r2_model"] is found["score_constant"] is None
    assert record(run, folder, model, data, "--scoring", "mae")["score_model"] == -found["mae_model"]


@pytest.mark.parametrize(("label", "constant", "undefined"), [("c", "high", "auc"), ("v", 0.1, "r2")])
def test_rows_to_test_on_of_one_class_or_value(run, tmp_path, label, constant, undefined):
    part = np.where(np.arange(N) % 5 == 0, "test", "train")
    values = np.where(part == "test", constant, CLASSES if label == "c" else NUMBERS.astype(object))
    values = values if label == "c" else values.astype(float)
    pq.write_table(table(slice(None), **{label: values}, part=part), tmp_path / "d.parquet")
    (tmp_path / "c.yaml").write_text(json.dumps(config("ridge")))
    given = f"d.parquet --label {label} --split part --scoring {undefined}"
    command = f"evaluate --config c.yaml {given} --json e.json --rows 20 --exact-rows 20 --details"
    done = run(command, cwd=tmp_path)
    found = strict((tmp_path / "e.json").read_text())
    assert "undefined" in done.stdout
    for which in ("map", "model", "raw", "exact", "constant"):
        assert found[f"score_{which}"] is found[f"{undefined}_{which}"] is None
        assert found["accuracy_" + which if label == "c" else "mae_" + which] >= 0.0
    made = kafeat.evaluate(
        config=config("ridge"), data=tmp_path / "d.parquet", label=label, split="part", scoring=undefined, rows=20,
        exact_rows=20, jobs=1,
    )  # fmt: skip
    assert "undefined" in made._repr_html_()
    command = f"tune {given} --columns 8 --trials 2 --json t.json".replace("d.parquet", "d.parquet best.yaml")
    tuned = run(command, cwd=tmp_path)
    assert strict((tmp_path / "t.json").read_text())["test_score"] is None
    assert f"{'AUC' if label == 'c' else 'R²'} undefined on 30 test rows" in tuned.stdout
    assert "nan" not in tuned.stdout + tuned.stderr + (tmp_path / "best.yaml").read_text()


def test_r2_of_equal_numbers_is_undefined_whatever_their_mean_rounds_to():
    from kafeat.maths.task import r2

    for value in (0.1, 0.3, 1e-300, 7.7):
        for n in range(1, 12):
            Y = np.column_stack([np.full(n, value), np.arange(n)])
            assert math.isnan(r2(Y + 0.5, Y))
