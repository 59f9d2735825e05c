"""γ read off the data, against all pairs."""

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.spatial.distance import pdist

from kafeat.errors import DataError
from kafeat.maths.bandwidth import resolve_gamma
from kafeat.maths.kernels import find_kernel
from kafeat.registry import build_step


def rows(n: int = 300, d: int = 4) -> np.ndarray:
    return np.random.default_rng(0).exponential(size=(n, d))


def resolve(rule, kernel: str, X: np.ndarray, seed: int = 0) -> float:
    return resolve_gamma(rule, find_kernel(kernel), X, np.random.default_rng(seed))


OF_SQUARES = [("rbf", 2.0), ("rational_quadratic", 2.0), ("cauchy", 2.0), ("matern", 1.0)]


SCALED = [
    *((kernel, "sqeuclidean", factor) for kernel, factor in OF_SQUARES),
    ("laplacian", "cityblock", 1.0),
]


@pytest.mark.parametrize(("kernel", "distance", "factor"), SCALED)
def test_median_is_that_of_all_pairs(kernel: str, distance: str, factor: float) -> None:
    every = pdist(rows(), distance)
    # The median of 20,000 random pairs lies at the quantile ½ ± ½/√20000 of all: 5 standard errors are 0.018
    low, high = np.quantile(every, [0.5 - 0.018, 0.5 + 0.018])
    assert low <= 1 / (factor * resolve("median", kernel, rows())) <= high


def test_chi2_takes_the_mean_of_its_distance() -> None:
    X = rows()
    X[:5, 0] = 0.0
    i, j = np.triu_indices(len(X), 1)
    total = X[i] + X[j]
    every = np.where(total > 0, (X[i] - X[j]) ** 2 / np.where(total > 0, total, 1), 0).sum(axis=1)
    assert 1 / resolve("median", "chi2", X) == pytest.approx(
        every.mean(), abs=5 * every.std() / np.sqrt(20_000)
    )


def test_scale_and_auto_and_numbers() -> None:
    X = rows()
    assert resolve("scale", "rbf", X) == pytest.approx(1 / (4 * X.var()), rel=1e-14)
    assert resolve("auto", "rbf", X) == 0.25
    for kernel in ("polynomial", "linear", "sigmoid", "cosine", "additive_chi2"):
        assert resolve("median", kernel, X) == 0.25
    assert resolve(0.7, "rbf", X) == 0.7


def test_more_duplicates_than_not() -> None:
    X = np.zeros((100, 2))
    X[:10] = rows(10, 2)
    every = pdist(X, "sqeuclidean")
    mean = every[every > 0].mean()
    # about 19 % of 20,000 pairs differ
    bound = 5 * every[every > 0].std() / np.sqrt(0.19 * 20_000)
    assert 1 / (2 * resolve("median", "rbf", X)) == pytest.approx(mean, abs=bound)


@pytest.mark.parametrize("rule", ["median", "scale"])
@pytest.mark.parametrize("n", [1, 5])
def test_rows_that_do_not_differ_are_refused(rule: str, n: int) -> None:
    what = "variance" if rule == "scale" else "distance between rows"
    told = f"gamma: {rule}: expected rows that differ, got a {what} of 0 in the fit sample"
    with pytest.raises(DataError, match=told):
        resolve(rule, "rbf", np.full((n, 3), 2.0))


@pytest.mark.parametrize("exponent", [-450, 450])
@pytest.mark.parametrize("rule", ["median", "scale"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "chi2"])
def test_squares_beyond_float64_do_not_matter(kernel: str, rule: str, exponent: int) -> None:
    power = 1 if rule == "median" and kernel != "rbf" else 2
    got = resolve(rule, kernel, np.ldexp(rows(), exponent))
    assert np.ldexp(got, power * exponent) == pytest.approx(resolve(rule, kernel, rows()), rel=1e-14)


@pytest.mark.parametrize(("exponent", "size"), [(-600, "10\\^-36\\d"), (600, "10\\^36\\d")])
@pytest.mark.parametrize("rule", ["median", "scale"])
def test_a_gamma_beyond_float64_is_refused(rule: str, exponent: int, size: str) -> None:
    told = f"gamma: {rule}: expected a .* whose inverse.*got one of {size}.*scale the input"
    with pytest.raises(DataError, match=told):
        resolve(rule, "rbf", np.ldexp(rows(), exponent))


def test_an_outlier_does_not_move_the_median() -> None:
    X = rows()
    X[3] = 1e200
    assert resolve("median", "rbf", X) == pytest.approx(resolve("median", "rbf", rows()), rel=0.02)


@pytest.mark.parametrize("gamma", ["0*median", "0.0*scale", ".0e9*auto", "٣*median", "1e999*median"])
def test_a_multiple_that_is_no_number_above_0(gamma: str) -> None:
    with pytest.raises(ValidationError, match="String should match pattern"):
        build_step({"kind": "fourier", "gamma": gamma})


@pytest.mark.parametrize("gamma", ["10*median", ".5*scale", "5.*auto", "1e-3*median", "0.01E+2*median"])
def test_a_multiple(gamma: str) -> None:
    assert build_step({"kind": "fourier", "gamma": gamma}).recipe()["gamma"] == gamma
