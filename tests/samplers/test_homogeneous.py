"""The homogeneous map against its error in closed form."""

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import AdditiveChi2Sampler

import kafeat
from kafeat.contract.kernel_inputs import Coordinates
from kafeat.contract.step import Sample
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels.histograms import ADDITIVE, spectral_kernel
from kafeat.samplers.homogeneous import Homogeneous
from tests.recipes import fit_step

PERIOD = {
    "uniform": lambda n: 5.86 * np.sqrt(n) + 3.65 if n else 2 * np.pi,
    "rectangular": lambda n: 8.80 * np.sqrt(n + 4.44) - 12.6,
}
EPS = np.finfo(float).eps


def sech(x: np.ndarray) -> np.ndarray:
    return 1 / np.cosh(x)


def closed_form(window: str, n: int, period: float, w: np.ndarray) -> np.ndarray:
    """ε(ω) + 𝒦(ω): the kernel that the map has, by coefficients computed another way."""
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


@pytest.mark.sampled
@pytest.mark.parametrize("homogeneity", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("window", ["uniform", "rectangular"])
def test_error_is_the_closed_form(features, window: str, n: int, homogeneity: float) -> None:
    w = np.linspace(-6, 6, 101)
    period = max(1.0, PERIOD[window](n))
    got = signature(features, w, window=window, order=n, homogeneity=homogeneity)
    np.testing.assert_allclose(got, closed_form(window, n, period, w), rtol=0, atol=2e-7)


def test_zero_maps_to_zero(features) -> None:
    for homogeneity in (0.5, 1.0, 2.0):
        for negative in ("error", "signed"):
            step = Homogeneous(order=2, homogeneity=homogeneity, negative=negative)
            assert not features(step, np.array([[0.0, -0.0]])).any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_cut_off_at_huge_and_tiny_values(features, dtype: str) -> None:
    info = np.finfo(dtype)
    ends = info.smallest_subnormal, info.tiny, info.max
    x = np.array([*ends[:2], 2.0**-19, 1, 255, 256, 65536, 1e12, ends[2]], dtype=dtype)
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


def test_signed_mode_is_odd(features) -> None:
    X = np.random.default_rng(0).exponential(size=(10, 4))
    Z = features(Homogeneous(order=2, negative="signed"), X)
    assert features(Homogeneous(order=2, negative="signed"), -X).tobytes() == (-Z).tobytes()
    assert features(Homogeneous(order=2), X).tobytes() == Z.tobytes()
    fm = fit_step(X, "homogeneous", order=8, negative="signed")
    signed = X * np.where(np.arange(10) % 2, 1.0, -1.0)[:, None]
    flip = np.outer(np.sign(signed[:, 0]), np.sign(signed[:, 0]))
    np.testing.assert_allclose(fm.exact_kernel(signed), flip * fm.exact_kernel(X), rtol=100 * EPS)


def test_uniform_window_is_scikit_learns_at_the_same_step(features) -> None:
    X = np.random.default_rng(0).exponential(size=(10, 4))
    ours = features(Homogeneous(order=2, window="uniform", period=2 * np.pi / 0.5), X)
    peer = AdditiveChi2Sampler(sample_steps=3, sample_interval=0.5).fit_transform(X)
    np.testing.assert_allclose(ours, peer, rtol=0, atol=100 * EPS * np.abs(peer).max())


SPECTRAL = ("chi2", "intersection", "jensen_shannon")


def entry(kernel: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The exact kernel of single numbers, (n, m)."""
    return ADDITIVE[kernel].gram(Coordinates(x[:, None], y[:, None]), KernelParameters()).dots


def error(step: Homogeneous, w: np.ndarray, X: np.ndarray | None = None) -> np.ndarray:
    """ε(ω) of the coefficients that the step has when fitted on X."""
    X = np.ones((1, 1)) if X is None else X
    state = step.fit(Sample(X, None, len(X)), np.random.default_rng(0))
    waves = np.cos(np.multiply.outer(w, state["frequencies"])) @ (2 * state["coefficients"][1:])
    return state["coefficients"][0] + waves - spectral_kernel(step.kernel).signature(w)


@pytest.mark.parametrize("kernel", SPECTRAL)
def test_signature_is_the_kernels(kernel: str) -> None:
    w = np.linspace(-10, 10, 81)
    want = entry(kernel, np.ones(1), np.exp(w))[0] / np.exp(w / 2)
    # 1 + x/y in the exact kernel is off by eps, which counts y/√(xy) ≤ e⁵ times
    found = spectral_kernel(kernel).signature(w)
    np.testing.assert_allclose(found, want, rtol=0, atol=16 * EPS * np.exp(5.0))


@pytest.mark.parametrize("kernel", SPECTRAL)
@pytest.mark.parametrize("w", [0.0, 0.3, 1.0, 4.0])
def test_spectrum_is_the_signatures(kernel: str, w: float) -> None:
    spectrum = spectral_kernel(kernel).spectrum

    def at(frequency: float) -> float:
        return float(spectrum(np.asarray(frequency)))

    # 𝒦(ω) = 2∫₀^∞ κ(λ) cos(ωλ) dλ; quad's own estimate of its error is below 1e-7 here
    value = 2 * (quad(at, 0, np.inf, weight="cos", wvar=w, limlst=200) if w else quad(at, 0, np.inf))[0]
    assert value == pytest.approx(float(spectral_kernel(kernel).signature(np.asarray(w))), abs=1e-6)


@pytest.mark.parametrize(
    ("kernel", "window", "periods"),
    [  # the formulas by hand, n = 1, 4
        ("chi2", "uniform", (9.51, 15.37)),
        ("chi2", "rectangular", (7.9250, 12.9655)),
        ("jensen_shannon", "uniform", (13.88, 20.52)),
        ("jensen_shannon", "rectangular", (10.6889, 18.6033)),
        ("intersection", "uniform", (6.9989, 9.3333)),
        ("intersection", "rectangular", (4.8963, 6.7349)),
    ],
)
def test_default_periods(kernel: str, window: str, periods: tuple[float, float]) -> None:
    for n, period in zip((1, 4), periods, strict=True):
        step, sample = Homogeneous(kernel=kernel, order=n, window=window), Sample(np.ones((1, 1)), None, 1)
        state = step.fit(sample, np.random.default_rng(0))
        assert 2 * np.pi / state["frequencies"][0] == pytest.approx(period, abs=0.5e-4)


@pytest.mark.parametrize("kernel", SPECTRAL)
def test_order_0_of_the_uniform_window_is_right_on_the_diagonal(kernel: str) -> None:
    assert abs(error(Homogeneous(kernel=kernel, order=0, window="uniform"), np.zeros(1))[0]) < 4 * EPS


SLOW = pytest.mark.slow
FALLING = [*((window, kernel) for window in ("rectangular", "uniform", "minimax") for kernel in SPECTRAL)]
FALLING += [("fitted", "chi2"), *(pytest.param("fitted", kernel, marks=SLOW) for kernel in SPECTRAL[1:])]


@pytest.mark.sampled
@pytest.mark.one_core
@pytest.mark.parametrize(("window", "kernel"), FALLING)
def test_error_falls_with_the_order(kernel: str, window: str) -> None:
    """Relative to max(x, y), over all ratios; VLFeat's rectangular errors are not even monotone."""
    w = np.linspace(0, np.log(1e4), 3001)
    X = np.random.default_rng(0).exponential(size=(200, 5))
    errors = [
        np.abs(np.exp(-w / 2) * error(Homogeneous(kernel=kernel, order=n, window=window), w, X)).max()
        for n in (0, 1, 2, 4, 8)
    ]
    assert errors[-1] < errors[0] / 3
    if window == "minimax":
        # what it minimises counts ratios above 20 by a fifth, so it may be five times less than this maximum
        assert (np.diff(errors) < 0).all()


@pytest.mark.sampled
@pytest.mark.one_core
@pytest.mark.parametrize("kernel", SPECTRAL)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_minimax_is_least_among_the_windows(kernel: str, n: int) -> None:
    w = np.linspace(0, np.log(1e4), 3001)
    weights = np.exp(-w / 2) * np.where(w <= np.log(20), 1.0, 1.0 if kernel == "intersection" else 0.2)

    def largest(**parameters: object) -> float:
        return np.abs(weights * error(Homogeneous(kernel=kernel, order=n, **parameters), w)).max()

    best = largest()
    for window in ("uniform", "rectangular"):
        assert best < largest(window=window)
    step = Homogeneous(kernel=kernel, order=n)
    state = step.fit(Sample(np.ones((1, 1)), None, 1), np.random.default_rng(0))
    period = 2 * np.pi / state["frequencies"][0]
    # 1 % for the grid of ratios, which is finer here, and the end of the search for the period
    for other in (0.9, 1.1):
        assert best < 1.01 * largest(period=period * other)


@pytest.mark.sampled
@pytest.mark.one_core
@pytest.mark.parametrize("kernel", SPECTRAL)
@pytest.mark.parametrize("n", [1, 2])
def test_fitted_to_the_mean_is_best_on_pairs_of_entries(kernel: str, n: int) -> None:
    X = load_digits().data[:200]

    def loss(window: str) -> float:
        step = Homogeneous(kernel=kernel, order=n, window=window, criterion="mean")
        state = step.fit(Sample(X, None, len(X)), np.random.default_rng(0))
        total = 0.0
        for column in X.T:
            x = column[column > 0]
            w = np.subtract.outer(np.log(x), np.log(x))
            eps = np.cos(np.multiply.outer(w, state["frequencies"])) @ (2 * state["coefficients"][1:])
            eps += state["coefficients"][0] - spectral_kernel(kernel).signature(w)
            total += (np.multiply.outer(x, x) * eps**2).sum()
        return total

    assert loss("fitted") < min(loss("minimax"), loss("rectangular"), loss("uniform"))


@pytest.mark.parametrize(("n", "share"), [(1, 0.03), (2, 0.03)])
def test_against_scikit_learn_on_a_square(n: int, share: float) -> None:
    x = np.linspace(0.05, 0.95, 200)
    peer = AdditiveChi2Sampler(sample_steps=n + 1).fit_transform(x[:, None])
    theirs = np.abs(peer @ peer.T - entry("chi2", x, x)).max()
    w = np.linspace(0, np.log(19), 2001)

    def ours(step: Homogeneous) -> float:  # max over x, y of √(xy)|ε|: at the largest of both
        return 0.95 * np.abs(np.exp(-w / 2) * error(step, w, x[:, None])).max()

    assert ours(Homogeneous(order=n)) < 0.07 * theirs
    assert ours(Homogeneous(order=n, window="fitted")) < share * theirs


@pytest.mark.one_core
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_auto_is_the_largest_error_unless_that_is_dear(n: int) -> None:
    """Dear: the kernel among rows of the sample errs more than 1.6 times as much as after `mean`."""
    rng = np.random.default_rng(0)
    words = rng.poisson(rng.gamma(0.1, 20.0, size=300), size=(400, 300)).astype(float)
    digits = load_digits().data[:500]
    samples = {
        "max": rng.uniform(0.05, 0.95, size=(250, 1)),
        "mean": words / words.sum(axis=1, keepdims=True),
        "mean ": digits / digits.sum(axis=1, keepdims=True),
    }
    for expected, X in samples.items():
        # all rows of the first sample, as the fit looks at 256; the others are far from the bound on any rows
        rows = X[:250]
        found, errors = {}, {}
        for c in ("auto", "mean", "max"):
            step = Homogeneous(order=n, window="fitted", criterion=c)
            fm = kafeat.fit({"dtype": "float64", "steps": [step.recipe()]}, X)
            found[c] = fm.chain.steps[0].state["coefficients"]
            Z = fm.transform(rows)
            errors[c] = np.linalg.norm(Z @ Z.T - fm.exact_kernel(rows))
        assert (errors["max"] > 1.6 * errors["mean"]) == (expected != "max")
        assert (found["mean"] != found["max"]).any()
        assert (found["auto"] == found[expected.strip()]).all()


def test_fitted_window_of_a_sample_that_shows_nothing_is_the_data_free_one() -> None:
    w = np.linspace(0, 9, 50)
    step = Homogeneous(order=2, window="fitted")
    assert (error(step, w, np.zeros((5, 2))) == error(Homogeneous(order=2), w)).all()
    # one value alone says nothing about ratios: what it leaves open stays sane
    assert np.abs(np.exp(-w / 2) * error(step, w, np.ones((5, 2)))).max() < 0.05


@pytest.mark.sampled
@pytest.mark.one_core
@pytest.mark.parametrize("kernel", SPECTRAL)
@pytest.mark.parametrize("n", [1, 2])
def test_ratios_that_the_sample_does_not_show_stay_sane(kernel: str, n: int) -> None:
    X = np.random.default_rng(0).uniform(1.0, 2.0, size=(300, 2))
    w = np.linspace(0, np.log(1e4), 3001)
    seen = w <= np.log(2.0)

    def largest(**parameters: object) -> tuple[float, float]:
        off = np.exp(-w / 2) * np.abs(error(Homogeneous(kernel=kernel, order=n, **parameters), w, X))
        return off[seen].max(), off[~seen].max()

    shown, beyond = largest(window="fitted", criterion="max")
    free_shown, free_beyond = largest()
    # It minimises max(error shown, error beyond/30), which the data-free window has, too; 1 % for the grid.
    assert max(shown, beyond / 30) < 1.01 * max(free_shown, free_beyond / 30)


def test_hellinger_is_one_feature_and_exact(features) -> None:
    X = np.random.default_rng(0).exponential(size=(10, 4))
    Z = features(Homogeneous(kernel="hellinger"), X)
    np.testing.assert_array_equal(Z, np.sqrt(X))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_error_curve_is_that_of_the_features(order: int) -> None:
    # one column, x and y: k̂(x, y)/√(xy) − k(x, y)/√(xy) at ω = log(y/x)
    X = np.random.default_rng(3).exponential(size=(200, 2)) + 0.01
    fm = fit_step(X, "homogeneous", kernel="chi2", order=order)
    fitted = fm.chain.steps[0]
    ratios, error, weights = fitted.step.error_curve(fitted.state, X)
    x = np.array([[0.7, 0.0]])
    y = np.stack([0.7 * np.exp(ratios), np.zeros_like(ratios)], axis=1)
    moved = (fm.transform(x) @ fm.transform(y).T - fm.exact_kernel(x, y))[0] / (0.7 * np.exp(ratios / 2))
    np.testing.assert_allclose(error, moved, rtol=0, atol=1e-12)
    assert weights.min() >= 0.0


def test_far_angles_keep_the_amplitudes_of_their_entries(features) -> None:
    """Angles ω log x above 10⁴ are computed by the C library in float32."""
    x = 10.0 ** np.random.default_rng(0).uniform(-37.0, -36.0, (16, 16))
    step = Homogeneous(order=30, window="uniform", period=1.0)
    near, exact = features(step, x.astype("float32")).astype(float), features(step, x)
    # the entry, its logarithm and the product are rounded: 3·2⁻²⁴ of an angle of at most 85·2π·30
    np.testing.assert_allclose(near, exact, rtol=0, atol=3 * 2.0**-24 * 85 * 60 * np.pi * np.abs(exact).max())
