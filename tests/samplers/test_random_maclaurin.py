"""Random Maclaurin features against the series that they sample."""

import numpy as np
import pytest

import kafeat
from kafeat.contract.step import Sample
from kafeat.errors import DataError
from kafeat.model.load import loads
from kafeat.samplers.random_maclaurin import RandomMaclaurin
from tests.recipes import normal_rows as rows

EPS = np.finfo(float).eps


@pytest.mark.parametrize("D", [3, 32])
def test_is_the_weighted_product_of_its_signs(features, D: int) -> None:
    X, gamma = rows(5, 4), 0.3
    step = RandomMaclaurin(degree=3, gamma=gamma, coef0=0.5, n_components=D)
    state = step.fit(Sample(X, None, 5), np.random.default_rng(2))
    degrees = state["degrees"]
    want = np.repeat(state["weights"][None, :], 5, axis=0)
    used = 0
    for level in range(1, degrees.max() + 1):
        for j in np.flatnonzero(degrees >= level):
            want[:, j] *= np.sqrt(gamma) * X @ state["signs"][used]
            used += 1
    assert used == len(state["signs"])
    parts = [np.full((5, 1), np.sqrt(0.5**3))]
    if state["linear"]:
        parts.append(np.sqrt(3 * 0.5**2 * gamma) * X)
    want = np.hstack([*parts, want])
    # products of at most 3 sums of 4 terms
    near = 64 * EPS * np.abs(want).max()
    np.testing.assert_allclose(features(step, X, 2), want, rtol=0, atol=near)


def test_one_input_leaves_only_the_choice_of_degrees(features) -> None:
    # the product of signs of one input is exact: with every degree drawn the kernel is too
    X = rows(6, 1)
    step = RandomMaclaurin(degree=2, gamma=0.5, coef0=0.0, n_components=4)
    Z = features(step, X)
    np.testing.assert_allclose(Z @ Z.T, (0.5 * X @ X.T) ** 2, rtol=1e-13)


def test_an_outlier_in_the_fit_sample_does_not_spoil_other_rows(features) -> None:
    X = rows(200, 6)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    with_outlier = np.vstack([X, 1e4 * X[:1]])
    step = RandomMaclaurin(kernel="exponential", gamma=1.0, n_components=256)
    exact = np.exp(X @ X.T)
    found = []
    for sample in (X, with_outlier):
        Z = features(step, sample, 0)[:200] if sample is X else None
        if Z is None:
            state = step.fit(Sample(sample, None, 201), np.random.default_rng(0))
            transform = step.bind(state, 6, X.dtype)
            Z = np.empty((200, 256))
            transform.apply(X, Z, transform.scratch(200))
        found.append(np.linalg.norm(Z @ Z.T - exact))
    # 1 % of the pairs hold the outlier; products are spread as before, but for a share of chance
    assert found[1] <= 2 * found[0]


def test_a_series_that_would_be_cut_off_is_refused() -> None:
    """e^{100} needs degrees beyond those that are looked at; what was made of them was far off, with code 0."""
    step = {"kind": "random_maclaurin", "kernel": "exponential", "gamma": 1.0, "n_components": 64}
    told = r"random_maclaurin: expected rows for which the series .* lower gamma"
    with pytest.raises(DataError, match=told):
        kafeat.fit({"steps": [step]}, 10.0 * rows(50, 3))
    assert kafeat.fit({"steps": [step]}, rows(50, 3)).n_components == 64


def fitted(X: np.ndarray, **parameters: object) -> kafeat.FeatureMap:
    step = {"kind": "random_maclaurin", "gamma": 1.0, "n_components": 64, **parameters}
    return kafeat.fit({"dtype": "float64", "steps": [step]}, X)


def test_a_polynomial_is_the_series_of_its_coefficients() -> None:
    X = rows(40, 5)
    short = fitted(X, degree=3, coef0=0.5)
    series = fitted(X, kernel="series", coefficients=[0.125, 0.75, 1.5, 1.0])
    # the same draws; logarithms of coefficients are rounded
    np.testing.assert_allclose(series.transform(X), short.transform(X), rtol=1e-12)
    K = short.exact_kernel(X)
    np.testing.assert_allclose(series.exact_kernel(X), K, rtol=0, atol=32 * EPS * np.abs(K).max())
    assert loads(series.dumps(), "m").transform(X).tobytes() == series.transform(X).tobytes()


@pytest.mark.parametrize("coefficients", [[3.0], [0.0, 2.0], [1.0, 2.0, 0.0]])
def test_a_series_of_degree_one_is_exact(coefficients: list[float]) -> None:
    X = rows(40, 5)
    fm = fitted(X, kernel="series", coefficients=coefficients)
    want = sum(a * (X @ X.T) ** n for n, a in enumerate(coefficients))
    for K in (fm.exact_kernel(X), fm.transform(X) @ fm.transform(X).T):
        np.testing.assert_allclose(K, want, rtol=0, atol=32 * EPS * np.abs(want).max())
