"""What columns are worth: against scikit-learn's permutation importance, and where a metric has misled."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.inspection import permutation_importance

import kafeat
from kafeat.contract.ngrams import BUCKETS
from kafeat.contract.tile import SparseRows, TextRows
from kafeat.io.columns.columns import Column, Columns
from kafeat.maths.row_sample import row_hashes
from kafeat.study.importance import Losses, rows_to_shuffle, score_losses, with_column_of

N = 1000


@pytest.fixture(autouse=True)
def no_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out pictures, which are most of the time of a report."""
    monkeypatch.setattr("kafeat.study.report.page.pictures", lambda *_: ())
    monkeypatch.setattr("kafeat.study.tune.report._pictures", lambda _: ())


def rare(n: int = N) -> pa.Table:
    """A strong column, one that is half as strong, noise, and a category that few rows have, with a large step."""
    rng = np.random.default_rng(0)
    strong, weak, noise = rng.normal(size=(3, n))
    flag = (np.arange(n) % 200 == 0).astype(float)
    y = 2.0 * strong + weak + 4.0 * flag + 0.3 * rng.normal(size=n)
    names = ("strong", "weak", "noise", "flag", "y")
    return pa.table(dict(zip(names, (strong, weak, noise, flag, y), strict=True)))


class Model(RegressorMixin, BaseEstimator):
    def __init__(self, fm: Any = None) -> None:
        self.fm = fm

    def fit(self, X: Any, y: Any) -> Any:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Any:
        return self.fm.predict(X)


def agree(found: dict[str, Any], oracle: Any, names: list[str]) -> None:
    """Both are means of draws of one distribution: they differ by standard errors."""
    repeats = oracle.importances.shape[1]
    for j, name in enumerate(names):
        error = np.hypot(found["importance_error"][name], oracle.importances_std[j] / np.sqrt(repeats))
        # The standard error of five draws is t-distributed: 8 of them hold but for one in a thousand.
        assert found["importance"][name] == pytest.approx(oracle.importances_mean[j], abs=8.0 * error + 1e-12)


