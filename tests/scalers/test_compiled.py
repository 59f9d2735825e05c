"""Compiled scalers against their NumPy forms, and both against wider numbers."""

import mpmath
import numpy as np
import pytest

from kafeat.compiled.library import describe
from kafeat.contract.step import Sample, Scaler, ScalerTransform
from kafeat.scalers.power import Power
from kafeat.scalers.quantile import Quantile
from kafeat.types import Floats, State

EPS = np.finfo(float).eps


def bound(scaler: Scaler, state: State, X: Floats, order: str = "C") -> Floats:
    """The rows as a map transforms them."""
    transform = scaler.bind(state, X.shape[1], X.dtype)
    out = np.empty(X.shape, X.dtype, order=order)
    transform.apply(X, out, transform.scratch(len(X)))
    return out


def sample() -> Floats:
    """Columns that are normal, heavy-tailed, discrete, constant, tiny, and as far apart as float64 allows."""
    rng = np.random.default_rng(0)
    normal = rng.standard_normal((2000, 6))
    columns = [normal[:, 0], np.sinh(9.0 * normal[:, 1]), np.round(normal[:, 2]), np.full(2000, 3.0)]
    return np.column_stack([*columns, normal[:, 4] * 1e-290, np.sign(normal[:, 5]) * 1.7e308])


@pytest.mark.parametrize("output", ["normal", "uniform"])
@pytest.mark.parametrize("n_quantiles", [2, 3, 1000])
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_quantiles_are_numpys(output: str, n_quantiles: int) -> None:
    X = sample()[:, :5]
    scaler = Quantile(output=output, n_quantiles=n_quantiles, clip=40.0)
    state = scaler.fit(Sample(X, None, len(X)), np.random.default_rng(0))
    beside = np.nextafter(state["quantiles"], np.inf), np.nextafter(state["quantiles"], -np.inf)
    rows = np.vstack([X, state["quantiles"], *beside, 2.0 * X, X - 1.0])
    # Interpolation from either side and the step between levels are rounded; near 0 and 1, Φ⁻¹ makes more of that.
    F = ScalerTransform(Quantile(output="uniform", n_quantiles=n_quantiles), state, 5, X.dtype)
    expected = np.empty(rows.shape)
    F.apply(rows, expected, None)
    uniform = bound(Quantile(output="uniform", n_quantiles=n_quantiles), state, rows)
    np.testing.assert_allclose(uniform, expected, 0.0, 8.0 * EPS)
    if output == "normal":
        inside = (uniform > 1e-6) & (uniform < 1.0 - 1e-6)
        found = bound(scaler, state, rows)[inside]
        np.testing.assert_allclose(found, scaler.scale(state, rows)[inside], 1e-8, 1e-12)
        assert (bound(scaler, state, rows)[uniform == 0.0] == -40.0).all()
        assert (bound(scaler, state, rows)[uniform == 1.0] == 40.0).all()


def test_quantiles_of_the_widest_range() -> None:
    X = sample()[:, 5:]
    state = {"quantiles": np.quantile(X, [0.0, 0.25, 0.75, 1.0], axis=0, method="nearest")}
    expected = np.where(X < 0.0, 1.0 / 6.0, 5.0 / 6.0)
    np.testing.assert_allclose(bound(Quantile(output="uniform"), state, X), expected, 4.0 * EPS)


def test_normal_quantiles_are_those_of_wider_numbers() -> None:
    ends = np.logspace(-300, -1, 100), 1.0 - np.logspace(-15, -1, 100)
    F = np.concatenate([np.linspace(0.0005, 0.9995, 400), *ends])
    # between the quantiles 0 and 1, F is the number itself
    z = bound(Quantile(clip=40.0, n_quantiles=2), {"quantiles": np.array([[0.0], [1.0]])}, F[:, None])
    with mpmath.workdps(40):
        for p, found in zip(F, z[:, 0], strict=True):
            # one step of Newton's from what was found: the rest is below the square of its error
            error = (mpmath.ncdf(found) - mpmath.mpf(float(p))) / mpmath.npdf(found)
            # NumPy's F is off by its rounding near 1
            of_level = 0.0 if describe() == "compiled" else EPS / mpmath.npdf(found)
            assert abs(error) <= 8.0 * EPS * abs(found) + 4.0 * EPS + of_level


def test_powers_are_those_of_wider_numbers() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6)) * 10.0 ** rng.integers(-12, 4, (60, 6))
    exponents = np.array([-2.5, 0.0, 1e-3, 1.0, 2.0, 3.7])
    state = {"exponent": exponents, "mean": np.zeros(6), "scale": np.ones(6)}
    found = bound(Power(), state, X)
    with mpmath.workdps(40):
        for (i, j), x in np.ndenumerate(X):
            p = mpmath.mpf(exponents[j] if x >= 0.0 else 2.0 - exponents[j])
            logs = mpmath.log1p(abs(x))
            exact = mpmath.sign(x) * (mpmath.expm1(p * logs) / p if p else logs)
            # the product p·log is rounded: an error of ½ eps times itself in the exponential, and some operations
            assert abs(found[i, j] - exact) <= (8.0 + abs(p * logs)) * EPS * abs(exact)


@pytest.mark.parametrize("scaler", [Quantile(), Power()], ids=lambda scaler: scaler.kind)
def test_a_number_does_not_depend_on_its_place(scaler: Scaler) -> None:
    X = np.random.default_rng(0).standard_normal((300, 5))
    state = scaler.fit(Sample(X, None, 300), np.random.default_rng(0))
    whole = bound(scaler, state, X)
    np.testing.assert_array_equal(bound(scaler, state, X, order="F"), whole)
    np.testing.assert_array_equal(bound(scaler, state, np.ascontiguousarray(X[37:40])), whole[37:40])


def test_a_power_that_float64_cannot_hold_is_refused() -> None:
    state = {"exponent": np.array([3.0]), "mean": np.zeros(1), "scale": np.ones(1)}
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        bound(Power(), state, np.array([[1e200]]))
