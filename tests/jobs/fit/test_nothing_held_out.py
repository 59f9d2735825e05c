"""A search on rows of which none can be held out is an error, in fit, tune and evaluate."""

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.contract.folds import FOLDS, Folded, Folds, RowKeys
from kafeat.errors import DataError
from kafeat.maths.row_sample import row_hashes

N = 60
X = np.random.default_rng(5).normal(size=(N, 2))
CLASSES = np.where(X[:, 0] > 0.0, "a", "b")
STEPS = [{"kind": "standardize"}, {"kind": "fourier", "n_components": 8, "gamma": 0.5}]
# A predictor, its penalty, and its label.
SEARCHES = [
    ("ridge", "auto", X[:, 0]), ("ridge", {"validate": [1e-3, 1e-2]}, X[:, 0]), ("ridge", "auto", CLASSES),
    ("ridge", 0.1, CLASSES), ("logistic", "auto", CLASSES),
]  # fmt: skip


def table(label, keys):
    return pa.table({"a": X[:, 0], "b": X[:, 1], "y": label, "k": keys})


def config(*last, steps=STEPS):
    return {"columns": {"include": ["a", "b"]}, "steps": [*steps, *last]}


@pytest.mark.parametrize("way", ["group", "time"])
@pytest.mark.parametrize(("kind", "penalty", "label"), SEARCHES)
def test_a_fit_on_one_group_or_time(kind, penalty, label, way):
    expected = {"group": "several groups among the rows, got one, so", "time": "times that differ among"}[way]
    with pytest.raises(DataError, match=f"<table>: split_by: expected {expected}"):
        recipe = config({"kind": kind, "penalty": penalty})
        kafeat.fit(recipe, table(label, np.ones(N)), "y", split_by=f"{way}:k")


@pytest.mark.parametrize(("kind", "penalty", "label"), SEARCHES)
def test_a_fit_on_rows_of_one_random_part(kind, penalty, label):
    few = table(label, np.ones(N)).slice(0, 4)
    seed = next(one for one in range(100) if not np.ptp(row_hashes(one, 0, 4) % np.uint64(FOLDS)))
    assert len(set(few["y"].to_pylist())) > 1
    with pytest.raises(DataError, match="penalty: expected rows in at least two of the 3 random parts"):
        kafeat.fit({**config({"kind": kind, "penalty": penalty}), "seed": seed}, few, "y", jobs=1)


def test_what_needs_no_search_needs_no_rows_held_out():
    for kind, label in (("ridge", X[:, 0]), ("logistic", CLASSES)):
        recipe, data = config({"kind": kind, "penalty": 0.1}), table(label, np.ones(N))
        fm = kafeat.fit(recipe, data, "y", split_by="group:k", intervals=False, jobs=1)
        assert fm.provenance.rows_learned == N


TWO = np.arange(N) % 2


def test_values_of_validate_with_one_group_to_learn_from():
    steps = [STEPS[0], {**STEPS[1], "gamma": {"validate": [0.1, 1.0]}}]
    with pytest.raises(DataError, match=r"steps\[1\].gamma = 0.1: split_by: expected several groups"):
        kafeat.fit(config(steps=steps), table(X[:, 0], TWO), "y", split_by="group:k", jobs=1)


def test_tune_with_one_group_to_learn_from():
    with pytest.raises(DataError, match="split_by: expected several groups among the rows, got one, so"):
        kafeat.tune(table(X[:, 0], TWO), "y", 8, trials=2, split_by="group:k", jobs=1)


@pytest.mark.parametrize("learner", ["ridge", "linear_svc", "logistic", "sgd"])
def test_learners_of_evaluate_with_one_group_to_learn_from(learner):
    if learner != "ridge":
        pytest.importorskip("sklearn")
    given = {"label": "y", "split_by": "group:k", "learner": learner, "rows": 20, "exact_rows": 30, "jobs": 1}
    data = table(CLASSES, TWO)
    with pytest.raises(DataError, match="split_by: expected several groups among the rows, got one, so"):
        kafeat.evaluate(config=config(), data=data, **given)
    if learner != "sgd":  # which chooses the number of its passes by rows held out too
        assert kafeat.evaluate(config=config(), data=data, penalty=0.1, **given)["score_map"] > 0.5


@pytest.mark.parametrize("ordered", [False, True])
def test_keys_are_no_hashes(ordered):
    keys = RowKeys(np.random.default_rng(0).random(30), ordered)
    told = "expected hashes, which random parts need, got keys, which need edges"
    with pytest.raises(TypeError, match=told):
        Folds().parts(keys.values)
    folded = Folded.of(keys, 30)
    for train, held in folded.cuts:
        assert not (train & held).any()
        assert not ordered or keys.values[train].max() < keys.values[held].min()
