"""Normalize against scikit-learn."""

import numpy as np
import pytest
from sklearn.preprocessing import Normalizer

import kafeat

NORMS = ("l1", "l2", "max")
EPS = np.finfo(float).eps


def transform(X: np.ndarray, norm: str, dtype: str = "float64") -> np.ndarray:
    return kafeat.fit({"dtype": dtype, "steps": [{"kind": "normalize", "norm": norm}]}, X).transform(X)


@pytest.mark.parametrize("norm", NORMS)
def test_is_scikit_learns(norm: str) -> None:
    X = np.random.default_rng(0).standard_normal((100, 7))
    X[3] = 0.0
    # theirs takes max x for max |x|
    largest = np.abs(X).max(axis=1, keepdims=True)
    want = X / np.where(largest > 0, largest, 1) if norm == "max" else Normalizer(norm).fit_transform(X)
    # sums of 7 terms, a root and two quotients
    np.testing.assert_allclose(transform(X, norm), want, rtol=0, atol=16 * EPS)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_huge_and_tiny_rows_have_unit_norm(norm: str, dtype: str) -> None:
    info = np.finfo(dtype)
    X = np.array([[3.0, -4.0, 0.0]]) / 4.0 * np.array([[float(info.max)], [float(info.tiny)], [1.0]])
    Z = transform(X, norm, dtype).astype(float)
    order = {"l1": 1, "l2": 2, "max": np.inf}[norm]
    np.testing.assert_allclose(np.linalg.norm(Z, ord=order, axis=1), 1.0, rtol=0, atol=8 * info.eps)
    np.testing.assert_allclose(Z, np.broadcast_to(Z[2], Z.shape), rtol=0, atol=8 * info.eps)


def test_l2_composes_behind_a_sampler_and_l1_does_not() -> None:
    X = np.random.default_rng(0).exponential(size=(30, 5))
    steps = [{"kind": "homogeneous", "order": 9}, {"kind": "normalize"}]
    fm = kafeat.fit({"dtype": "float64", "steps": steps}, X)
    assert fm.chain.exact_kernel_note() is None
    K = np.array([[(2 * x * y / (x + y)).sum() for y in X] for x in X])
    want = K / np.sqrt(np.outer(np.diag(K), np.diag(K)))
    np.testing.assert_allclose(fm.exact_kernel(X), want, rtol=0, atol=32 * EPS)
    Z = fm.transform(X)
    np.testing.assert_allclose((Z**2).sum(1), 1.0, rtol=0, atol=32 * EPS)
    steps = [{"kind": "homogeneous"}, {"kind": "normalize", "norm": "l1"}]
    fm = kafeat.fit({"dtype": "float64", "steps": steps}, X)
    assert "steps[1] (normalize) needs coordinates after a sampler" in fm.chain.exact_kernel_note()
    # the reference is the kernel of the computed outputs: here, the map itself
    Z = fm.transform(X)
    np.testing.assert_allclose(fm.exact_kernel(X), Z @ Z.T, rtol=0, atol=32 * EPS)


@pytest.mark.sampled
@pytest.mark.parametrize("kernel", ["chi2", "intersection", "jensen_shannon", "hellinger"])
@pytest.mark.parametrize("homogeneity", [0.5, 1.0, 2.0])
def test_homogeneous_norm_makes_the_exact_kernel_1_on_the_diagonal(kernel: str, homogeneity: float) -> None:
    X = np.random.default_rng(0).exponential(size=(20, 5))
    X[3] = 0.0
    norm, of_kernel = {"kind": "normalize", "norm": "homogeneous"}, {"kind": "homogeneous", "kernel": kernel}
    steps = [{**step, "homogeneity": homogeneity} for step in (norm, of_kernel)]
    K = kafeat.fit({"dtype": "float64", "steps": steps}, X).exact_kernel(X)
    want = np.where(np.arange(20) == 3, 0.0, 1.0)
    np.testing.assert_allclose(np.diag(K), want, rtol=0, atol=32 * np.finfo(float).eps)
