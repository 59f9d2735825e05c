"""Missing numbers from every format against scikit-learn's SimpleImputer, and what is no missing number."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.impute import SimpleImputer

import kafeat
from kafeat.errors import DataError
from tests.jobs.files import transform_file

CHOICES = [("mean", {}), ("median", {}), ("constant", {"value": -2.5})]


@pytest.fixture
def holes() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) + 5.0
    X[rng.random(X.shape) < 0.3] = np.nan
    return X


def config(strategy: str = "mean", **more: object) -> dict[str, object]:
    return {"dtype": "float64", "steps": [{"kind": "impute", "strategy": strategy, **more}]}


@pytest.mark.parametrize(("strategy", "more"), CHOICES)
def test_is_scikit_learns(holes: np.ndarray, strategy: str, more: dict[str, float]) -> None:
    fm = kafeat.fit(config(strategy, **more), holes[:200])
    peer = SimpleImputer(strategy=strategy, fill_value=more.get("value")).fit(holes[:200])
    # a mean of 200 numbers near 5, in two orders of summation
    np.testing.assert_allclose(fm.transform(holes), peer.transform(holes), rtol=200 * np.finfo(float).eps)


def test_formats_agree_on_what_is_missing(tmp_path: Path, holes: np.ndarray) -> None:
    nulls = [pa.array([None if np.isnan(v) else v for v in column]) for column in holes.T]
    table = pa.table(nulls, names=list("abcd"))
    pq.write_table(table, tmp_path / "x.parquet")
    np.save(tmp_path / "x.npy", holes)
    spelled = [["" if np.isnan(v) else repr(float(v)) for v in row] for row in holes]
    spelled[0] = [cell or " NaN " for cell in spelled[0]]
    (tmp_path / "x.csv").write_text("\n".join(["a,b,c,d", *(",".join(row) for row in spelled)]) + "\n")
    lists = pa.table({"x": pa.array(list(holes), pa.list_(pa.float64(), 4))})
    want = kafeat.fit(config(), holes).transform(holes).tobytes()
    for data in (table, lists, *(str(tmp_path / f"x.{kind}") for kind in ("parquet", "npy", "csv"))):
        fm = kafeat.fit(config(), data)
        assert fm.transform(holes).tobytes() == want
        if data is lists:
            continue
        for kind in ("parquet", "npy", "csv"):
            transform_file(fm, str(tmp_path / f"x.{kind}"), str(tmp_path / "z.npy"))
            assert np.load(tmp_path / "z.npy").tobytes() == want


def test_an_infinity_is_refused_beside_a_missing_number() -> None:
    with pytest.raises(DataError, match=r"row 2 \(index 1\), column 'c0': expected a finite number, got inf"):
        kafeat.fit(config(), pa.table({"c0": [1.0, np.inf], "c1": [np.nan, 2.0]}))


def test_a_list_is_missing_whole_or_has_its_length() -> None:
    kind = pa.list_(pa.float64())
    good = pa.table({"x": pa.array([[1.0, 2.0], None, [3.0, None]], kind)})
    fm = kafeat.fit(config("constant", value=9.0), good)
    np.testing.assert_array_equal(fm.transform(good), [[1, 2], [9, 9], [3, 9]])
    bad = pa.table({"x": pa.array([[1.0, 2.0], None, [3.0]], kind)})
    with pytest.raises(DataError, match=r"row 3 .*column 'x\[0\]': expected a list of 2 numbers, got 1"):
        fm.transform(bad)


def test_a_column_without_numbers_is_refused() -> None:
    X = np.array([[1.0, np.nan], [2.0, np.nan]])
    with pytest.raises(DataError, match="column 'c1': expected a number in some row of the sample, got none"):
        kafeat.fit(config(), X)
    np.testing.assert_array_equal(kafeat.fit(config("constant"), X).transform(X), [[1, 0], [2, 0]])


def test_behind_a_step_that_needs_numbers_nothing_is_let_through() -> None:
    steps = [{"kind": "standardize"}, {"kind": "impute"}]
    with pytest.raises(DataError, match="expected a finite number, got nan"):
        kafeat.fit({"steps": steps}, np.array([[1.0], [np.nan]]))
