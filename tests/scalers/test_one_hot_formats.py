"""One category has one code in every format, as every library writes it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import DataError
from kafeat.io.columns.categories import Categories
from tests.jobs.files import transform_file

CONFIG = {"dtype": "float64", "steps": [{"kind": "one_hot", "columns": ["k"]}]}
COLUMNS = {
    "booleans": pa.array([True, False, True, False]),
    "whole numbers": pa.array([3, 10, -1, 3]),
    "large whole numbers": pa.array([2**53, 2**53 + 1, 2**62 + 1, -(2**60) - 1]),
    "unsigned": pa.array([3, 200, 0, 3], pa.uint8()),
    "whole floats": pa.array([3.0, 10.0, -0.0, 1e16]),
    "floats": pa.array([0.1, 10.5, 2.25, 1e-7]),
    "single floats": pa.array([0.1, 10.5, 2.25, 1e-7], pa.float32()),
    "decimals": pa.array([Decimal("1.50"), Decimal("2.00"), Decimal("10.05"), Decimal("-0.10")]),
    "dates": pa.array([date(2024, 2, 29), date(1999, 12, 31), date(2024, 2, 29), date(1, 1, 1)]),
    "texts": pa.array(["b", "ä", "007", "7"]),
    "dictionary of texts": pa.array(["b", "a", "b", "c"]).dictionary_encode(),
    "dictionary of numbers": pa.array([10, 9, 10, 8]).dictionary_encode(),
}


def written(folder: Path, column: pa.Array) -> dict[str, str]:
    """The same table in every format, as different libraries write it."""
    table = pa.table({"a": [1.0, 2.0, 3.0, 4.0], "k": column})
    plain = (
        pa.table({"a": table["a"], "k": column.dictionary_decode()})
        if isinstance(column, pa.DictionaryArray)
        else table
    )
    places = {
        name: str(folder / name) for name in ("x.parquet", "x.arrow", "arrow.csv", "pandas.csv", "polars.csv")
    }
    pq.write_table(table, places["x.parquet"])
    with pa.ipc.new_file(places["x.arrow"], table.schema) as writer:
        writer.write_table(table)
    pa_csv.write_csv(plain, places["arrow.csv"])
    plain.to_pandas().to_csv(places["pandas.csv"], index=False)
    pl.from_arrow(plain).write_csv(places["polars.csv"])
    return places


def test_half_precision_is_spelled_as_it_is() -> None:
    table = pa.table({"k": pa.array(np.array([0.1, 7.0, 0.1], np.float16))})
    fm = kafeat.fit(CONFIG, table)
    assert fm.columns.features[0].categories.values == ("0.1", "7")
    np.testing.assert_array_equal(fm.transform(table), [[1, 0], [0, 1], [1, 0]])


def codes(fm: kafeat.FeatureMap, place: str, folder: Path) -> np.ndarray:
    transform_file(fm, place, str(folder / "z.npy"))
    return np.load(folder / "z.npy")


@pytest.mark.parametrize("name", COLUMNS)
def test_a_map_fitted_on_one_format_takes_every_other(name: str, tmp_path: Path) -> None:
    places = written(tmp_path, COLUMNS[name])
    if name in ("booleans", "whole numbers"):  # as pandas writes them where one is missing
        floats = COLUMNS[name].cast(pa.uint8() if name == "booleans" else pa.int64()).cast(pa.float64())
        (tmp_path / "more").mkdir()
        more = written(tmp_path / "more", floats)
    else:
        more = {}
    want = None
    for fitted in places.values():
        fm = kafeat.fit(CONFIG, fitted)
        for place in [*places.values(), *more.values()]:
            got = codes(fm, place, tmp_path)
            want = got if want is None else want
            np.testing.assert_array_equal(got, want, err_msg=f"{fitted} -> {place}")
    assert want is not None
    assert (want[:, 1:].sum(axis=1) == 1.0).all()
    assert want.shape[1] == 1 + len(set(COLUMNS[name].to_pylist()))


@pytest.mark.parametrize(
    "dtype", [bool, np.int64, np.uint8, np.float32, np.float64, np.float16, ">f8", ">i4"]
)
def test_arrays_and_their_tables_have_the_same_categories(dtype: str, tmp_path: Path) -> None:
    X = np.array([[1, 0], [0, 1], [1, 1]], dtype=dtype)
    np.save(tmp_path / "x.npy", X)
    config = {"dtype": "float64", "steps": [{"kind": "one_hot", "columns": ["c1"]}]}
    of_array = kafeat.fit(config, str(tmp_path / "x.npy"))
    table = pa.table({f"c{j}": X.astype(X.dtype.newbyteorder("="))[:, j] for j in range(2)})
    of_table = kafeat.fit(config, table)
    assert of_array.columns.features[1].categories == of_table.columns.features[1].categories
    np.testing.assert_array_equal(of_array.transform(table), of_table.transform(X))


def test_numbers_of_an_array_are_not_rounded() -> None:
    X = np.array([[2**53], [2**53 + 1]])
    config = {"dtype": "float64", "steps": [{"kind": "one_hot", "columns": ["c0"]}]}
    np.testing.assert_array_equal(kafeat.fit(config, X).transform(X), np.eye(2))


@pytest.mark.parametrize(
    ("fitted", "value", "code"),
    [
        (["false", "true"], "True", 1),
        (["FALSE", "TRUE"], True, 1),
        (["false", "true"], "1", 1),
        (["false", "true"], 0.0, 0),
        (["0", "1"], True, 1),
        (["1.5", "2"], "1.50", 0),
        (["1.50", "2"], 1.5, 0),
        (["10000000000000000"], "1e+16", 0),
        (["1e-07", "x"], "0.0000001", 0),
        (["1.5", "1.50"], "1.50", 1),
        (["true", "1"], True, 0),
        # not the same, or not just one that is
        (["7"], "007", None),
        (["100000"], "1e5", None),
        (["1.5", "1.50"], "1.500", None),
        (["True", "TRUE"], "true", None),
        (["x"], "X", None),
        (["1.25"], "1.2500000000000000000000000001", None),
    ],
)  # fmt: skip
def test_another_spelling_of_the_same_value(fitted: list[str], value: object, code: int | None) -> None:
    categories = Categories(tuple(fitted), False)
    (got,) = categories.codes(pa.array([value]))
    assert np.isnan(got) if code is None else got == code


def test_within_a_fit_texts_count_as_they_are_written() -> None:
    table = pa.table({"k": ["3.1", "3.10", "True", "true", "9", "10"]})
    assert kafeat.fit(CONFIG, table).columns.features[0].categories.values == (
        "10", "3.1", "3.10", "9", "True", "true",
    )  # fmt: skip


def test_numbers_are_in_the_order_of_their_size(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,k\n1,10\n1,9.5\n1,-2\n1," + "9" * 5000 + "\n")
    values = kafeat.fit(CONFIG, str(path)).columns.features[1].categories.values
    assert values == ("-2", "9.5", "10", "9" * 5000)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1.0, np.inf]), r"row 2 \(index 1\), column 'k': expected a finite number as a category, got inf"),
        (pa.array([1.0, None]), r"row 2 \(index 1\), column 'k': expected a category, got null; one_hot with unknown: "
                                "ignore makes it zeros"),
        (pa.array([1, 2], pa.timestamp("us")),
         r"column 'k': expected text, numbers, dates or categories, got timestamp\[us\]; cast it to a date or to text"),
        (pa.array([[1], [2]]), r"column 'k': expected text, numbers, dates or categories, got list"),
    ],
)  # fmt: skip
def test_what_is_no_category(column: pa.Array, message: str) -> None:
    with pytest.raises(DataError, match=message):
        kafeat.fit(CONFIG, pa.table({"k": column}))
