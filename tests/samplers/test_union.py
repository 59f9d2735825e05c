"""A union's features are those of its maps side by side, and its kernel is the weighted sum of theirs."""

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.chain.chain import FittedStep
from kafeat.errors import ConfigError, DataError

FOURIER = {"kind": "fourier", "gamma": 0.3, "n_components": 32, "frequencies": "iid", "weights": "uniform"}
POLYNOMIAL = {"kind": "tensor_sketch", "n_components": 16, "gamma": 0.5}


def table(n=200):
    X = np.random.default_rng(0).standard_normal((n, 4))
    return X, pa.table({name: X[:, i] for i, name in enumerate("abcd")})


def fit(maps, data, *more):
    return kafeat.fit({"dtype": "float64", "steps": [{"kind": "union", "maps": maps}, *more]}, data)


def test_features_stand_side_by_side_and_kernels_add_up():
    X, data = table()
    fm = fit(
        [
            {"columns": ["c", "a"], "weight": 4.0, "steps": [FOURIER]},
            {"steps": [{"kind": "standardize"}, POLYNOMIAL]},
        ],
        data,
    )
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


def test_a_union_of_one_is_that_map():
    _, data = table()
    one = fit([{"steps": [FOURIER]}], data)
    state = one.chain.steps[0].state["0.0.frequencies"]
    X = one.matrix(data)
    np.testing.assert_allclose(one.transform(data)[:, :16], np.cos(X @ state.T) / 4.0, atol=1e-12)


@pytest.mark.slow
def test_chains_inside_unions_inside_chains(tmp_path):
    _, data = table()
    inner = {
        "kind": "union",
        "maps": [{"columns": ["a"], "steps": [FOURIER]}, {"columns": ["b", "d"], "steps": [FOURIER]}],
    }
    fm = fit([{"steps": [inner, {"kind": "normalize"}]}, {"columns": ["c"], "steps": [FOURIER]}], data,
             {"kind": "fourier", "gamma": 0.1, "n_components": 2048})  # fmt: skip
    K = fm.exact_kernel(data)
    Z = fm.transform(data)
    # rbf of a sum of kernels: its features are learned, so only a generous bound holds, far below that of no map.
    assert np.linalg.norm(K - Z @ Z.T) / np.linalg.norm(K) < 0.2
    np.testing.assert_allclose(np.diag(K), 1.0)
    fm.save(tmp_path / "m.joblib")
    again = kafeat.load(tmp_path / "m.joblib")
    np.testing.assert_array_equal(again.transform(data), Z)
    assert again.dumps() == fm.dumps()


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
    with pytest.raises(DataError, match=r"maps\[0\].columns: expected columns of the input, got 'nope'"):
        fit([{"columns": ["nope"], "steps": [FOURIER]}], data)
    with pytest.raises(
        ConfigError, match=r"steps\[0\].maps\[1\].steps\[0\].gamma: expected a number above 0"
    ):
        fit([{"steps": [FOURIER]}, {"steps": [{"kind": "fourier", "gamma": -1.0}]}], data)
    with pytest.raises(ConfigError, match=r"steps\[0\].maps\[0\].weight: expected a number above 0"):
        fit([{"weight": 0.0, "steps": [FOURIER]}], data)
    with pytest.raises(ConfigError, match=r"steps\[0\].maps"):
        fit([], data)
    with pytest.raises(DataError, match=r"maps\[0\].columns: expected no columns after a step that does not"):
        kafeat.fit(
            {"steps": [FOURIER, {"kind": "union", "maps": [{"columns": ["a"], "steps": [FOURIER]}]}]}, data
        )


def test_a_list_column_is_its_elements_and_nothing_that_is_named_alike():
    X = np.random.default_rng(0).standard_normal((50, 2))
    data = pa.table({"l": pa.FixedSizeListArray.from_arrays(X.ravel(), 2), "l[cm]": X[:, 0], "t[C]": X[:, 1]})
    fm = fit([{"columns": ["l"], "steps": [FOURIER]}], data)
    assert fm.chain.steps[0].state["0.columns"].tolist() == [0, 1]
    with pytest.raises(DataError, match=r"maps\[0\].columns: expected columns of the input, got 't'"):
        fit([{"columns": ["t"], "steps": [FOURIER]}], data)


def test_the_place_of_a_cast_is_checked():
    _, data = table()
    fm = fit([{"steps": [{"kind": "standardize"}, FOURIER]}], data)
    step, state = fm.chain.steps[0].step, dict(fm.chain.steps[0].state)
    for wrong in (3, -1, 0.5, [1, 1]):
        with pytest.raises(ValueError, match=r"state\.0\.cast_after: expected "):
            FittedStep.checked(step, {**state, "0.cast_after": np.array(wrong)}, 4)
    # files of format 1 have none: values are cast first
    del state["0.cast_after"]
    assert FittedStep.checked(step, state, 4).bind(np.dtype(np.float32)).wide_input is False
