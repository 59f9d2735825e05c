"""Kernel PCA against that of scikit-learn, and the closed-form error of homogeneous maps against the kernel itself."""

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.study.kernel_error import (
    closed_form,
    components,
    error_curve,
    kernel_before_pca,
    kernel_pca,
)


@pytest.fixture(scope="module", name="X")
def uniform_rows():
    return np.random.default_rng(0).uniform(0.0, 1.0, (90, 3))


@pytest.mark.parametrize("whiten", [False, True])
def test_pca_of_exact_features_of_the_same_rows_is_kernel_pca(X, whiten):
    fm = kafeat.fit(
        {"fit_rows": "all", "dtype": "float64",
         "steps": [{"kind": "polynomial_features", "degree": 2}, {"kind": "pca", "n_components": 4, "whiten": whiten}]},
        X,
    )  # fmt: skip
    K, Z = kernel_before_pca(fm.chain, X), components(fm.chain, fm.transform(X))
    from sklearn.decomposition import KernelPCA

    before = kafeat.fit({"dtype": "float64", "steps": [{"kind": "polynomial_features", "degree": 2}]}, X)
    sklearn = KernelPCA(kernel="precomputed", n_components=8).fit(before.exact_kernel(X))
    np.testing.assert_allclose(np.linalg.eigvalsh(K)[::-1][:8], sklearn.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(np.square(Z).sum(axis=0), sklearn.eigenvalues_[:4], rtol=1e-8)
    found = kernel_pca(K, Z)
    assert found["kernel_pca_spectrum"] < 1e-8
    assert found["kernel_pca_subspace"] == pytest.approx(1.0)
    error = np.linalg.norm(K - Z @ Z.T) / np.linalg.norm(K)
    assert found["kernel_pca_error_least"] == pytest.approx(error)


def test_an_evaluation_compares_a_map_with_pca_with_exact_kernel_pca(X):
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    pca = {"kind": "pca", "n_components": 3}
    narrow, wide = (
        kafeat.evaluate(config={"steps": [{"kind": "fourier", "n_components": D}, pca]}, data=table, rows=18, jobs=1)
        for D in (8, 1024)
    )  # fmt: skip
    # No matrix of rank 3 has a smaller error. With more columns the leading space gets nearer to that of the kernel.
    for found in (narrow, wide):
        assert found["relative_frobenius"] >= found["kernel_pca_error_least"] > 0.0
        assert "kernel PCA" in found["reference"]
    assert wide["kernel_pca_subspace"] > narrow["kernel_pca_subspace"]
    assert "kernel_pca_subspace" not in kafeat.evaluate(config={"steps": [pca]}, data=table, rows=18, jobs=1)


def test_the_closed_form_error_is_that_of_the_kernel_at_the_ratios():
    """k̂(x, y) − k(x, y) of single columns is √(xy)·error(log y/x)."""
    X = np.random.default_rng(0).uniform(0.0, 1.0, (90, 1))
    fm = kafeat.fit({"steps": [{"kind": "homogeneous", "kernel": "chi2", "order": 1}], "dtype": "float64"}, X)
    ratios, error, weights = error_curve(fm.chain, X)
    ones, others = np.ones((1, 1)), np.exp(ratios)[:, None]
    off = fm.transform(ones) @ fm.transform(others).T - fm.exact_kernel(ones, others)
    np.testing.assert_allclose(off[0] / np.sqrt(others[:, 0]), error, atol=1e-12)
    found = closed_form(fm.chain, X)
    assert found["closed_form_error_max"] == np.abs(error).max()
    assert found["closed_form_error_mean"] == pytest.approx(np.average(np.abs(error), weights=weights))
    assert closed_form(kafeat.fit({"steps": [{"kind": "fourier"}]}, X).chain, X) == {}


def test_hellinger_has_no_error(X):
    fm = kafeat.fit({"steps": [{"kind": "homogeneous", "kernel": "hellinger"}]}, X)
    _, error, _ = error_curve(fm.chain, X)
    np.testing.assert_array_equal(error, 0.0)
