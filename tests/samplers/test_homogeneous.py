"""The homogeneous map against its error in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_approximation import AdditiveChi2Sampler

import kafeat
from kafeat.errors import ConfigError, DataError
from kafeat.samplers.homogeneous import Homogeneous
from kafeat.step import Sample

PERIOD = {
    "uniform": lambda n: 5.86 * np.sqrt(n) + 3.65,
    "rectangular": lambda n: 8.80 * np.sqrt(n + 4.44) - 12.6,
}
EPS = np.finfo(float).eps


def sech(x: np.ndarray) -> np.ndarray:
    return 1 / np.cosh(x)


def closed_form(window: str, n: int, period: float, w: np.ndarray) -> np.ndarray:
    """ε(ω) + 𝒦(ω) of MATHS: the kernel that the map has, by coefficients computed another way."""
    L = 2 * np.pi / period
    if window == "uniform":
        j = np.arange(n + 1)
        kappa = L * sech(np.pi * j * L)
    else:
        # midpoint rule over one period, on 2^18 points: error (π/2^18)²/6·Λ²·max|f''| < 1e-7
        grid = (np.arange(2**18) + 0.5) / 2**18 * period / 2
        every = np.array([(sech(grid / 2) * np.cos(k * L * grid)).mean() for k in range(4 * n + 9)])
        j = np.flatnonzero(every > 0)[: n + 1]
        kappa = every[j]
    weights = np.where(j > 0, 2.0, 1.0) * kappa
    return np.cos(np.multiply.outer(w, j * L)) @ weights


def signature(features, w: np.ndarray, **parameters: object) -> np.ndarray:
    """z(1)·z(e^w), which is the map's own signature."""
    Z = features(Homogeneous(**parameters), np.exp(np.concatenate([[0.0], w]))[:, None])
    return Z[1:] @ Z[0] / np.exp(w) ** (parameters.get("homogeneity", 1.0) / 2)


@pytest.mark.parametrize("homogeneity", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("window", ["uniform", "rectangular"])
def test_error_is_the_closed_form(features, window: str, n: int, homogeneity: float) -> None:
    w = np.linspace(-6, 6, 101)
    period = max(1.0, PERIOD[window](n))
    got = signature(features, w, window=window, order=n, homogeneity=homogeneity)
    np.testing.assert_allclose(got, closed_form(window, n, period, w), rtol=0, atol=2e-7)


def test_period_can_be_given(features) -> None:
    w = np.linspace(-6, 6, 101)
    got = signature(features, w, window="uniform", order=2, period=11.0)
    np.testing.assert_allclose(got, closed_form("uniform", 2, 11.0, w), rtol=0, atol=100 * EPS)


def test_by_hand(features) -> None:
    x = np.array([[0.25], [1.0], [3.0]])
    Z = features(Homogeneous(order=1, window="uniform", period=2 * np.pi / 0.6), x)
    angle = 0.6 * np.log(x)
    want = np.sqrt(x) * np.hstack([np.full_like(x, 0.7746), 0.5968 * np.cos(angle), 0.5968 * np.sin(angle)])
    np.testing.assert_allclose(Z, want, rtol=0, atol=0.5e-4 * np.sqrt(3))  # printed to 4 digits


@pytest.mark.parametrize(("n", "error"), [(1, 0.102), (2, 0.032), (3, 0.013)])
def test_largest_error_over_ratios_up_to_ten(features, n: int, error: float) -> None:
    w = np.linspace(-np.log(10), np.log(10), 2001)
    got = signature(features, w, window="uniform", order=n)
    assert np.abs(got - sech(w / 2)).max() == pytest.approx(error, abs=0.5e-3)  # printed to 3 digits


def test_error_bounds_every_entry_of_a_gram_matrix(features) -> None:
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(40, 6)) + 0.05
    w = np.linspace(-9, 9, 20001)
    for n in (1, 3):
        # |k̂ − k| ≤ Σ_i √(x_i y_i) max|ε|; the grid's own error is below 1e-6
        worst = np.abs(closed_form("rectangular", n, PERIOD["rectangular"](n), w) - sech(w / 2)).max() + 1e-6
        Z = features(Homogeneous(order=n), X)
        x, y = X[:, None, :], X[None, :, :]
        assert (np.abs(Z @ Z.T - (2 * x * y / (x + y)).sum(-1)) <= worst * np.sqrt(x * y).sum(-1)).all()


