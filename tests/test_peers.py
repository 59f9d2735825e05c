"""Faults that other libraries have, each as a test that kafeat does not have it."""

import warnings
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from sklearn.kernel_approximation import AdditiveChi2Sampler

import kafeat
from kafeat.errors import ConfigError, DataError


def fit(step, X, **config):
    return kafeat.fit({"dtype": "float64", **config, "steps": [step]}, X)


def error(fm, X):
    Z = fm.transform(X).astype(float)
    K = fm.exact_kernel(X)
    return np.linalg.norm(K - Z @ Z.T) / np.linalg.norm(K)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "uint16", "bool"])
def test_integers_are_promoted_and_do_not_wrap(dtype):
    X = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, (50, 4)).astype(dtype)
    step = {"kind": "homogeneous", "order": 3}
    np.testing.assert_array_equal(
        fit(step, X).transform(X), fit(step, X.astype(float)).transform(X.astype(float))
    )
    assert dtype == "bool" or fit(step, X).transform(X).min() < 0  # cosines have both signs; log 1 is 0


def test_the_default_step_is_not_poor():
    x = np.linspace(0.05, 0.95, 40)
    exact = 2 * x[:, None] * x / (x[:, None] + x)
    for order, steps in ((1, 2), (2, 3)):
        theirs = AdditiveChi2Sampler(sample_steps=steps).fit_transform(x[:, None])
        ours = fit({"kind": "homogeneous", "order": order}, x[:, None]).transform(x[:, None])
        assert ours.shape[1] == theirs.shape[1] == 2 * order + 1
        peer = np.abs(theirs @ theirs.T - exact).max()
        assert np.abs(ours @ ours.T - exact).max() < 0.25 * peer


@pytest.mark.parametrize("order", [4, 5, 8])
def test_no_interval_has_to_be_given_for_higher_orders(order):
    X = np.random.default_rng(0).random((50, 3))
    assert error(fit({"kind": "homogeneous", "order": order}, X), X) < 0.005


def test_more_order_is_never_worse():
    X = np.random.default_rng(1).random((200, 3))
    errors = [error(fit({"kind": "homogeneous", "order": order}, X), X) for order in range(1, 6)]
    # Below 1e-6 only the coefficients' own digits are left.
    assert all(later <= max(earlier, 1e-6) for earlier, later in pairwise(errors)), errors


@pytest.mark.parametrize("scale", [1e-30, 2.0**-20, 256.0, 1e6, 1e30])
def test_homogeneous_maps_have_no_cut_off(scale):
    X = np.random.default_rng(0).random((40, 3)) * scale
    assert error(fit({"kind": "homogeneous", "order": 2}, X), X) < 0.02


def test_nystroem_in_float32_with_duplicated_landmarks():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((40, 5)), 5, axis=0).astype(np.float32)
    fm = fit(
        {"kind": "nystroem", "n_components": 200, "gamma": 0.1, "landmarks": "uniform"}, X, dtype="float32"
    )
    # All rows are landmarks: exact up to float32's rounding of ten-thousand-fold amplified directions
    assert error(fm, X) < 1e-3


def test_an_indefinite_kernel_is_refused_and_not_silently_wrong():
    X = np.random.default_rng(0).standard_normal((100, 5))
    step = {"kind": "nystroem", "kernel": "sigmoid", "gamma": 1.0, "coef0": 1.0, "n_components": 50}
    with pytest.raises(
        DataError, match="expected a positive semi-definite kernel matrix, got the eigenvalue"
    ):
        fit(step, X)


def test_the_additive_chi2_kernel_is_the_positive_one():
    X = np.random.default_rng(0).random((60, 4))
    assert (
        error(
            fit(
                {"kind": "nystroem", "kernel": "additive_chi2", "n_components": 60, "landmarks": "uniform"}, X
            ),
            X,
        )
        < 1e-8
    )


def test_precomputed_takes_fewer_landmarks_than_rows():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((80, 3))
    K = A @ A.T
    fm = fit({"kind": "nystroem", "kernel": "precomputed", "n_components": 10, "landmarks": "uniform"}, K)
    Z = fm.transform(K)
    assert Z.shape == (80, 10)
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-8)  # of rank 3 < 10


def test_too_few_rows_are_refused_and_not_warned_about():
    with pytest.raises(DataError, match=r"expected at least as many rows as landmarks \(512\), got 100"):
        fit({"kind": "nystroem"}, np.random.default_rng(0).random((100, 3)))


def test_a_sketch_keeps_float32():
    X = np.random.default_rng(0).random((30, 4)).astype(np.float32)
    assert fit({"kind": "tensor_sketch"}, X, dtype="float32").transform(X).dtype == np.float32


def test_a_negative_coef0_is_refused_and_gives_no_nan():
    with pytest.raises(ConfigError, match=r"coef0: expected a number of at least 0, got -1"):
        fit({"kind": "tensor_sketch", "coef0": -1.0}, np.ones((3, 2)))


def test_auto_width_says_what_to_do_and_names_its_columns(tmp_path):
    X = np.random.default_rng(0).standard_normal((50, 20))
    with pytest.raises(DataError, match="which would not reduce anything: raise eps or give n_components"):
        fit({"kind": "projection"}, X)
    wide = np.random.default_rng(0).standard_normal((20, 400))
    fm = fit({"kind": "projection", "eps": 0.5}, wide)
    assert fm.transform(wide).shape == (20, fm.n_components)


def test_reordered_columns_are_matched_by_name():
    X = np.random.default_rng(0).random((30, 3))
    table = pa.table({name: X[:, i] for i, name in enumerate("abc")})
    fm = fit({"kind": "fourier", "n_components": 16}, table)
    np.testing.assert_array_equal(fm.transform(table.select(["c", "a", "b"])), fm.transform(table))


def test_nan_is_named_with_its_place():
    X = np.random.default_rng(0).random((30, 3))
    fm = fit({"kind": "fourier", "n_components": 16}, X)
    X[7, 1] = np.nan
    with pytest.raises(DataError, match=r"row 8 \(index 7\), column 'c1': expected a finite number, got nan"):
        fm.transform(X)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "chi2"])
def test_chunks_and_the_whole_are_the_same_to_the_bit(kernel):
    X = np.random.default_rng(0).random((1000, 6))
    fm = fit({"kind": "nystroem", "kernel": kernel, "n_components": 32}, X, chunk_rows=256)
    whole = fm.transform(X)
    pieces = [fm.transform(X[start : start + 256]) for start in range(0, 1000, 256)]
    np.testing.assert_array_equal(np.concatenate(pieces), whole)


def test_the_seed_of_the_user_is_used():
    X = np.random.default_rng(0).random((300, 3))
    step = {"kind": "fourier", "n_components": 16}
    one, same, other = (fit(step, X, seed=seed).transform(X) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_features_are_normalised():
    X = np.random.default_rng(0).random((50, 3))
    Z = fit({"kind": "fourier", "n_components": 64}, X).transform(X)
    np.testing.assert_allclose((Z**2).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.slow
def test_nothing_warns():
    X = np.random.default_rng(0).random((600, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in ("fourier", "skewed", "homogeneous", "nystroem", "tensor_sketch"):
            fit({"kind": kind}, X).transform(X)
