"""Tensor products of randomised Hadamard sketches against their definition and their kernel."""

from itertools import product

import numpy as np
import pytest
from scipy.linalg import hadamard

from kafeat.contract.step import Sample
from kafeat.samplers.tensor_srht import TensorSrht
from tests.recipes import normal_rows as rows

EPS = np.finfo(float).eps


@pytest.mark.parametrize("coef0", [0.0, 0.7])
@pytest.mark.parametrize("D", [2, 6, 18])
@pytest.mark.parametrize("complex_to_real", [True, False])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_is_the_product_of_sampled_hadamard_rows(features, degree, complex_to_real, D, coef0):
    X, gamma = rows(5, 3), 0.4
    given = {"degree": degree, "gamma": gamma, "coef0": coef0, "n_components": D}
    step = TensorSrht(**given, complex_to_real=complex_to_real)
    state = step.fit(Sample(X, None, 5), np.random.default_rng(3))
    units = 1j ** np.arange(4) if complex_to_real else np.array([1.0, -1.0])
    u = np.hstack([np.sqrt(gamma) * X, np.full((5, 1), np.sqrt(coef0))])
    width = 3 + (coef0 > 0)  # both are padded to 4
    carried = np.empty((5, 0))
    if "linear" in state:
        carried = np.full((5, 1), coef0 ** (degree / 2))
        if state["linear"]:
            carried = np.hstack([carried, np.sqrt(degree * coef0 ** (degree - 1) * gamma) * X])
    assert ("linear" in state) == (coef0 > 0 and 1 + complex_to_real < D)
    # terms of that few inputs are in other outputs
    least, left = carried.shape[1] and 1 + bool(state["linear"]), D - carried.shape[1]
    m = left // 2 if complex_to_real else left
    assert state["rows"].shape[1] == m
    want = np.full((5, m), 0.0, dtype=complex)
    for index in product(range(width), repeat=degree):
        if sum(i < 3 for i in index) < least:
            continue
        term = np.full((5, m), 1 / np.sqrt(m), dtype=complex)
        for q, i in enumerate(index):
            for j in range(m):
                sign = hadamard(4)[state["rows"][q, j], i]
                term[:, j] *= u[:, i] * sign * units[state["turns"][q, j // 4, i]]
        want += term
    want = np.hstack([want.real, want.imag]) if complex_to_real else want.real
    want = np.hstack([carried, want, np.zeros((5, left - want.shape[1]))])
    # a factor is a sum of 4 terms, at most 2‖u‖, with relative roundings of a few eps
    scale = (2 * np.linalg.norm(u, axis=1).max()) ** degree
    np.testing.assert_allclose(features(step, X, 3), want, rtol=0, atol=8 * degree * EPS * scale)
    # without replacement: no row of a block twice
    for start in range(0, m, 4):
        assert all(len(set(chosen)) == len(chosen) for chosen in state["rows"][:, start : start + 4])


def mean_square(features, X: np.ndarray, exact: np.ndarray, seeds: int, **parameters) -> float:
    step = TensorSrht(gamma=1.0, **parameters)
    found = [((Z := features(step, X, s)) @ Z.T - exact) ** 2 for s in range(seeds)]
    return float(np.mean(found))


def test_complex_to_real_lowers_the_error_of_non_negative_rows(features) -> None:
    X = np.abs(rows(8, 20))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    exact = (X @ X.T) ** 4
    real, complex_ = (
        mean_square(features, X, exact, 100, degree=4, coef0=0.0, n_components=128, complex_to_real=c)
        for c in (False, True)
    )
    # x·y is positive: a real factor has up to 3 times the squared mean, a complex one up to 2 (Wacker et al. 2022,
    # section 4), but half as many products; at degree 4 that is (3⁴ − 1)/(2⁴ − 1)/2 = 2.7 times less at the most
    assert complex_ < 0.8 * real
