"""Positive random features against the exponential kernel and the published variances."""

import numpy as np
import pytest

import kafeat
from kafeat.contract.step import Sample
from kafeat.errors import DataError
from kafeat.samplers.positive_exponential import PositiveExponential, best_tilt
from tests.recipes import normal_rows as rows

GAMMA = 0.3


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


@pytest.mark.parametrize("scale", [50.0, 1e30])
def test_an_exponent_out_of_range_names_its_row(scale: float) -> None:
    X = rows(300, 4)
    fm = kafeat.fit({"steps": [{"kind": "positive_exponential", "gamma": 1.0}]}, X)
    X[270] *= scale
    with pytest.raises(DataError, match=r"row 271 .*: expected a largest exponent from -87\.34 to 88\.72"):
        fm.transform(X)


def test_an_outlier_in_the_fit_sample_does_not_move_the_tilt() -> None:
    X = rows(100, 4)
    step, rng = PositiveExponential(gamma=GAMMA, n_components=2), np.random.default_rng
    plain = step.fit(Sample(X, None, 100), rng(0))["tilt"]
    X[0] *= 1e6
    # a median over pairs of which 2 % hold the outlier
    assert step.fit(Sample(X, None, 100), rng(0))["tilt"] == pytest.approx(float(plain), rel=0.1)


@pytest.mark.parametrize("kind", ["plain", "hyperbolic"])
def test_features_are_above_0(features, kind: str) -> None:
    step = PositiveExponential(gamma=GAMMA, n_components=64, features=kind)
    assert (features(step, rows(50, 4)) > 0.0).all()