def test_zero_maps_to_zero(features) -> None:
    for homogeneity in (0.5, 1.0, 2.0):
        for negative in ("error", "signed"):
            step = Homogeneous(order=2, homogeneity=homogeneity, negative=negative)
            assert not features(step, np.array([[0.0, -0.0]])).any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_cut_off_at_huge_and_tiny_values(features, dtype: str) -> None:
    info = np.finfo(dtype)
    x = np.array(
        [info.smallest_subnormal, info.tiny, 2.0**-19, 1, 255, 256, 65536, 1e12, info.max], dtype=dtype
    )
    Z = features(Homogeneous(order=2), x[:, None]).astype(float)
    at_one = Z[3] @ Z[3]
    # k̂(x, x) = x k̂(1, 1), whatever the angle: a root, a cosine and two products, each squared and summed.
    # A root of a subnormal number is a normal one.
    root = np.sqrt(x.astype(float))[:, None]
    np.testing.assert_allclose(((Z / root) ** 2).sum(1), at_one, rtol=16 * info.eps)


def test_scaling_both_scales_the_kernel(features) -> None:
    X = np.random.default_rng(0).exponential(size=(10, 4)) + 0.1
    for homogeneity in (0.5, 2.0):
        step = Homogeneous(order=2, homogeneity=homogeneity)
        one, scaled = (features(step, X * s) for s in (1.0, 7.0))
        # angles jL log x of at most 10, so 10 × a few eps relative to Σ(xy)^{γ/2}
        np.testing.assert_allclose(scaled @ scaled.T, 7.0**homogeneity * (one @ one.T), rtol=100 * EPS)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int64, np.uint64])
def test_integers_are_promoted(dtype: type) -> None:
    X = np.random.default_rng(0).integers(0, 120, size=(50, 4)).astype(dtype)
    fm = kafeat.fit({"steps": [{"kind": "homogeneous", "order": 2}]}, X)
    Z = fm.transform(X)
    assert Z.dtype == np.float32
    assert Z.tobytes() == fm.transform(X.astype(float)).tobytes()
    assert Z.min() < 0.0
    assert (np.rint(Z) != Z).any()


def test_negative_values_are_refused_by_place() -> None:
    X = np.ones((300, 3))
    fm = kafeat.fit({"steps": [{"kind": "homogeneous"}]}, X)
    X[290, 2] = -0.5
    message = r"row 291 \(index 290\), column 'c2': expected a value of at least 0, got -0.5"
    with pytest.raises(DataError, match=message):
        fm.transform(X)


def test_signed_mode_is_odd(features) -> None:
    X = np.random.default_rng(0).exponential(size=(10, 4))
    Z = features(Homogeneous(order=2, negative="signed"), X)
    assert features(Homogeneous(order=2, negative="signed"), -X).tobytes() == (-Z).tobytes()
    assert features(Homogeneous(order=2), X).tobytes() == Z.tobytes()
    fm = kafeat.fit(
        {"dtype": "float64", "steps": [{"kind": "homogeneous", "order": 8, "negative": "signed"}]}, X
    )
    signed = X * np.where(np.arange(10) % 2, 1.0, -1.0)[:, None]
    flip = np.outer(np.sign(signed[:, 0]), np.sign(signed[:, 0]))
    np.testing.assert_allclose(fm.exact_kernel(signed), flip * fm.exact_kernel(X), rtol=100 * EPS)


def test_uniform_window_is_scikit_learns_at_the_same_step(features) -> None:
    X = np.random.default_rng(0).exponential(size=(10, 4))
    ours = features(Homogeneous(order=2, window="uniform", period=2 * np.pi / 0.5), X)
    peer = AdditiveChi2Sampler(sample_steps=3, sample_interval=0.5).fit_transform(X)
    np.testing.assert_allclose(ours, peer, rtol=0, atol=100 * EPS * np.abs(peer).max())


@pytest.mark.parametrize("n", [1, 2, 4, 9, 20, 60])
@pytest.mark.parametrize("window", ["uniform", "rectangular"])
def test_coefficients_are_sound_at_every_order(window: str, n: int) -> None:
    state = Homogeneous(order=n, window=window).fit(
        Sample(np.ones((1, 1)), None, 1), np.random.default_rng(0)
    )
    frequencies, coefficients = state["frequencies"], state["coefficients"]
    assert len(frequencies) == n
    assert (np.diff(frequencies, prepend=0.0) > 0).all()
    assert (coefficients >= 0).all()
    # k̂(1, 1) → 𝒦(0) = 1 with the order
    total = coefficients[0] + 2 * coefficients[1:].sum()
    assert abs(total - 1) < (0.2 if n < 4 else 1e-2)


@pytest.mark.parametrize(
    ("name", "value"),
    [("order", -1), ("order", 1.0), ("homogeneity", 0), ("period", 0.5), ("window", "hann")],
)
def test_bounds(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"steps\[0\]\.{name}: expected "):
        kafeat.fit({"steps": [{"kind": "homogeneous", name: value}]}, np.ones((2, 1)))
