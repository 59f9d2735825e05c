"""Random Fourier features against the theorems about them."""

import numpy as np
import pytest
from scipy.stats import kstest
from sklearn.gaussian_process.kernels import Matern, RationalQuadratic
from sklearn.metrics.pairwise import rbf_kernel

from kafeat.contract.kernel_inputs import Coordinates, Gram
from kafeat.contract.step import Sample
from kafeat.samplers.fourier import Fourier
from tests.recipes import normal_rows as rows

GAMMA = 0.1
FEATURES = ("paired", "offset")


def estimates(run, X: np.ndarray, seeds: int, **parameters: object) -> np.ndarray:
    """Kernel estimates (seeds, n, n), a fit for each seed."""
    step = Fourier(gamma=GAMMA, **{"weights": "uniform", "frequencies": "orthogonal", **parameters})
    Z = np.stack([run(step, X, seed) for seed in range(seeds)])
    return Z @ Z.transpose(0, 2, 1)


def test_features_are_their_definition(features) -> None:
    X = rows(20, 5)
    for kind in FEATURES:
        drawn = {"frequencies": "orthogonal", "weights": "uniform"}
        step = Fourier(gamma=GAMMA, n_components=16, features=kind, **drawn)
        state = step.fit(Sample(X, None, 20), np.random.default_rng(3))
        W = state["frequencies"]
        if kind == "paired":
            want = np.sqrt(1 / 8) * np.hstack([np.cos(X @ W.T), np.sin(X @ W.T)])
        else:
            want = np.sqrt(2 / 16) * np.cos(X @ W.T + state["phases"])
        # angles of at most 10, whose rounding the cosine hands on: 10 × 6 terms × eps
        np.testing.assert_allclose(features(step, X, 3), want, rtol=0, atol=60 * np.finfo(float).eps)


def test_variance_is_that_of_the_theory(features) -> None:
    X, seeds, m = rows(2, 8) * 0.8, 1500, 32
    K = estimates(features, X, seeds, frequencies="iid", features="paired", n_components=2 * m)[:, 0, 1]
    k = rbf_kernel(X, gamma=GAMMA)[0, 1]
    # Var cos(ω·δ) = (1 − k²)²/2 for a Gaussian ω (Yu et al. 2016, lemma 1), over m. A variance over S nearly normal
    # draws has the relative standard error √(2/S): 5 of them are 0.18. A scale off by √2 gives 2 or more.
    assert K.var(ddof=1) == pytest.approx((1 - k**2) ** 2 / (2 * m), rel=5 * np.sqrt(2 / seeds))


def test_orthogonal_frequencies_have_a_lower_variance(features) -> None:
    d, seeds = 16, 400
    X = np.vstack([np.zeros(d), np.eye(d)[0] * 0.8 / np.sqrt(2 * GAMMA)])
    iid, orthogonal = (
        estimates(features, X, seeds, frequencies=f, n_components=2 * d)[:, 0, 1].var(ddof=1)
        for f in ("iid", "orthogonal")
    )
    # Yu et al. 2016, theorem 1: at z = √(2γ)‖δ‖ = 0.8 the ratio is about
    # 1 − (m − 1)/d · z⁴e^{−z²}/(1 − e^{−z²})² = 0.09. A ratio of two variances over S draws has the relative
    # standard error √(4/S) = 0.1, so 0.25 is far from it on one side, and 1 on the other.
    assert orthogonal < 0.25 * iid


@pytest.mark.parametrize(
    ("step", "peer"),
    [  # γ = 1/ℓ² for matern, 1/2ℓ² for rational_quadratic
        ({"kernel": "matern", "nu": 0.5}, Matern(1.0 / np.sqrt(GAMMA), nu=0.5)),
        ({"kernel": "matern", "nu": 4.0}, Matern(1.0 / np.sqrt(GAMMA), nu=4.0)),
        (
            {"kernel": "rational_quadratic", "alpha": 0.3},
            RationalQuadratic(1.0 / np.sqrt(2.0 * GAMMA), alpha=0.3),
        ),
    ],
)
def test_parameters_of_a_kernel_reach_its_frequencies(features, step: dict[str, object], peer) -> None:
    X, m = rows(8, 3) * 2.0, 20_000
    recipe = Fourier(gamma=GAMMA, n_components=2 * m, frequencies="iid", weights="uniform", **step)
    state = {"gamma": np.array(GAMMA)}
    np.testing.assert_allclose(recipe.exact(state, Coordinates(X, X)).dots, peer(X), rtol=0, atol=1e-12)
    Z = features(recipe, X)
    # Hoeffding over 36 entries, each a mean of m terms in [−1, 1]: 2·36·exp(−mε²/2) = 1e-6 at ε = 0.043. Another ν
    # or α, 1 or 1.5, is off by 0.06 to 0.2.
    assert np.abs(Z @ Z.T - peer(X)).max() <= np.sqrt(2 * np.log(2 * 36 / 1e-6) / m)


@pytest.mark.parametrize("scales", [4.0, (0.5, 1.0, 2.0, 8.0)])
@pytest.mark.parametrize("gamma", [GAMMA, "median"])
def test_length_scales_divide_the_inputs(features, scales: object, gamma: object) -> None:
    X = rows(150, 4)
    scaled = X / np.asarray(scales)
    with_scales, without = (Fourier(gamma=gamma, n_components=16, length_scale=ell) for ell in (scales, 1.0))
    # powers of two, so that nothing is rounded
    np.testing.assert_array_equal(features(with_scales, X, 3), features(without, scaled, 3))
    state = {"gamma": np.array(GAMMA)}
    exact = rbf_kernel(scaled, gamma=GAMMA)
    pair = Coordinates(X, X)
    np.testing.assert_allclose(with_scales.exact(state, pair).dots, exact, rtol=0, atol=1e-14)
    if isinstance(scales, float):  # behind a sampler there are dot products only
        behind = with_scales.exact(state, Gram(pair.dots, pair.squared_norms)).dots
        # distances from dot products lose some eps of ‖x‖² ≤ 30
        np.testing.assert_allclose(behind, exact, rtol=0, atol=30 * 8 * np.finfo(float).eps)


def test_phases_are_uniform_on_the_circle() -> None:
    # The kernel's mean alone would not tell half of the circle from all of it; its variance would.
    step = Fourier(gamma=GAMMA, n_components=4000, features="offset", frequencies="iid", weights="uniform")
    phases = step.fit(Sample(rows(4, 2), None, 4), np.random.default_rng(0))["phases"]
    assert kstest(phases / (2 * np.pi), "uniform").pvalue > 1e-6
