"""Positive random features against the exponential kernel and the published variances."""

from __future__ import annotations

import numpy as np
import pytest

import kafeat
from kafeat.contract.step import Sample
from kafeat.errors import ConfigError, DataError
from kafeat.samplers.positive_exponential import PositiveExponential, best_tilt

GAMMA = 0.3


def rows(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal((n, d))


@pytest.mark.parametrize(
    ("directions", "features_", "tilt"),
    [
        # every pair of values once; all eight together are slow
        ("iid", "hyperbolic", "fitted"),
        ("iid", "plain", "none"),
        ("orthogonal", "hyperbolic", "none"),
        ("orthogonal", "plain", "fitted"),
        pytest.param("iid", "hyperbolic", "none", marks=pytest.mark.slow),
        pytest.param("iid", "plain", "fitted", marks=pytest.mark.slow),
        pytest.param("orthogonal", "hyperbolic", "fitted", marks=pytest.mark.slow),
        pytest.param("orthogonal", "plain", "none", marks=pytest.mark.slow),
    ],
)
def test_unbiased_and_positive(features, directions: str, features_: str, tilt: str) -> None:
    X, seeds = rows(5, 4), 100
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    step = PositiveExponential(
        gamma=GAMMA, n_components=256, directions=directions, features=features_, tilt=tilt
    )
    Z = np.stack([features(step, X, seed) for seed in range(seeds)])
    assert (Z > 0).all()
    K = Z @ Z.transpose(0, 2, 1)
    exact = np.exp(GAMMA * X @ X.T)
    # 5 standard errors of the mean over independent seeds
    errors = 5 * K.std(axis=0, ddof=1) / np.sqrt(seeds)
    assert (np.abs(K.mean(axis=0) - exact) <= errors).all()
    assert errors.max() <= 0.1 * exact.max()  # a wrong constant is seen


@pytest.mark.slow
def test_variance_is_the_papers(features) -> None:
    X, seeds, D = 0.5 * rows(2, 3), 4000, 16
    s = GAMMA * ((X[0] + X[1]) ** 2).sum()
    k = np.exp(GAMMA * X[0] @ X[1])
    # Choromanski et al. 2021, lemma 2: plain k²(e^s − 1)/D; hyperbolic with D/2 pairs (1 − e^{−s}) times that
    want = {"plain": k**2 * np.expm1(s) / D, "hyperbolic": k**2 * np.expm1(s) * -np.expm1(-s) / D}
    for kind, variance in want.items():
        step = PositiveExponential(gamma=GAMMA, n_components=D, directions="iid", features=kind, tilt="none")
        Z = np.stack([features(step, X, seed) for seed in range(seeds)])
        found = np.einsum("sd,sd->s", Z[:, 0], Z[:, 1])
        spread = ((found - found.mean()) ** 2).std() / np.sqrt(seeds)
        assert found.var(ddof=1) == pytest.approx(variance, abs=5 * spread)


@pytest.mark.parametrize(("phi", "d"), [(0.5, 3), (4.0, 10), (30.0, 2), (1e-9, 5)])
def test_tilt_minimises_the_second_moment(phi: float, d: int) -> None:
    # E[f(x)²f(y)²] e^{‖x‖² + ‖y‖²} = ((1 − 4A)²/(1 − 8A))^{d/2}·exp(2(1 − 4A)φ/(1 − 8A)), a Gaussian integral
    def moment(A: float) -> float:
        return d * np.log(1 - 4 * A) - d / 2 * np.log(1 - 8 * A) + 2 * (1 - 4 * A) * phi / (1 - 8 * A)

    best = best_tilt(phi, d)
    assert best <= 0
    assert all(moment(best) <= moment(A) + 1e-12 * phi for A in (0.0, 0.9 * best, 1.1 * best, 2 * best))


def test_error_halves_when_outputs_quadruple(features) -> None:
    X, seeds = 0.7 * rows(8, 6), 200
    exact = np.exp(GAMMA * X @ X.T)
    few, many = (
        np.mean(
            [
                (
                    (Z := features(PositiveExponential(gamma=GAMMA, n_components=D, directions="iid"), X, s))
                    @ Z.T
                    - exact
                )
                ** 2
                for s in range(seeds)
            ]
        )
        for D in (64, 256)
    )
    # independent pairs: 1/D; tolerance as in test_tensor_sketch
    assert np.sqrt(few / many) == pytest.approx(2.0, rel=4 * 0.14)


@pytest.mark.parametrize("scale", [50.0, 1e30])
def test_an_exponent_out_of_range_names_its_row(scale: float) -> None:
    X = rows(300, 4)
    fm = kafeat.fit({"steps": [{"kind": "positive_exponential", "gamma": 1.0}]}, X)
    X[270] *= scale
    with pytest.raises(
        DataError, match=r"row 271 \(index 270\): expected a largest exponent from -87\.34 to 88\.72"
    ):
        fm.transform(X)


def test_an_outlier_in_the_fit_sample_does_not_move_the_tilt() -> None:
    X = rows(100, 4)
    step, rng = PositiveExponential(gamma=GAMMA, n_components=2), np.random.default_rng
    plain = step.fit(Sample(X, None, 100), rng(0))["tilt"]
    X[0] *= 1e6
    # a median over pairs of which 2 % hold the outlier
    assert step.fit(Sample(X, None, 100), rng(0))["tilt"] == pytest.approx(float(plain), rel=0.1)


def test_bounds() -> None:
    for parameters, text in (
        ({"gamma": 0.0}, r"gamma: expected "),
        ({"n_components": 7}, r"n_components: .*an even number for hyperbolic features \(6 or 8\)"),
        ({"tilt": "best"}, r"tilt: expected "),
    ):
        with pytest.raises(ConfigError, match=text):
            kafeat.fit({"steps": [{"kind": "positive_exponential", **parameters}]}, rows(4, 2))


def test_a_state_with_a_tilt_above_0_is_refused() -> None:
    step = PositiveExponential(n_components=2)
    with pytest.raises(ValueError, match=r"state\.tilt: expected a number of at most 0, got 0\.5"):
        step.check_state({"tilt": np.array(0.5)}, 1)


def test_tilt_of_rows_that_are_far_out() -> None:
    # −φ/4d in the limit
    assert best_tilt(1e200, 4) == pytest.approx(-1e200 / 16, rel=1e-12)
