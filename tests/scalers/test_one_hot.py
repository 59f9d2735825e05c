"""Raw Adult-like data, from every format, against scikit-learn's OneHotEncoder."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from sklearn.preprocessing import OneHotEncoder

import kafeat
from kafeat.contract.coding import Coding
from kafeat.contract.step import Sample
from kafeat.errors import ConfigError, DataError
from kafeat.io.columns.categories import Categories
from kafeat.io.storage.location import parse_location
from kafeat.scalers.one_hot import OneHot
from tests.jobs.files import transform_file

ROWS = 500
CODED = ["workclass", "sex", "education"]


@pytest.fixture(scope="module")
def adult() -> pa.Table:
    rng = np.random.default_rng(0)
    workclass = np.array(["Private", "State-gov", "?", "Self-emp, inc"])[rng.integers(0, 4, ROWS)]
    education = rng.integers(1, 17, ROWS).astype(np.int16)
    sex = pa.array(np.array(["Male", "Female"])[rng.integers(0, 2, ROWS)]).dictionary_encode()
    income = np.array(["<=50K", ">50K"])[rng.integers(0, 2, ROWS)]
    age, gain = rng.integers(17, 90, ROWS), rng.exponential(size=ROWS)
    coded = {"workclass": workclass, "education": education, "sex": sex}
    return pa.table({"age": age, **coded, "gain": gain, "income": income})


@pytest.fixture
def files(tmp_path: Path, adult: pa.Table) -> list[str]:
    pq.write_table(adult, tmp_path / "adult.parquet")
    plain = adult.set_column(3, "sex", adult["sex"].cast(pa.string()))
    pa_csv.write_csv(plain, tmp_path / "adult.csv")
    return [str(tmp_path / "adult.parquet"), str(tmp_path / "adult.csv")]


def config(
    unknown: str = "error", columns: list[str] = CODED, least: object = None, **more: object
) -> dict[str, object]:
    rare = {} if least is None else {"min_frequency": least}
    step = {"kind": "one_hot", "columns": columns, "unknown": unknown, **rare}
    return {"dtype": "float64", "steps": [step], **more}


def expected(table: pa.Table) -> np.ndarray:
    """Numeric columns first, then the categories of each column by scikit-learn's encoder, which sorts them too."""
    blocks = [np.column_stack([table["age"].to_numpy(), table["gain"].to_numpy()]).astype(float)]
    for name in CODED:
        column = np.array(table[name].to_pylist())[:, None]
        blocks.append(OneHotEncoder(sparse_output=False).fit_transform(column))
    return np.hstack(blocks)


def test_every_format_is_scikit_learns(adult: pa.Table, files: list[str], tmp_path: Path) -> None:
    want = expected(adult).tobytes()
    for data in (adult, *files):
        fm = kafeat.fit(config(), data, label="income")
        assert fm.transform(adult).tobytes() == want
        path = tmp_path / "map.joblib"
        fm.save(path)
        for file in files:
            transform_file(str(path), file, str(tmp_path / "z.npy"))
            assert np.load(tmp_path / "z.npy").tobytes() == want


def test_the_vocabulary_is_of_all_rows_and_not_of_the_sample(adult: pa.Table) -> None:
    fm = kafeat.fit(config(fit_rows=3, chunk_rows=50), adult, label="income")
    assert fm.transform(adult).tobytes() == expected(adult).tobytes()


