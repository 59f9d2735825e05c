"""Random features of the skewed chi2 kernel."""

from __future__ import annotations

import numpy as np
import pytest

import kafeat
from kafeat.contract.kernel_inputs import Coordinates
from kafeat.contract.step import Sample
from kafeat.errors import DataError
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels.shift_invariant import SkewedChi2Kernel
from kafeat.samplers.skewed import Skewed

C = 0.3


def rows(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(7).exponential(size=(n, d)) - 0.1


def exact(X: np.ndarray) -> np.ndarray:
    return SkewedChi2Kernel().gram(Coordinates(X, X), KernelParameters(skewedness=C)).dots


@pytest.mark.parametrize("kind", ["paired", "offset"])
def test_unbiased(features, kind: str) -> None:
    X, seeds = rows(6, 3), 600
    step = Skewed(frequencies="iid", weights="uniform", skewedness=C, n_components=16, features=kind)
    Z = np.stack([features(step, X, seed) for seed in range(seeds)])
    K = Z @ Z.transpose(0, 2, 1)
    # 5 standard errors of the mean: 6e-7 for each of 21 entries; 1e-12 is rounding, for the diagonal
    assert (np.abs(K.mean(axis=0) - exact(X)) <= 5 * K.std(axis=0, ddof=1) / np.sqrt(seeds) + 1e-12).all()


@pytest.mark.parametrize("kind", ["paired", "offset"])
def test_largest_error_is_within_hoeffdings_bound(features, kind: str) -> None:
    X, D = rows(60, 4), 4096
    Z = features(Skewed(frequencies="iid", weights="uniform", skewedness=C, n_components=D, features=kind), X)
    # means of m terms in [−c, c], as for Fourier features: 2·pairs·exp(−mε²/2c²) = 1e-6
    m, c = (D / 2, 1.0) if kind == "paired" else (D, 2.0)
    assert np.abs(Z @ Z.T - exact(X)).max() <= c * np.sqrt(2 * np.log(2 * 1830 / 1e-6) / m)


def test_features_are_their_definition(features) -> None:
    X = rows(20, 5)
    step = Skewed(frequencies="iid", weights="uniform", skewedness=C, n_components=16)
    W = step.fit(Sample(X, None, 20), np.random.default_rng(3))["frequencies"]
    angles = np.log(X + C) @ W.T
    want = np.sqrt(1 / 8) * np.hstack([np.cos(angles), np.sin(angles)])
    # angles of at most 30, and a logarithm's own eps
    np.testing.assert_allclose(features(step, X, 3), want, rtol=0, atol=30 * 6 * np.finfo(float).eps)


def test_frequencies_have_the_density_sech() -> None:
    X = rows(4, 50)
    step = Skewed(frequencies="iid", weights="uniform", n_components=4000)
    W = step.fit(Sample(X, None, 4), np.random.default_rng(0))["frequencies"].ravel()
    for t in (0.1, 0.5, 1.0, 2.0, 4.0, 8.0):
        # ∫ sech(πω) cos(tω) dω = sech(t/2); a mean of N terms in [−1, 1] is off by ε with 2 exp(−Nε²/2) (Hoeffding)
        bound = np.sqrt(2 * np.log(2 * 6 / 1e-6) / len(W))
        assert abs(np.cos(t * W).mean() - 1 / np.cosh(t / 2)) <= bound
    # and it is symmetric
    assert abs(np.sin(W).mean()) <= np.sqrt(2 * np.log(2 / 1e-6) / len(W))


@pytest.mark.parametrize("value", [-C, -1.0, -C * (1 + 1e-6)])
def test_values_at_or_below_minus_c_are_refused_by_place(value: float) -> None:
    X = rows(400, 3)
    step = {"kind": "skewed", "skewedness": C, "n_components": 8}
    fm = kafeat.fit({"dtype": "float64", "steps": [step]}, X)
    X[300, 1] = value
    X[301, 0] = -5.0
    message = rf"row 301 \(index 300\), column 'c1': expected a value above -skewedness = -0.3, got {value:g}"
    with pytest.raises(DataError, match=message):
        fm.transform(X)


def test_values_just_above_minus_c_are_taken() -> None:
    X = rows(4, 3)
    fm = kafeat.fit(
        {"dtype": "float64", "steps": [{"kind": "skewed", "skewedness": C, "n_components": 8}]}, X
    )
    X[0, 0] = np.nextafter(-C, 0)
    assert np.isfinite(fm.transform(X)).all()


@pytest.mark.parametrize("kernel", ["chi2", "intersection"])
def test_exact_kernel_is_its_formula(kernel: str) -> None:
    X = rows(6, 3)
    u, v = X[:, None] + C, X[None] + C
    ratio = 2 * np.sqrt(u * v) / (u + v) if kernel == "chi2" else np.sqrt(np.minimum(u / v, v / u))
    got = Skewed(kernel=kernel, skewedness=C).exact({}, Coordinates(X, X)).dots
    # three factors, by sums of logarithms of at most 3
    np.testing.assert_allclose(got, ratio.prod(axis=-1), rtol=100 * np.finfo(float).eps)
