"""Weights above 0 in few rows: a fit says what is missing."""

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.contract.folds import FOLDS
from kafeat.errors import DataError
from kafeat.maths.row_sample import row_hashes

N = 60
X = np.random.default_rng(3).normal(size=(N, 2))
Y = np.arange(N) % 3
OF_FOLD = row_hashes(0, 0, N) % np.uint64(FOLDS)
PENALTIES = ("auto", 1e-3, {"validate": [1e-4, 1e-2]})


def fit(weights: np.ndarray, predictor: str, penalty: object, label: np.ndarray = Y) -> kafeat.FeatureMap:
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": label, "w": weights.astype(float)})
    steps = ["standardize", {"kind": predictor, "penalty": penalty}]
    return kafeat.fit({"steps": steps}, table, "y", weight="w", jobs=1)


@pytest.mark.parametrize("penalty", PENALTIES, ids=["auto", "number", "validate"])
@pytest.mark.parametrize("predictor", ["ridge", "logistic"])
@pytest.mark.parametrize("rows", [[7], np.flatnonzero(OF_FOLD == 1), []], ids=["one row", "one fold", "none"])
def test_one_fold_of_weights_is_refused(rows, predictor, penalty):
    weights = np.zeros(N)
    weights[rows] = 2.0
    got = int(len(rows) > 0)
    told = rf"<table>: weight 'w': expected numbers above 0 .*, got them in {got}: give"
    with pytest.raises(DataError, match=told):
        fit(weights, predictor, penalty)


@pytest.mark.sampled
@pytest.mark.parametrize("penalty", PENALTIES, ids=["auto", "number", "validate"])
@pytest.mark.parametrize("predictor", ["ridge", "logistic", "ridge of numbers"])
@pytest.mark.parametrize("size", [1, 2, 10])
@pytest.mark.parametrize("folds", [(0, 1), (0, 2), (0, 1, 2)])
def test_few_rows_of_some_folds_are_enough(folds, size, predictor, penalty):
    weights = np.zeros(N)
    for fold in folds:
        weights[np.flatnonzero(fold == OF_FOLD)[:size]] = 3.0
    kind, _, numbers = predictor.partition(" of ")
    fm = fit(weights, kind, penalty, X[:, 0] if numbers else Y)
    assert np.isfinite(fm.predict(X) if numbers else fm.predict_proba(X)).all()
    assert fm.provenance.rows_learned == size * len(folds)