def held_out(n: int, seed: int) -> np.ndarray:
    """The fifth of the rows with the largest hashes, which an evaluation holds out."""
    return np.sort(np.argsort(row_hashes(seed, 0, n))[n - n // 5 :])


@pytest.mark.parametrize("scoring", ["r2", "mae"])
def test_a_model_of_numbers_agrees_with_scikit_learn(scoring: str, tmp_path: Any) -> None:
    table = rare()
    steps = ["standardize", {"kind": "fourier", "n_components": 64}, "ridge"]
    fm = kafeat.fit({"steps": steps}, table, label="y")
    asked = {"label": "y", "scoring": [scoring], "report": str(tmp_path / "page"), "jobs": 1}
    found = kafeat.evaluate(fm, data=table, **asked)
    rows, names = held_out(N, fm.config.seed), ["strong", "weak", "noise", "flag"]
    X = np.column_stack([table[name] for name in names])[rows]
    measure = {"r2": "r2", "mae": "neg_mean_absolute_error"}[scoring]
    y, draws = table["y"].to_numpy()[rows], {"n_repeats": 30, "random_state": 0}
    oracle = permutation_importance(Model(fm), X, y, scoring=measure, **draws)
    agree(found, oracle, names)
    assert list(found["importance"]) == sorted(names, key=lambda name: -found["importance"][name])


def test_a_rare_category_does_not_outweigh_the_strongest_column(tmp_path: Any) -> None:
    table = rare()
    steps = ["quantile", "metric", {"kind": "nystroem", "n_components": 64}]
    shares = kafeat.fit({"steps": steps}, table, label="y").chain.steps[1].state["importance"]
    of_page = kafeat.evaluate(
        config={"steps": steps}, data=table, label="y", report=str(tmp_path / "page"), jobs=1
    )["importance"]
    tuning = kafeat.tune(table, "y", 64, trials=4, jobs=1, report=str(tmp_path / "tuned"))
    assert shares[3] > 2.0 * shares[0]  # what misled: a slope
    for found in (of_page, tuning.importance):
        assert list(found)[:2] == ["strong", "weak"]
        assert found["strong"] > 5.0 * found["flag"]
        assert abs(found["noise"]) < 0.05
    plain = tuning.to_plain()
    assert plain["importance"] == tuning.importance
    assert set(plain["importance_error"]) == set(tuning.importance)


def test_tune_measures_classes_with_probabilities_that_were_calibrated_before(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 600))
    y = np.where(rng.random(600) < 1.0 / (1.0 + np.exp(-3.0 * a)), "x", "z")
    table = pa.table({"a": a, "b": b, "y": y})
    run = lambda: kafeat.tune(table, "y", 16, trials=3, jobs=1, report=str(tmp_path / "page"))  # noqa: E731
    first, again = run(), run()
    assert first.importance == again.importance
    # Without the only column that tells anything, calibrated probabilities are worse than a constant's.
    lost = first.score - first.constant_score
    assert first.importance["a"] > lost - 4.0 * first.error
    assert abs(first.importance["b"]) < 0.05


@pytest.mark.parametrize("form", ["dense", "sparse", "texts"])
def test_a_column_is_shuffled_as_a_whole_and_alone(form: str) -> None:
    rng = np.random.default_rng(0)
    numbers, order = rng.normal(size=(20, 4)), rng.permutation(20)
    if form == "texts":
        texts = np.array([[f"text {i}"] for i in range(20)], dtype=object)
        X: Any = TextRows(numbers, texts, np.array([0, *range(BUCKETS + 1, BUCKETS + 4)]), np.array([1]))
        for place in (slice(0, 1), slice(1, BUCKETS + 1), slice(BUCKETS + 1, BUCKETS + 3)):
            expected = X.dense()
            expected[:, place] = expected[order][:, place]
            np.testing.assert_array_equal(with_column_of(X, place, order).dense(), expected)
        return
    X = numbers
    if form == "sparse":
        X = SparseRows(numbers.ravel(), np.tile(np.arange(4), 20), np.arange(0, 81, 4), 4)
    expected = numbers.copy()
    expected[:, 1:3] = expected[order, 1:3]
    np.testing.assert_array_equal(with_column_of(X, slice(1, 3), order), expected)
    np.testing.assert_array_equal(numbers, X if form == "dense" else X.dense())


def losses(X: np.ndarray, y: np.ndarray, weights: list[float], places: dict[str, slice]) -> Losses | None:
    score = lambda predicted: -float(np.mean((predicted[:, 0] - y) ** 2))  # noqa: E731
    return score_losses(places, [(X, lambda rows: (rows @ weights)[:, None])], score, 0)


def test_losses_of_a_linear_model_are_those_of_the_formula() -> None:
    """Of the true linear model and independent columns, shuffling column j adds 2 wⱼ² var(xⱼ) to the squared error."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 3))
    places = {name: slice(j, j + 1) for j, name in enumerate("abc")}
    found = losses(X, X @ [3.0, 1.0, 0.0], [3.0, 1.0, 0.0], places)
    assert found is not None
    for name, weight in zip("ab", (3.0, 1.0), strict=True):
        assert found[name].mean == pytest.approx(2.0 * weight**2, rel=0.05)
        assert 0.0 < found[name].error < 0.05 * found[name].mean
    assert found["c"] == (0.0, 0.0)
    assert list(found) == ["a", "b", "c"]


def test_all_features_of_a_column_belong_together() -> None:
    text, several = Column("review", BUCKETS, text=True), Column("x", 3)
    columns = Columns((Column("a", None), text, several), False, None)
    ends = {"a": slice(0, 1), "review": slice(1, BUCKETS + 1), "x": slice(BUCKETS + 1, BUCKETS + 4)}
    assert columns.named_places == ends
    assert Columns((text,), False, None).named_places == {"review": slice(0, BUCKETS)}
    assert Columns((several,), False, None).named_places == {f"x[{j}]": slice(j, j + 1) for j in range(3)}


def test_work_is_bounded() -> None:
    assert rows_to_shuffle(5, 64) == 1000
    assert rows_to_shuffle(300, 2048) == 200
    assert rows_to_shuffle(301, 8) == 0


def test_what_has_no_columns_has_no_losses(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    table = pa.table({**{f"k{j}": K[:, j] for j in range(60)}, "y": X[:, 0]})
    steps = [{"kind": "nystroem", "kernel": "precomputed", "n_components": 8}]
    asked = {"label": "y", "report": str(tmp_path / "page"), "jobs": 1}
    found = kafeat.evaluate(config={"steps": steps}, data=table, **asked)
    assert "importance" not in found
    assert json.dumps(found["records"])
