"""Random Maclaurin features against the series that they sample."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel

import kafeat
from kafeat.contract.step import Sample
from kafeat.errors import ConfigError, DataError
from kafeat.model.load import loads
from kafeat.samplers.random_maclaurin import RandomMaclaurin, _log_spread, _moments, _Monomials, _systematic

EPS = np.finfo(float).eps


def rows(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal((n, d))


def exact_of(X: np.ndarray, step: RandomMaclaurin) -> np.ndarray:
    if step.kernel == "exponential":
        return np.exp(step.gamma * X @ X.T)
    if step.coefficients is not None:
        return sum(a * (step.gamma * X @ X.T) ** n for n, a in enumerate(step.coefficients))
    return polynomial_kernel(X, degree=step.degree, gamma=step.gamma, coef0=step.coef0)


STEPS = [
    RandomMaclaurin(degree=2, gamma=0.5, coef0=0.0, n_components=32),
    RandomMaclaurin(degree=2, gamma=0.5, n_components=32),
    RandomMaclaurin(degree=3, gamma=0.3, coef0=0.5, n_components=32),
    RandomMaclaurin(degree=3, gamma=0.3, n_components=3),  # fewer than the inputs: nothing linear is exact
    RandomMaclaurin(degree=2, gamma=0.3, n_components=1),  # not even the constant
    RandomMaclaurin(kernel="exponential", gamma=0.2, n_components=32),
    RandomMaclaurin(kernel="exponential", gamma=0.2, n_components=2),
    RandomMaclaurin(kernel="series", coefficients=(0.0, 0.5, 0.0, 0.2), gamma=0.3, n_components=32),
]


@pytest.mark.parametrize("step", STEPS, ids=str)
@pytest.mark.slow
def test_unbiased(features, step: RandomMaclaurin) -> None:
    X, seeds = rows(5, 4), 600 if step.n_components == 32 else 2500
    X /= np.linalg.norm(X, axis=1, keepdims=True) / 1.5
    Z = np.stack([features(step, X, seed) for seed in range(seeds)])
    K = Z @ Z.transpose(0, 2, 1)
    exact = exact_of(X, step)
    # 5 standard errors of the mean over independent seeds, and 4 eps for entries that do not vary
    errors = 5 * K.std(axis=0, ddof=1) / np.sqrt(seeds) + 4 * np.finfo(float).eps * exact.max()
    assert (np.abs(K.mean(axis=0) - exact) <= errors).all()
    # a wrong constant is seen
    assert errors.max() <= 0.25 * exact.max()


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
    np.testing.assert_allclose(
        features(step, X, 2), want, rtol=0, atol=64 * np.finfo(float).eps * np.abs(want).max()
    )


def test_a_linear_kernel_with_outputs_enough_is_exact(features) -> None:
    X = rows(6, 5)
    step = RandomMaclaurin(degree=1, gamma=0.5, coef0=2.0, n_components=9)
    Z = features(step, X)
    np.testing.assert_allclose(Z @ Z.T, 0.5 * X @ X.T + 2.0, rtol=1e-13)
    assert not Z[:, 6:].any()  # nothing is left to draw


def test_one_input_leaves_only_the_choice_of_degrees(features) -> None:
    # the product of signs of one input is exact: with every degree drawn the kernel is too
    X = rows(6, 1)
    step = RandomMaclaurin(degree=2, gamma=0.5, coef0=0.0, n_components=4)
    Z = features(step, X)
    np.testing.assert_allclose(Z @ Z.T, (0.5 * X @ X.T) ** 2, rtol=1e-13)


def test_degrees_come_as_often_as_they_should() -> None:
    q, m, seeds = np.array([0.0, 0.55, 0.30, 0.15]), 7, 2000
    counts = np.stack(
        [np.bincount(_systematic(q, m, np.random.default_rng(s)), minlength=4) for s in range(seeds)]
    )
    assert (counts >= np.floor(m * q)).all()
    assert (counts <= np.ceil(m * q)).all()
    # a count is one of two neighbours: standard deviation at most ½
    np.testing.assert_allclose(counts.mean(axis=0), m * q, rtol=0, atol=5 * 0.5 / np.sqrt(seeds))


@pytest.mark.parametrize("kernel", ["polynomial", "exponential"])
def test_error_halves_when_outputs_quadruple(features, kernel: str) -> None:
    X, seeds = rows(8, 6), 200
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    # 63 + 7 and 252 + 7: the exact outputs apart
    steps = [RandomMaclaurin(kernel=kernel, gamma=1.0, n_components=D) for D in (63 + 7, 252 + 7)]
    exact = exact_of(X, steps[0])
    few, many = (
        np.mean([((Z := features(step, X, s)) @ Z.T - exact) ** 2 for s in range(seeds)]) for step in steps
    )
    # independent products: variance proportional to 1/m; tolerance as in test_tensor_sketch
    assert np.sqrt(few / many) == pytest.approx(2.0, rel=4 * 0.14)


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


@pytest.mark.parametrize(
    ("name", "value"),
    [("coef0", -0.1), ("gamma", 0.0), ("gamma", "median"), ("degree", 0), ("kernel", "rbf")],
)
def test_bounds(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"steps\[0\]\.{name}: expected "):
        kafeat.fit({"steps": [{"kind": "random_maclaurin", name: value}]}, rows(4, 2))


def test_a_state_whose_degrees_do_not_fit_its_signs_is_refused() -> None:
    step = RandomMaclaurin(n_components=16)
    state = step.fit(Sample(rows(4, 3), None, 4), np.random.default_rng(0))
    step.check_state(state, 3)
    state["degrees"][0] += 1
    with pytest.raises(ValueError, match=r"state\.degrees: expected falling numbers whose sum"):
        step.check_state(state, 3)


def test_rows_of_zeros_are_fine(features) -> None:
    Z = features(RandomMaclaurin(n_components=8), np.zeros((3, 2)))
    np.testing.assert_allclose(Z @ Z.T, np.ones((3, 3)), rtol=1e-14)


def test_spread_is_the_variance_of_one_product() -> None:
    x, y = rows(2, 4)
    signs = np.array(list(product([-1.0, 1.0], repeat=4)))
    terms = (signs @ x) * (signs @ y)  # every w there is
    n = np.arange(5)
    # of n independent factors: E[∏²] − (x·y)^{2n}, and the hundredth of E[∏²] that keeps a degree possible
    want = 1.01 * (terms**2).mean() ** n - terms.mean() ** (2 * n)
    got = np.exp(2.0 * _log_spread(*_moments(np.tile(x, (3, 1)), np.tile(y, (3, 1))), 5))
    # a dozen sums and logarithms of a few eps, to the fourth power
    np.testing.assert_allclose(got, want, rtol=200 * np.finfo(float).eps)


def test_a_plan_has_the_variance_that_it_claims() -> None:
    sizes = np.array([0.3, 2.0, 0.0, 1.1])  # a_n√V_n
    with np.errstate(divide="ignore"):
        plan = _Monomials(False, 8, np.log(sizes))
    q = plan.probabilities
    drawn = q > 0
    # Σ (a_n²V_n/q_n)/m over the degrees drawn
    want = (sizes[drawn] ** 2 / q[drawn]).sum() / 8
    assert np.exp(plan.log_variance) == pytest.approx(want, rel=1e-12)


def test_a_series_that_would_be_cut_off_is_refused() -> None:
    """e^{100} needs degrees beyond those that are looked at; what was made of them was far off, with code 0."""
    step = {"kind": "random_maclaurin", "kernel": "exponential", "gamma": 1.0, "n_components": 64}
    with pytest.raises(
        DataError, match=r"random_maclaurin: expected rows for which the series .* lower gamma"
    ):
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


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "series"}, "coefficients: expected numbers of which one is above 0, for a series, got null"),
        ({"kernel": "series", "coefficients": [0.0]}, "coefficients: expected numbers of which one is above 0"),
        ({"kernel": "series", "coefficients": []}, "coefficients: expected"),
        ({"kernel": "series", "coefficients": [1.0, -1.0]}, r"coefficients\[1\]: expected a number of at least 0"),
        ({"kernel": "series", "coefficients": [1.0], "degree": 3}, "degree: expected none beside coefficients, got 3"),
        ({"kernel": "series", "coefficients": [1.0], "coef0": 0.5}, "coef0: expected none beside coefficients"),
        ({"coefficients": [1.0]}, "coefficients: expected kernel: series with them, got 'polynomial'"),
    ],
)  # fmt: skip
def test_coefficients_that_are_refused(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fitted(rows(9, 3), **parameters)
