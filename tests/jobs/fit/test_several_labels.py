"""Several label columns: none is a feature, and steps that learn see all of them."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

import kafeat
from kafeat.errors import DataError, UsageError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3))
Y = np.column_stack([np.sin(3.0 * X[:, 0]), X[:, 1] ** 2, RNG.integers(0, 3, 240)])
TABLE = pa.table({
    "a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y 1": Y[:, 0], "y2": Y[:, 1], "n": Y[:, 2].astype(int),
    "t": ["cat", "dog"] * 120,
})  # fmt: skip
FEATURES = TABLE.select(["a", "b", "c"])
STEPS = {
    "metric": {"kind": "metric", "iterations": 1, "rank": 2},
    "residual": {"kind": "nystroem", "n_components": 16, "landmarks": "residual"},
    "auto": {"kind": "nystroem", "n_components": 16},
    "supervised": {"kind": "fourier", "n_components": 8, "frequencies": "supervised"},
    "validate": {"kind": "fourier", "n_components": 8, "gamma": {"validate": [0.01, 1.0]}},
}


@pytest.mark.parametrize("step", STEPS)
def test_steps_that_learn_see_every_label(step):
    config = {"steps": [STEPS[step]]}
    named = kafeat.fit(config, TABLE.drop_columns(["t"]), label=["y 1", "y2", "n"])
    assert named.columns.names == ("a", "b", "c")
    given, alone = kafeat.fit(config, FEATURES, label=Y), kafeat.fit(config, FEATURES, label=Y[:, 0])
    assert np.array_equal(named.transform(X), given.transform(X))
    if step != "validate":
        assert not np.array_equal(named.transform(X), alone.transform(X))


def test_one_label_in_a_list_is_that_label():
    config = {"steps": [STEPS["residual"]]}
    table = TABLE.select(["a", "b", "c", "y 1"])
    assert kafeat.fit(config, table, label=["y 1"]).dumps() == kafeat.fit(config, table, label="y 1").dumps()


def test_a_list_with_an_entry_for_every_row_holds_the_labels():
    config = {"steps": [STEPS["auto"]]}
    listed = kafeat.fit(config, FEATURES, label=TABLE["t"].to_pylist())
    assert listed.dumps() == kafeat.fit(config, FEATURES, label=np.array(TABLE["t"].to_pylist())).dumps()


@pytest.mark.parametrize(("label", "error", "message"), [
    (["y 1", "t"], DataError, "label 't': expected numbers, as there are 2 labels, got text; fit a separate map"),
    (["y 1", "y2", "y 1"], UsageError, "label: expected each column once, got 'y 1' twice"),
    (["y 1", "y3"], DataError, "--label: expected the column 'y3', got a, b, c, y 1, y2, n, t"),
])  # fmt: skip
def test_labels_that_are_refused(label, error, message):
    for run in (
        lambda: kafeat.fit({"steps": [STEPS["auto"]]}, TABLE, label=label),
        lambda: kafeat.evaluate(config={"steps": [STEPS["auto"]]}, data=TABLE, label=label),
        lambda: kafeat.tune(TABLE, label, 8, trials=1),
    ):
        with pytest.raises(error, match=message):
            run()


def test_evaluate_averages_the_scores_of_the_labels():
    """The score of a label beside a multiple of it is its own, and pure noise beside it takes away half or more."""
    config, y = {"steps": [STEPS["auto"]]}, TABLE["y 1"].to_numpy()
    alone = TABLE.select(["a", "b", "c", "y 1"])

    def score(*other: float) -> float:
        table = alone.append_column("other", pa.array(other)) if other else alone
        found = kafeat.evaluate(config=config, data=table, label=table.column_names[3:], jobs=1)
        assert found["task"] == "regression"
        return found["score_raw"]

    assert score(*(-3.0 * y + 1.0)) == pytest.approx(score(), rel=1e-9)
    assert score(*np.random.default_rng(1).normal(size=240)) < score() / 2 + 0.01


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"learner": "logistic"}, UsageError, "learner: expected ridge, as there are 2 labels, got logistic"),
    ({"task": "classification"}, DataError, "label: expected one label if it has classes, got 2: several"),
])  # fmt: skip
def test_evaluate_refuses_what_it_cannot_score(options, error, message):
    config, table = {"steps": [STEPS["auto"]]}, TABLE.drop_columns(["t", "n"])
    with pytest.raises(error, match=message):
        kafeat.evaluate(config=config, data=table, label=["y 1", "y2"], **options)


def test_tune_predicts_all_labels():
    tuning = kafeat.tune(TABLE.drop_columns(["t", "n"]), ["y 1", "y2"], 16, trials=1, seeds=1, jobs=1)
    assert "for the labels 'y 1', 'y2' from" in " ".join(tuning.yaml.replace("#", " ").split())
    assert tuning.fit().columns.names == ("a", "b", "c")


def test_on_the_command_line(in_process, run, tmp_path, monkeypatch):
    """The option is repeated, and the environment holds one name, spaces and all."""
    monkeypatch.chdir(tmp_path)
    pa_csv.write_csv(TABLE.drop_columns(["t", "n"]), "x.csv")
    (tmp_path / "c.yaml").write_text(json.dumps({"steps": [STEPS["residual"]]}))
    both, fit = ("--label", "y 1", "--label", "y2"), ("fit", "--config", "c.yaml", "x.csv", "m")
    done = run(*fit, *both)
    assert done.stderr == "x.csv: 3 features: a, b, c; left out: y 1, y2 (--label)\n"
    assert "\nlabels: y 1, y2\n" in in_process("inspect", "m").stdout
    assert kafeat.fit("c.yaml", "x.csv", label=["y 1", "y2"]).dumps() == kafeat.load("m").dumps()
    evaluated = in_process("evaluate", "--model", "m", "x.csv", *both, "--json", "-", "-q")
    assert json.loads(evaluated.stdout)["label"] == ["y 1", "y2"]
    run(*fit, "-q", KAFEAT_LABEL="y 1")
    assert kafeat.load("m").provenance.label == "y 1"
