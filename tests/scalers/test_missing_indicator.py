"""Indicators of missing numbers against scikit-learn's, in every format, and what is no missing number."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.impute import MissingIndicator, SimpleImputer

import kafeat
from kafeat.errors import DataError

MEDIAN = {"kind": "impute", "strategy": "median"}


@pytest.fixture
def holes() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    X[:, [0, 2, 3]] = np.where(rng.random((300, 3)) < 0.3, np.nan, X[:, [0, 2, 3]])
    return X


def config(columns: str = "missing", *more: object, **rest: object) -> dict[str, object]:
    steps = [{"kind": "missing_indicator", "columns": columns}, *(more or (MEDIAN,))]
    return {"dtype": "float64", "steps": steps, **rest}


@pytest.mark.parametrize(("columns", "features"), [("missing", "missing-only"), ("all", "all")])
def test_is_scikit_learns(holes: np.ndarray, columns: str, features: str) -> None:
    fm = kafeat.fit(config(columns), holes[:200])
    peer = MissingIndicator(features=features).fit(holes[:200])
    fills = SimpleImputer(strategy="median").fit(holes[:200])
    want = np.hstack([fills.transform(holes), peer.transform(holes)])
    np.testing.assert_array_equal(fm.transform(holes), want)


def test_without_missing_numbers_nothing_is_added() -> None:
    X = np.arange(6.0).reshape(3, 2)
    fm = kafeat.fit(config(), X)
    np.testing.assert_array_equal(fm.transform(X), X)
    # A later missing number is filled, and no column says so: `columns: all` does.
    np.testing.assert_array_equal(fm.transform([[np.nan, 1.0]]), [[2.0, 1.0]])
    np.testing.assert_array_equal(kafeat.fit(config("all"), X).transform([[np.nan, 1.0]]), [[2.0, 1.0, 1, 0]])


def test_without_impute_a_missing_number_is_refused(holes: np.ndarray) -> None:
    fm = kafeat.fit(config("all", {"kind": "standardize"}), holes[:, 1:2])
    with pytest.raises(DataError, match="expected a finite number, got nan"):
        fm.transform([[np.nan]])
    with pytest.raises(DataError, match=r"row \d+ .*column 'c0': expected a finite number, got nan"):
        kafeat.fit(config("missing", {"kind": "standardize"}), holes)


def test_columns_keep_their_names_behind_it() -> None:
    table = pa.table({"a": ["x", "y", "x"], "b": [1.0, None, 3.0], "c": [1.0, 2.0, 3.0]})
    one_hot = {"kind": "one_hot", "columns": ["a"]}
    fm = kafeat.fit(config("missing", MEDIAN, one_hot), table)
    np.testing.assert_array_equal(fm.transform(table), [[1, 1, 0, 1, 0], [2, 2, 1, 0, 1], [3, 3, 0, 1, 0]])
    union = {"kind": "union", "maps": [{"columns": ["b"], "steps": [{"kind": "minmax"}]}]}
    fm = kafeat.fit(config("all", MEDIAN, union), table.select(["b", "c"]))
    np.testing.assert_array_equal(fm.transform(table), [[0.0], [0.5], [1.0]])
    # A category is never a missing number, so it has no indicator.
    both = kafeat.fit(config("all", MEDIAN, one_hot), table)
    assert both.n_components == 3 - 1 + 2 + 2
