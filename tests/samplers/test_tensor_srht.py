"""Tensor products of randomised Hadamard sketches against their definition and their kernel."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.linalg import hadamard
from sklearn.metrics.pairwise import polynomial_kernel

import kafeat
from kafeat.contract.step import Sample
from kafeat.errors import ConfigError
from kafeat.samplers.tensor_srht import TensorSrht

EPS = np.finfo(float).eps


def rows(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal((n, d))


@pytest.mark.parametrize("coef0", [0.0, 0.7])
@pytest.mark.parametrize("D", [2, 6, 18])
@pytest.mark.parametrize("complex_to_real", [True, False])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_is_the_product_of_sampled_hadamard_rows(
    features, degree: int, complex_to_real: bool, D: int, coef0: float
) -> None:
    X, gamma = rows(5, 3), 0.4
    step = TensorSrht(
        degree=degree, gamma=gamma, coef0=coef0, n_components=D, complex_to_real=complex_to_real
    )
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


@pytest.mark.parametrize(
    ("complex_to_real", "degree", "coef0"),
    [
        (True, 2, 0.0),
        (False, 2, 1.0),
        (True, 3, 1.0),
        (False, 4, 0.5),
        pytest.param(False, 2, 0.0, marks=pytest.mark.slow),
        pytest.param(True, 2, 1.0, marks=pytest.mark.slow),
        pytest.param(False, 3, 1.0, marks=pytest.mark.slow),
        pytest.param(True, 4, 0.5, marks=pytest.mark.slow),
    ],
)
def test_unbiased(features, complex_to_real: bool, degree: int, coef0: float) -> None:
    X, seeds = rows(5, 4), 250
    kernel = {"degree": degree, "gamma": 0.5, "coef0": coef0}
    step = TensorSrht(**kernel, n_components=256, complex_to_real=complex_to_real)
    Z = np.stack([features(step, X, seed) for seed in range(seeds)])
    K = Z @ Z.transpose(0, 2, 1)
    exact = polynomial_kernel(X, **kernel)
    # 5 standard errors of the mean over independent seeds, in each of 15 entries; a constant that is off by a
    # quarter of the largest entry is seen
    errors = 5 * K.std(axis=0, ddof=1) / np.sqrt(seeds)
    assert (np.abs(K.mean(axis=0) - exact) <= errors).all()
    assert (errors <= 0.25 * exact.max()).all()


def test_a_full_orthogonal_block_of_degree_one_is_exact(features) -> None:
    X = rows(6, 8)
    Z = features(TensorSrht(degree=1, gamma=1.0, coef0=0.0, n_components=8, complex_to_real=False), X)
    # H F/√8 is orthonormal: sums of 8 terms, twice
    np.testing.assert_allclose(Z @ Z.T, X @ X.T, rtol=0, atol=32 * EPS * (X**2).sum(1).max())


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


@pytest.mark.parametrize("complex_to_real", [True, False])
def test_error_halves_when_outputs_quadruple(features, complex_to_real: bool) -> None:
    X = rows(8, 6)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    exact = (X @ X.T + 1) ** 2
    few, many = (
        mean_square(features, X, exact, 200, n_components=D, complex_to_real=complex_to_real)
        for D in (64, 256)
    )
    # Blocks of 8 are independent, so the variance is proportional to 1/D; the tolerance is that of
    # test_tensor_sketch: four times the relative standard error √(8/200)/√2 of the ratio of roots
    assert np.sqrt(few / many) == pytest.approx(2.0, rel=4 * 0.14)


@pytest.mark.parametrize(
    ("name", "value"),
    [("coef0", -0.1), ("gamma", 0.0), ("gamma", "median"), ("degree", 0), ("n_components", 0)],
)
def test_bounds(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"steps\[0\]\.{name}: expected "):
        kafeat.fit({"steps": [{"kind": "tensor_srht", name: value}]}, rows(4, 2))


def test_an_odd_width_is_refused_with_its_neighbours() -> None:
    with pytest.raises(ConfigError, match=r"n_components: .*an even number with complex_to_real \(6 or 8\)"):
        kafeat.fit({"steps": [{"kind": "tensor_srht", "n_components": 7}]}, rows(4, 2))
    fm = kafeat.fit(
        {"steps": [{"kind": "tensor_srht", "n_components": 7, "complex_to_real": False}]}, rows(4, 2)
    )
    assert fm.n_components == 7


@pytest.mark.parametrize(("name", "value"), [("turns", 4), ("turns", -1), ("rows", 4), ("rows", -1)])
def test_a_state_that_points_elsewhere_is_refused(name: str, value: int) -> None:
    step = TensorSrht(n_components=8)
    state = step.fit(Sample(rows(4, 3), None, 4), np.random.default_rng(0))
    state[name].flat[0] = value
    with pytest.raises(ValueError, match=rf"state\.{name}: expected whole numbers from 0 to 3"):
        step.check_state(state, 3)
