"""Fitted weights and learned frequencies: optimal as claimed, never kept when worse, and lawful."""

import numpy as np
import pytest
from scipy.optimize import minimize

from kafeat.maths.fourier import learning as frequency_fit
from kafeat.maths.fourier.learning import exact_kernel, fit_frequencies, fit_weights, relative_error
from kafeat.maths.kernel import KernelParameters, ShiftInvariantKernel
from kafeat.maths.kernels import find_kernel, kernel_names
from kafeat.maths.kernels.shift_invariant import RbfKernel, SkewedChi2Kernel, SkewedIntersectionKernel

GAMMA, D = 0.1, 6
PARAMETERS = KernelParameters(gamma=GAMMA, nu=0.5, alpha=0.5)
LAW = RbfKernel().frequencies(PARAMETERS)


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    return X


def test_relative_error_is_its_definition():
    X, W = rows(40), LAW.iid(7, D, np.random.default_rng(1))
    a = np.random.default_rng(2).dirichlet(np.ones(7))
    delta = (X[:, None] - X[None]).reshape(-1, D)
    K, estimate = LAW.kernel(delta), np.cos(delta @ W.T) @ a
    assert relative_error(W, a, exact_kernel(LAW, X), X) == pytest.approx(
        np.linalg.norm(K - estimate) / np.linalg.norm(K), rel=1e-9
    )


def test_weights_solve_the_constrained_least_squares(monkeypatch):
    monkeypatch.setattr(frequency_fit, "_WEIGHT_PAIRS", 2000)
    X, W = rows(300), LAW.iid(6, D, np.random.default_rng(1))
    a = fit_weights(W, LAW, X, np.random.default_rng(3))
    pairs = frequency_fit._pairs(len(X), 2000, np.random.default_rng(3))
    delta = frequency_fit._differences(X, pairs).astype(float)
    C, k = np.cos(delta @ W.T), LAW.kernel(delta)

    def loss(b):
        return ((k - C @ b) ** 2).sum() + 1e-3 * 2000 * ((b - 1 / 6) ** 2).sum()

    theirs = minimize(loss, np.full(6, 1 / 6), bounds=[(0, None)] * 6, method="SLSQP", tol=1e-12,
                      constraints={"type": "eq", "fun": lambda b: b.sum() - 1})  # fmt: skip
    assert a.sum() == pytest.approx(1.0)
    assert (a >= 0).all()
    # The sum enters by a row of weight 100: a relaxation of 1 % of the constraint's multiplier, then rescaled.
    assert loss(a) <= theirs.fun * 1.01


def test_learning_and_weighing_lower_the_error_on_new_rows():
    X, new = rows(2000), rows(400, seed=9)
    for draw in (LAW.iid, LAW.orthogonal):
        W = draw(64, D, np.random.default_rng(1))
        before = relative_error(W, None, exact_kernel(LAW, new), new)
        weighed = fit_frequencies(W, LAW, X, np.random.default_rng(2), learn=False, weigh=True)
        learned = fit_frequencies(W, LAW, X, np.random.default_rng(2), learn=True, weigh=True)
        for fitted, most in ((weighed, 0.9), (learned, 0.3)):
            found = relative_error(fitted.frequencies, fitted.weights, exact_kernel(LAW, new), new)
            assert found < most * before
        assert learned.error_kept < learned.error_drawn


def test_the_guard_keeps_the_draw_when_fitting_makes_it_worse(monkeypatch):
    W = LAW.orthogonal(32, D, np.random.default_rng(1))
    monkeypatch.setattr(frequency_fit, "learn_frequencies", lambda drawn, *_: drawn * 3.0)
    monkeypatch.setattr(frequency_fit, "fit_weights", lambda W, *_: np.eye(len(W))[0])
    fitted = fit_frequencies(W, LAW, rows(500), np.random.default_rng(2), learn=True, weigh=True)
    np.testing.assert_array_equal(fitted.frequencies, W)
    assert fitted.weights is None
    assert fitted.error_kept == fitted.error_drawn


def test_few_rows_are_not_fitted_to():
    W = LAW.iid(8, D, np.random.default_rng(1))
    fitted = fit_frequencies(W, LAW, rows(99), np.random.default_rng(2), learn=True, weigh=True)
    assert fitted.frequencies is W
    assert fitted.weights is None


LAWS = {
    **{name: find_kernel(name).frequencies(PARAMETERS) for name in kernel_names(ShiftInvariantKernel)},
    "skewed_chi2": SkewedChi2Kernel().log_frequencies(),
    "skewed_intersection": SkewedIntersectionKernel().log_frequencies(),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.slow
def test_every_law_gains_more_than_luck(law):
    """Below the best of 50 draws: were nothing gained, that would happen once in 51 times."""
    X, new = rows(1500), rows(300, seed=9)
    rng = np.random.default_rng(1)
    draws = [law.iid(128, D, rng) for _ in range(50)]
    fitted = fit_frequencies(draws[0], law, X, np.random.default_rng(2), learn=True, weigh=True)
    best = min(relative_error(W, None, exact_kernel(law, new), new) for W in draws)
    assert relative_error(fitted.frequencies, fitted.weights, exact_kernel(law, new), new) < best


@pytest.fixture(scope="module")
def drawn_and_fitted():
    """128 frequencies as they are drawn, and as many fitted to 2,000 rows."""
    rng = np.random.default_rng(4)
    drawn = LAW.iid(128, D, rng)
    return drawn, fit_frequencies(LAW.orthogonal(128, D, rng), LAW, rows(2000), rng, learn=True, weigh=True)


@pytest.mark.parametrize("case", ["duplicates", "outliers", "constant columns", "other scale"])
def test_rows_unlike_the_sample_do_not_lose_badly(case, drawn_and_fitted):
    (drawn, fitted), new = drawn_and_fitted, rows(300, seed=9)
    if case == "duplicates":
        new = np.repeat(new[:30], 10, axis=0)
    elif case == "outliers":
        new[:10] *= 50.0
    elif case == "constant columns":
        new[:, 2:] = 0.5
    else:
        new = np.random.default_rng(4).uniform(-3, 3, new.shape)
    plain = relative_error(drawn, None, exact_kernel(LAW, new), new)
    assert relative_error(fitted.frequencies, fitted.weights, exact_kernel(LAW, new), new) < 1.25 * plain


def test_an_offset_does_not_spoil_what_is_learned(monkeypatch):
    """Only differences count. Those of Unix times in float32 are multiples of 128, and the draw was kept."""
    monkeypatch.setattr(frequency_fit, "_STEPS", 100)
    X, W = rows(600), LAW.orthogonal(16, D, np.random.default_rng(1))
    here, far = (
        fit_frequencies(W, LAW, data, np.random.default_rng(2), learn=True, weigh=True)
        for data in (X, X + 2.0**30)
    )
    # the rows themselves are rounded, to 2⁻²³
    assert far.error_kept == pytest.approx(here.error_kept, rel=1e-3)
    assert far.error_kept < 0.8 * far.error_drawn