def test_spaces_and_spellings(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('a,b\n x,7\nx ,7.0\n"y", 10\nx,007\n')
    fm = kafeat.fit(config(columns=["a", "b"]), path)
    assert [column.categories.values for column in fm.columns.features] == [("x", "y"), ("007", "10", "7")]
    Z = fm.transform(pa.table({"a": ["x", "y"], "b": [7.0, 10.0]}))
    np.testing.assert_array_equal(Z, [[1, 0, 0, 0, 1], [0, 1, 0, 1, 0]])


@pytest.mark.parametrize("value", ["Martian", None, "", "private"])
def test_unknown_is_refused_by_place_or_all_zeros(adult: pa.Table, value: str | None, tmp_path: Path) -> None:
    column = adult["workclass"].to_pylist()
    column[270] = value
    other = adult.set_column(1, "workclass", pa.array(column, pa.string()))
    strict = kafeat.fit(config(chunk_rows=100), adult, label="income")
    pq.write_table(other, tmp_path / "o.parquet")
    other_category = (
        f"one of the 4 categories of the fit, got '{value}'; one_hot with unknown: ignore accepts others"
    )
    got = other_category if value else "a category, got null"
    message = rf"o\.parquet: row 271 \(index 270\), column 'workclass': expected {got}"
    with pytest.raises(DataError, match=message):
        transform_file(strict, str(tmp_path / "o.parquet"), str(tmp_path / "z.npy"))
    Z = kafeat.fit(config("ignore"), adult, label="income").transform(other)
    want = expected(adult)
    want[270, 2:6] = 0.0
    assert Z.tobytes() == want.tobytes()


def test_too_many_categories_are_refused(monkeypatch) -> None:
    assert Coding(False).most == 10_000
    monkeypatch.setattr(OneHot, "_coding", property(lambda step: Coding(False, step.min_frequency, 1_000)))
    table = pa.table({"name": [f"n{i}" for i in range(1_001)]})
    with pytest.raises(DataError, match="column 'name': expected at most 1,000 categories, got more"):
        kafeat.fit(config(columns=["name"]), table)
    assert kafeat.fit(config(columns=["name"]), table[:1_000]).n_components == 1_000


def test_entries_of_a_dictionary_that_no_row_has_are_no_categories(tmp_path: Path) -> None:
    coded = pa.DictionaryArray.from_arrays(pa.array([2, 0, None, 2]), pa.array(["b", "unused", "a"]))
    table = pa.table({"a": coded})
    pq.write_table(table, tmp_path / "t.parquet")
    for data in (table, tmp_path / "t.parquet", pa.table({"a": ["a", "b", None, "a"]})):
        fm = kafeat.fit(config("ignore", columns=["a"]), data)
        assert fm.columns.features[0].categories.values == ("a", "b")
        np.testing.assert_array_equal(fm.transform(table), [[1, 0], [0, 1], [0, 0], [1, 0]])


@pytest.fixture(scope="module")
def shops() -> pa.Table:
    """20,000 rows with about 13,000 shops, of which a hundred are frequent, some are numbers and some are missing."""
    rng = np.random.default_rng(1)
    number = np.where(rng.random(20_000) < 0.3, rng.integers(0, 100, 20_000), rng.integers(0, 10**6, 20_000))
    shop = [None if n % 97 == 0 else f"{n}" if n % 2 else f"shop {n}" for n in number.tolist()]
    return pa.table({"x": rng.normal(size=20_000), "shop": shop})


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_column_whose_categories_are_all_unknown_is_named(
    tmp_path: Path, adult: pa.Table, jobs: int, recwarn: pytest.WarningsRecorder
) -> None:
    steps = [{"kind": "one_hot", "columns": CODED, "unknown": "ignore"}]
    fm = kafeat.fit({"chunk_rows": 64, "steps": steps}, adult, label="income")
    other = adult.set_column(3, "sex", pa.array(["x"] * ROWS))
    last = adult.set_column(3, "sex", pa.array(["x"] * (ROWS - 1) + ["Male"]))
    for quiet in (adult, last, other.slice(0, 9)):
        fm.transform(quiet, jobs=jobs)
    assert not recwarn.list
    fm.transform(other, jobs=jobs)
    (tmp_path / "in").mkdir()
    for name, rows in {"in/a": adult, "in/b": other, "c": other}.items():
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    for source in ("in", "c.parquet"):
        kafeat.transform(tmp_path / source, tmp_path / f"of-{source}", model=fm, jobs=jobs)
    problem = "column 'sex': expected some categories that the model knows, got none of them"
    places = ("<table>", f"{tmp_path}/in: b.parquet", f"{tmp_path}/c.parquet")
    assert [str(one.message) for one in recwarn.list] == [f"{place}: {problem}" for place in places]
    assert {one.filename for one in recwarn.list} == {__file__}


@pytest.mark.parametrize("least", [20, 0.002])
def test_of_many_categories_the_frequent_ones_are_kept_as_by_scikit_learn(shops, least):
    fm = kafeat.fit(config("ignore", ["shop"], least), shops)
    column = np.array([value or "" for value in shops["shop"].to_pylist()], dtype=object)
    seen = column != ""
    # scikit-learn takes a share of the rows that it is given, to which those without a value do not belong here.
    count = least if least > 1 else int(np.ceil(least * len(column)))
    oracle = OneHotEncoder(sparse_output=False, min_frequency=count, handle_unknown="infrequent_if_exist")
    want = np.zeros((len(column), oracle.fit_transform(column[seen, None]).shape[1]))
    want[seen] = oracle.transform(column[seen, None])
    assert 50 < want.shape[1] < 120
    np.testing.assert_array_equal(fm.transform(shops)[:, 1:], want)
    np.testing.assert_array_equal(fm.transform(pa.table({"x": [0.0], "shop": ["new"]}))[0, 1:-1], 0.0)
    assert fm.transform(pa.table({"x": [0.0], "shop": ["new"]}))[0, -1] == 1.0
    assert len(fm.dumps()) < 20_000


def test_many_categories_do_not_depend_on_chunks_and_formats(shops, tmp_path) -> None:
    pa_csv.write_csv(shops, tmp_path / "s.csv")
    pq.write_table(shops, tmp_path / "s.parquet", row_group_size=3_000)
    recipe = config("ignore", ["shop"], 8, fit_rows=5_000)
    want = kafeat.fit(recipe, shops).transform(shops)
    assert 20 < want.shape[1] < 120
    for data, rows in ((shops, 700), (tmp_path / "s.csv", 8192), (tmp_path / "s.parquet", 999)):
        fm = kafeat.fit({**recipe, "chunk_rows": rows}, data)
        assert fm.transform(shops).tobytes() == want.tobytes()


def test_many_categories_of_which_none_or_too_many_are_frequent(shops) -> None:
    for least, advice in ((15_000, "got none: lower"), (1, "got more: raise")):
        told = rf"column 'shop': expected from 1 to 10,000 .*{advice} min_frequency"
        with pytest.raises(DataError, match=told):
            kafeat.fit(config("ignore", ["shop"], least), shops)


def test_names_that_are_wrong(adult: pa.Table) -> None:
    with pytest.raises(DataError, match=r"expected the column 'workclas' \(did you mean 'workclass'\?\)"):
        kafeat.fit(config(columns=["workclas"]), adult)
    for left_out in ({"exclude": ["sex"]}, {"include": ["age"]}):
        with pytest.raises(DataError, match="column 'sex': expected a feature, because one_hot names it"):
            kafeat.fit({**config(columns=["sex"]), "columns": left_out}, adult)
    with pytest.raises(DataError, match="column 'income': expected a feature"):
        kafeat.fit(config(columns=["income"]), adult, label="income")
    with pytest.raises(ConfigError, match=r"steps\[0\]\.columns"):
        kafeat.fit(config(columns="sex"), adult)


def test_with_impute_before_or_after() -> None:
    table = pa.table({"a": ["x", "y", "x"], "b": [1.0, None, 3.0]})
    one_hot = {"kind": "one_hot", "columns": ["a"]}
    for steps in ([{"kind": "impute"}, one_hot], [one_hot, {"kind": "impute"}]):
        Z = kafeat.fit({"dtype": "float64", "steps": steps}, table).transform(table)
        np.testing.assert_array_equal(Z, [[1, 1, 0], [2, 0, 1], [3, 1, 0]])
    with pytest.raises(DataError, match=r"row 2 \(index 1\), column 'b': expected a finite number, got null"):
        kafeat.fit({"steps": [one_hot]}, table)


def test_by_position(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("1,x\n2,y\n")
    from kafeat.config import load_config
    from kafeat.jobs.fit.fit import fit_reader
    from tests.io.tables import open_reader

    with open_reader(parse_location(path), None, no_header=True) as source:
        fm = fit_reader(load_config(config(columns=["c1"])), source, None)
    np.testing.assert_array_equal(fm.transform(pa.table({"n": [5.0], "t": ["y"]})), [[5, 0, 1]])
    with pytest.raises(DataError, match="expected one column for every feature, because some are categories"):
        fm.transform(pa.table({"n": pa.array([[1.0, 2.0]], pa.list_(pa.float64(), 2))}))
    whole = kafeat.fit(config(columns=["c0"]), np.array([[3.0, 1.5], [7.0, 2.5]]))
    np.testing.assert_array_equal(whole.transform(np.array([[7, 9]], dtype=np.uint8)), [[9, 0, 1]])


def test_codes_beside_the_vocabulary_are_nobodys() -> None:
    X = np.array([[0.0, 5.0, 1.0], [2.0, 6.0, 0.0]])
    step = OneHot(columns=("a", "c"))
    state = step.fit(Sample(X, None, 2, names=("a", "b", "c")), np.random.default_rng(0))
    np.testing.assert_array_equal(state["sizes"], [3, 2])  # codes count from 0
    new = np.array([[0.0, 7.0, 1.0], [3.0, 8.0, 2.0], [-1.0, 9.0, -1.0], [2.0, 1.0, 0.0]])
    want = [[7, 1, 0, 0, 0, 1], [8, 0, 0, 0, 0, 0], [9, 0, 0, 0, 0, 0], [1, 0, 0, 1, 1, 0]]
    np.testing.assert_array_equal(step.scale(state, new), want)


def letters() -> pa.Table:
    """Categories that 1, 2, 4, 8, ... rows have, and one that no row of the first 200 has."""
    column = np.repeat(list("hgfedcba"), 2 ** np.arange(8))
    return pa.table({"n": np.arange(256.0), "t": np.append(column, "z")})


@pytest.mark.parametrize("min_frequency", [1, 2, 5, 64, 1000, 0.01, 0.1, 0.25, 0.999])
def test_rare_categories_share_an_output_as_in_scikit_learn(min_frequency: float) -> None:
    table = letters()
    fm = kafeat.fit(config(columns=["t"], least=min_frequency), table)
    peer = OneHotEncoder(min_frequency=min_frequency, sparse_output=False)
    want = peer.fit_transform(np.array(table["t"].to_pylist())[:, None])
    np.testing.assert_array_equal(fm.transform(table)[:, 1:], want)


@pytest.mark.parametrize("unknown", ["error", "ignore"])
def test_an_unknown_category_is_no_rare_one(unknown: str) -> None:
    fm = kafeat.fit(config(unknown, ["t", "u"], 3), letters().append_column("u", pa.array(["p"] * 256)))
    new = pa.table({"n": [0.0], "t": ["new"], "u": ["p"]})
    if unknown == "ignore":
        np.testing.assert_array_equal(fm.transform(new), [[0.0] + [0.0] * 7 + [1.0]])
    else:
        with pytest.raises(DataError, match="expected one of the 9 categories of the fit, got 'new'"):
            fm.transform(new)


@pytest.mark.parametrize("value", [0, 0.0, 1.0, -1, True, "rare"])
def test_limits_of_frequency_are_checked(value: object) -> None:
    with pytest.raises(ConfigError, match=r"steps\[0\]\.min_frequency: expected "):
        kafeat.fit(config(columns=["t"], least=value), letters())


def test_a_category_of_rows_outside_of_the_sample_is_rare() -> None:
    """The vocabulary is of all rows, and frequencies are those of the fit sample."""
    table = letters()
    fm = kafeat.fit(config(columns=["t"], least=1, fit_rows=20), table)
    Z = fm.transform(table)[:, 1:]
    assert Z.shape[1] < 9
    np.testing.assert_array_equal(Z.sum(axis=1), 1.0)


def test_codes_are_plain_numbers_to_no_other_step(adult: pa.Table) -> None:
    """A map of all columns beside one that codes would take the order of categories for a size."""
    of_sex = [{"kind": "one_hot", "columns": ["sex"]}]
    maps = [{"columns": ["sex"], "steps": of_sex}, {"steps": [{"kind": "minmax"}]}]
    steps = [{"kind": "union", "maps": maps}]
    told = "minmax: column 'sex': expected plain numbers, got categories, which only"
    with pytest.raises(DataError, match=told):
        kafeat.fit({"steps": steps}, adult, label="income")
    with pytest.raises(DataError, match=told.replace("minmax", "standardize")):
        kafeat.fit({"steps": ["standardize", *of_sex]}, adult)
    maps[1]["columns"] = ["age"]
    assert kafeat.fit({"steps": steps}, adult, label="income").n_components == 3


CONFIG = config(columns=["k"])
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
    coded = isinstance(column, pa.DictionaryArray)
    plain = table.set_column(1, "k", column.dictionary_decode()) if coded else table
    names = ("x.parquet", "x.arrow", "arrow.csv", "pandas.csv", "polars.csv")
    places = {name: str(folder / name) for name in names}
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


@pytest.mark.sampled
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


@pytest.mark.parametrize("dtype", ["?", "i8", "u1", "f4", "f8", "f2", ">f8", ">i4"])
def test_arrays_and_their_tables_have_the_same_categories(dtype: str, tmp_path: Path) -> None:
    X = np.array([[1, 0], [0, 1], [1, 1]], dtype=dtype)
    np.save(tmp_path / "x.npy", X)
    recipe = config(columns=["c1"])
    of_array = kafeat.fit(recipe, str(tmp_path / "x.npy"))
    table = pa.table({f"c{j}": X.astype(X.dtype.newbyteorder("="))[:, j] for j in range(2)})
    of_table = kafeat.fit(recipe, table)
    assert of_array.columns.features[1].categories == of_table.columns.features[1].categories
    np.testing.assert_array_equal(of_array.transform(table), of_table.transform(X))


def test_numbers_of_an_array_are_not_rounded() -> None:
    X = np.array([[2**53], [2**53 + 1]])
    np.testing.assert_array_equal(kafeat.fit(config(columns=["c0"]), X).transform(X), np.eye(2))


@pytest.mark.parametrize(("fitted", "value", "code"), [
    (["false", "true"], "True", 1),
    (["false", "true"], "1", 1),
    (["false", "true"], 0.0, 0),
    (["0", "1"], True, 1),
    (["1.5", "2"], "1.50", 0),
    (["10000000000000000"], "1e+16", 0),
    (["1e-07", "x"], "0.0000001", 0),
    (["1.5", "1.50"], "1.50", 1),
    (["true", "1"], True, 0),
    # not the same, or not just one that is
    (["7"], "007", None),
    (["1.5", "1.50"], "1.500", None),
    (["True", "TRUE"], "true", None),
    (["x"], "X", None),
    (["1.25"], "1.2500000000000000000000000001", None),
])  # fmt: skip
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


@pytest.mark.parametrize(("column", "message"), [
    (pa.array([1.0, np.inf]), r"row 2 \(index 1\), column 'k': expected a finite number as a category, got inf"),
    (pa.array([1.0, None]), r"row 2 \(index 1\), column 'k': expected a category, got null; one_hot with unknown: "
                            "ignore makes it zeros"),
    (pa.array([1, 2], pa.timestamp("us")),
     r"column 'k': expected text, numbers, dates or categories, got timestamp\[us\]; cast it to a date or to text"),
    (pa.array([[1], [2]]), r"column 'k': expected text, numbers, dates or categories, got list"),
])  # fmt: skip
def test_what_is_no_category(column: pa.Array, message: str) -> None:
    with pytest.raises(DataError, match=message):
        kafeat.fit(CONFIG, pa.table({"k": column}))
