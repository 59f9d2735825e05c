"""A metric that is learned from the label, as users see it."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import RidgeCV

import kafeat
from kafeat.errors import ConfigError, DataError, UsageError
from kafeat.jobs.inspect import inspect

DRAWS = np.random.default_rng(0)
X = DRAWS.normal(size=(3000, 20))
Y = np.sin(X[:, 3] - X[:, 11]) + 0.1 * DRAWS.normal(size=3000)
MAP = {"kind": "nystroem", "n_components": 256, "landmarks": "uniform"}


def fit(label: np.ndarray, rows: np.ndarray = X, **parameters: object) -> kafeat.FeatureMap:
    return kafeat.fit({"dtype": "float64", "steps": [{"kind": "metric", **parameters}]}, rows, label)


def test_a_map_after_it_predicts_new_rows_better() -> None:
    train, test = slice(0, 2000), slice(2000, None)
    scores = {}
    for steps in ([MAP], [{"kind": "metric"}, MAP]):
        fm = kafeat.fit({"steps": steps}, X[train], Y[train] if len(steps) == 2 else None)
        model = RidgeCV(10.0 ** np.arange(-8.0, 2.0)).fit(fm.transform(X[train]), Y[train])
        scores[len(steps)] = 1.0 - model.score(fm.transform(X[test]), Y[test])
    assert scores[2] < 0.3 * scores[1], scores


def test_classes_and_texts_are_labels_too() -> None:
    names = np.where(Y > 0.5, "high", np.where(Y < -0.5, "low", "middle")).astype(object)[:1200]
    found = inspect(fit(names, X[:1200]))["steps"][0]
    assert set(list(found["importance"])[:2]) == {"c3", "c11"}
    assert found["fitted"]["error_kept"] < found["fitted"]["error_identity"]


def test_rank_and_diagonal_give_narrow_and_unrotated_rows() -> None:
    narrow = fit(Y[:1000], X[:1000], rank=2).transform(X)
    assert narrow.shape == (3000, 2)
    assert abs(np.corrcoef(narrow[:, 0], X[:, 3] - X[:, 11])[0, 1]) > 0.99
    diagonal = fit(Y[:1000], X[:1000], diagonal=True)
    weights = diagonal.transform(np.ones((1, 20)))[0]
    assert set(np.argsort(weights)[-2:]) == {3, 11}
    assert weights.max() == pytest.approx(1.0)
    np.testing.assert_array_equal(diagonal.transform(np.eye(20)), np.diag(weights))


def test_refused() -> None:
    with pytest.raises(UsageError, match=r"steps\[0\]\.kind: metric: expected a label to learn from"):
        kafeat.fit({"steps": ["metric", MAP]}, X)
    with pytest.raises(ConfigError, match="rank: expected null with diagonal, got 3"):
        fit(Y, rank=3, diagonal=True)
    with pytest.raises(ConfigError, match="fit_rows: expected a whole number of at least 200, got 3"):
        fit(Y, fit_rows=3)
    for label, rows, parameters, told in (
        (Y, X, {"rank": 21}, "metric: rank: expected at most the number of columns, 20, got 21"),
        (Y[:5], np.ones((5, 4097)), {}, "expected at most 4,096 columns, got 4,097; set diagonal: true"),
        (np.zeros(3000), X, {}, "label: expected at least two classes"),
    ):
        with pytest.raises(DataError, match=told):
            fit(label, rows, **parameters)


@pytest.mark.slow
def test_inspect_shows_the_columns_that_a_metric_stretches_most(in_process, digits_table, configs, tmp_path):
    pq.write_table(digits_table, tmp_path / "digits.parquet")
    words = ("--config", configs / "metric.yaml", "digits.parquet", "map.joblib", "--label", "label")
    assert in_process("fit", *words, cwd=tmp_path).returncode == 0
    shown = in_process("inspect", "map.joblib", cwd=tmp_path).stdout
    assert "stretches most: 'p" in shown
    assert "and 56 more" in shown
    assert "directions with 90 % of the weight: " in shown
