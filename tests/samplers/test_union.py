"""A union's features are those of its maps side by side, and its kernel is the weighted sum of theirs."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from ruamel.yaml import YAML
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import kafeat
from kafeat.chain.chain import FittedStep
from kafeat.config import load_config
from kafeat.errors import ConfigError, DataError
from tests.zygote import ROOT

RENTALS = ROOT / "sample_data/rentals.csv"
FOURIER = {"kind": "fourier", "gamma": 0.3, "n_components": 32, "frequencies": "iid", "weights": "uniform"}
POLYNOMIAL = {"kind": "tensor_sketch", "n_components": 16, "gamma": 0.5}


def table(n=200):
    X = np.random.default_rng(0).standard_normal((n, 4))
    return X, pa.table({name: X[:, i] for i, name in enumerate("abcd")})


def fit(maps, data, *more):
    return kafeat.fit({"dtype": "float64", "steps": [{"kind": "union", "maps": maps}, *more]}, data)


def test_features_stand_side_by_side_and_kernels_add_up():
    X, data = table()
    weighted = {"columns": ["c", "a"], "weight": 4.0, "steps": [FOURIER]}
    fm = fit([weighted, {"steps": [{"kind": "standardize"}, POLYNOMIAL]}], data)
    Z = fm.transform(data)
    assert Z.shape == (200, 48)
    K = 4.0 * np.exp(-0.3 * ((X[:, None, [2, 0]] - X[None, :, [2, 0]]) ** 2).sum(-1))
    S = (X - X.mean(0)) / X.std(0)
    K += (0.5 * S @ S.T + 1.0) ** 2
    np.testing.assert_allclose(fm.exact_kernel(data), K, rtol=1e-10)
    W = fm.chain.steps[0].state["0.0.frequencies"]
    angles = X[:, [2, 0]] @ W.T
    np.testing.assert_allclose(Z[:, :16], 2.0 * np.cos(angles) / 4.0, atol=1e-12)


def test_weights_count_in_the_norms_too():
    """A kernel behind a union reads k(x, x) and k(y, y): here the cosine of the weighted sum."""
    X, data = table()
    fm = fit([{"weight": 9.0, "steps": [FOURIER]}, {"weight": 0.5, "steps": [POLYNOMIAL]}], data,
             {"kind": "normalize"})  # fmt: skip
    x, y = X[:20], 2.0 * X[20:30]

    def kernel(a, b):
        squares = ((a[:, None] - b[None]) ** 2).sum(-1)
        return 9.0 * np.exp(-0.3 * squares) + 0.5 * (0.5 * a @ b.T + 1.0) ** 2

    want = kernel(x, y) / np.sqrt(np.outer(kernel(x, x).diagonal(), kernel(y, y).diagonal()))
    np.testing.assert_allclose(fm.exact_kernel(x, y), want, rtol=1e-12)


def test_the_exact_kernel_of_a_union_behind_a_sampler():
    """Dot products are all that distance and dot-product kernels need, inside of a union too."""
    X, data = table()
    maps = [{"steps": [{**FOURIER, "gamma": 0.2}]}, {"weight": 0.5, "steps": [POLYNOMIAL]}]
    chained = kafeat.fit({"dtype": "float64", "steps": [FOURIER, {"kind": "union", "maps": maps}]}, data)
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(-1))
    want = np.exp(-0.2 * (2.0 - 2.0 * K)) + 0.5 * (0.5 * K + 1.0) ** 2
    np.testing.assert_allclose(chained.exact_kernel(data), want, rtol=1e-10)
    assert chained.chain.exact_kernel_note() is None


def test_errors_name_the_columns_of_the_whole():
    _, data = table()
    positive = pa.table({name: np.abs(data[name].to_numpy()) for name in "abcd"})
    fm = fit([{"columns": ["d", "b"], "steps": [{"kind": "homogeneous"}]}], positive)
    spoiled = positive.set_column(1, "b", pa.array(np.where(np.arange(200) == 7, -1.0, 1.0)))
    with pytest.raises(DataError, match=r"row 8 \(index 7\), column 'b': expected a value of at least 0"):
        fm.transform(spoiled)


def test_mistakes_are_named_with_their_place():
    _, data = table()
    negative = {"steps": [{"kind": "fourier", "gamma": -1.0}]}
    place = r"steps\[0\].maps"
    for maps, told in (
        ([{"steps": [FOURIER]}, negative], rf"{place}\[1\].steps\[0\].gamma: expected a number above 0"),
        ([{"weight": 0.0, "steps": [FOURIER]}], rf"{place}\[0\].weight: expected a number above 0"),
        ([], place),
    ):
        with pytest.raises(ConfigError, match=told):
            fit(maps, data)
    with pytest.raises(DataError, match=r"maps\[0\].columns: expected columns of the input, got 'nope'"):
        fit([{"columns": ["nope"], "steps": [FOURIER]}], data)
    union = {"kind": "union", "maps": [{"columns": ["a"], "steps": [FOURIER]}]}
    with pytest.raises(DataError, match=r"maps\[0\].columns: expected no columns after a step that does not"):
        kafeat.fit({"steps": [FOURIER, union]}, data)


def test_a_list_column_is_its_elements_and_nothing_that_is_named_alike():
    X = np.random.default_rng(0).standard_normal((50, 2))
    data = pa.table({"l": pa.FixedSizeListArray.from_arrays(X.ravel(), 2), "l[cm]": X[:, 0], "t[C]": X[:, 1]})
    fm = fit([{"columns": ["l"], "steps": [FOURIER]}], data)
    assert fm.chain.steps[0].state["0.columns"].tolist() == [0, 1]
    with pytest.raises(DataError, match=r"maps\[0\].columns: expected columns of the input, got 't'"):
        fit([{"columns": ["t"], "steps": [FOURIER]}], data)


def test_columns_by_pattern():
    data = pa.table({name: np.arange(3.0) for name in ("x1", "y1", "x2", "y*")})
    some = {"columns": ["x*", "y?"], "steps": [{"kind": "minmax"}]}
    fm = fit([some, {"columns": ["y*"], "steps": [FOURIER]}], data)
    state = fm.chain.steps[0].state
    assert state["0.columns"].tolist() == [0, 2, 1, 3]
    assert state["1.columns"].tolist() == [3]
    with pytest.raises(DataError, match=r"maps\[0\].columns: expected columns of the input, got 'z\*'"):
        fit([{"columns": ["z*"], "steps": [FOURIER]}], data)


def test_missing_numbers_beside_a_map_of_words():
    """A chain of words alone needs no `impute`, as a missing word is no missing number."""
    data = pa.table({"n": [1.0, None, 3.0], "w": ["a", "b", "a"], "m": [1.0, 2.0, 3.0]})
    words = {"columns": ["w"], "steps": [{"kind": "one_hot", "columns": ["w"]}]}
    numbers = {"columns": ["n"], "steps": [{"kind": "impute"}]}
    Z = fit([words, numbers], data).transform(data)
    assert Z.tolist() == [[1.0, 0.0, 1.0], [0.0, 1.0, 2.0], [1.0, 0.0, 3.0]]
    for other in ({"columns": ["m"], "steps": [{"kind": "minmax"}]}, {**words, "columns": ["w", "m"]}):
        with pytest.raises(DataError, match="column 'n': expected a finite number, got null"):
            fit([other, numbers], data.select(["n", "m"]) if other["columns"] == ["m"] else data)


def test_the_place_of_a_cast_is_checked():
    _, data = table()
    fm = fit([{"steps": [{"kind": "standardize"}, FOURIER]}], data)
    step, state = fm.chain.steps[0].step, dict(fm.chain.steps[0].state)
    for wrong in (3, -1, 0.5, [1, 1]):
        with pytest.raises(ValueError, match=r"state\.0\.cast_after: expected "):
            FittedStep.checked(step, {**state, "0.cast_after": np.array(wrong)}, 4)
    # files of format 1 have none: values are cast first
    del state["0.cast_after"]
    single = np.dtype(np.float32)
    assert FittedStep.checked(step, state, 4).bind(single).reads(single) == single


@pytest.mark.parametrize("columns", [np.array(1), np.empty(0, np.int64), np.array([[1]])])
def test_columns_of_a_map_that_are_no_list_of_them_are_refused(columns):
    fm = fit([{"columns": ["b"], "steps": [{"kind": "standardize"}]}], table()[1])
    state = {**fm.chain.steps[0].state, "0.columns": columns}
    with pytest.raises(ValueError, match=r"state\.0\.columns: expected the positions of columns"):
        FittedStep.checked(fm.chain.steps[0].step, state, 4)


def test_the_numbers_of_scalers_side_by_side_are_all_of_their_outputs():
    """Both maps see the same columns, so the second one would be left out if it made features."""
    X = np.array([[1.0, np.nan], [3.0, 4.0], [np.nan, 8.0]])
    filled = [{"kind": "impute", "strategy": strategy} for strategy in ("mean", "constant")]
    fm = fit([{"steps": [one]} for one in filled], X)
    np.testing.assert_array_equal(fm.chain.numbers(X), fm.transform(X))


def test_the_mixed_table_is_what_a_column_transformer_makes():
    """The chains of configs/mixed.yaml before its last step, against scikit-learn and pandas."""
    plain = load_config(ROOT / "configs/mixed.yaml").to_plain()
    fm = kafeat.fit({**plain, "dtype": "float64", "steps": plain["steps"][:1]}, RENTALS, label="income")
    frame = pd.read_csv(RENTALS, parse_dates=["time"])
    time = frame["time"].dt
    circles = [(time.month - 1) / 12, time.day_of_week / 7, time.hour / 24]
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    words = OneHotEncoder(handle_unknown="ignore", min_frequency=0.03, sparse_output=False)
    of_numbers = ("numbers", numbers, ["temperature", "wind_mean", "wind_gust"])
    parts = ColumnTransformer([of_numbers, ("words", words, ["station", "weather"])])
    dates = [wave(2 * np.pi * part) for part in circles for wave in (np.cos, np.sin)]
    want = np.column_stack([parts.fit_transform(frame), *dates])
    # Sums of 800 numbers in two orders, and angles below 2π that are rounded in two ways.
    Z, near = fm.transform(frame), 800 * np.finfo(float).eps * np.abs(want).max()
    np.testing.assert_allclose(Z, want, rtol=0, atol=near)
    assert Z.tobytes() == kafeat.model.load.loads(fm.dumps(), "map").transform(frame).tobytes()


def test_the_config_of_the_page_on_mixed_tables_is_that_of_the_folder():
    page = (ROOT / "docs/mixed_tables.md").read_text()
    (union,) = (YAML(typ="safe").load(text) for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL))
    assert load_config(union) == load_config(ROOT / "configs/mixed.yaml")
