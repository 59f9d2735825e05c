"""Frequencies trained for a label: the gradients are right, gains are real, and noise gains nothing."""

import numpy as np
import pytest

from kafeat.maths.fourier import supervised
from kafeat.maths.fourier.learning import gradients, waves
from kafeat.maths.fourier.supervised import fit_for_label
from kafeat.maths.held_out_ridge import fit_held_out_ridge
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels.shift_invariant import RbfKernel

pytestmark = pytest.mark.usefixtures("one_limit")

D = 20
LAW = RbfKernel().frequencies(KernelParameters(gamma=1.0 / (2 * 2 * D)))


@pytest.fixture(autouse=True)
def _short_training(monkeypatch):
    monkeypatch.setattr(supervised, "_TRIAL_STEPS", 50)
    monkeypatch.setattr(supervised, "_STEPS", 150)
    monkeypatch.setattr(supervised, "_LEAST_STEPS", 20)


def draw(m=32, d=D):
    return LAW.orthogonal(m, d, np.random.default_rng(1))


def rows(n, seed=0):
    return np.random.default_rng(seed).standard_normal((n, D))


def one_direction(X):
    """A label that depends on one direction of twenty, and not in a straight line."""
    return np.sin(2.0 * X @ np.full(X.shape[1], 1.0 / np.sqrt(X.shape[1])))


def fit(X, y, seed=2, *, drawn=None, phases=None, weigh=True):
    drawn = draw(d=X.shape[1]) if drawn is None else drawn
    return fit_for_label(drawn, X, y, np.random.default_rng(seed), phases=phases, weigh=weigh)


def unexplained(W, X, y, new, new_y, phases=None, weights=None):
    """The share of the variance of new rows that a ridge on 1,000 rows leaves."""
    sizes = np.sqrt(np.ones(len(W)) if weights is None else weights * len(W))
    sizes = np.tile(sizes, 2 if phases is None else 1)
    Z, new_Z = (waves(rows, W, phases) * sizes for rows in (X, new))
    ridge = fit_held_out_ridge(Z, y[:, None], new_Z[:500], new_y[:500, None])
    missed = new_Z[500:] @ ridge.w[:, 0] + ridge.intercept[0] - new_y[500:]
    return float((missed**2).mean() / new_y[500:].var())


@pytest.mark.parametrize("paired", [True, False])
def test_gradients_are_those_of_differences(paired):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((7, 3)), rng.standard_normal((7, 2))
    W, V, b = (rng.standard_normal(shape) for shape in ((4, 3), (8 if paired else 4, 2), 2))
    phases = None if paired else rng.uniform(0, 2 * np.pi, 4)

    def loss():
        return 0.5 * ((waves(x, W, phases) @ V + b - y) ** 2).sum(axis=1).mean()

    h = 1e-5
    for array, gradient in zip((W, V, b), gradients(W, V, b, x, y, phases), strict=True):
        for place in np.ndindex(array.shape):
            before, ends = array[place], []
            for sign in (1, -1):
                array[place] = before + sign * h
                ends.append(loss())
            array[place] = before
            # central differences: an error of h²f'''/6, and of eps·f/h by rounding, both below 1e-8 here
            assert (ends[0] - ends[1]) / (2 * h) == pytest.approx(gradient[place], rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("offset", [False, True])
def test_one_direction_of_twenty_is_found(offset):
    X, new = rows(1000), rows(1500, seed=9)
    y, new_y = one_direction(X), one_direction(new)
    m = 64 if offset else 32
    phases = np.random.default_rng(5).uniform(0, 2 * np.pi, m) if offset else None
    W = draw(m)
    fitted = fit(X, y, drawn=W, phases=phases)
    before = unexplained(W, X, y, new, new_y, phases)
    after = unexplained(fitted.frequencies, X, y, new, new_y, fitted.phases, fitted.weights)
    assert after < 0.2 * before
    assert fitted.error_kept < 0.2 * fitted.error_drawn
    # the errors on the held-out rows are those of new rows, up to the noise of 200 rows
    assert fitted.error_drawn == pytest.approx(before, rel=0.4)


def test_a_label_that_the_draw_holds_needs_no_training():
    X, W = rows(400), draw()
    # The smallest penalty is 1e-9 of the mean eigenvalue, and rows in float32 move phases by 1e-7, squares by 1e-14.
    assert fit(X, np.cos(X @ W[0]), drawn=W).error_drawn < 1e-6


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_noise_gains_nothing(kind):
    """The guard asks for two standard errors, which luck gives in one of 40 cases."""
    kept = 0
    for seed in range(5):
        X, rng = rows(400, seed), np.random.default_rng(100 + seed)
        y = rng.standard_normal(400) if kind == "numbers" else rng.integers(3, size=400)
        fitted = fit(X, y, seed)
        if fitted.error_kept == fitted.error_drawn:
            np.testing.assert_array_equal(fitted.frequencies, draw())
            assert fitted.weights is None
        else:
            kept += 1
    assert kept <= 1


def test_the_guard_keeps_the_draw_when_training_makes_it_worse(monkeypatch):
    X = rows(600)
    monkeypatch.setattr(
        supervised, "_search", lambda data, plain, *_: data.fit(50 * plain.frequencies, plain.amplitudes)
    )
    fitted = fit(X, one_direction(X), drawn=draw())
    np.testing.assert_array_equal(fitted.frequencies, draw())
    assert fitted.error_kept == fitted.error_drawn


def test_held_out_rows_are_not_trained_on(monkeypatch):
    seen = []
    monkeypatch.setattr(supervised, "batches", lambda n, steps, rng: seen.append(n) or iter(()))
    X = rows(600)
    fit(X, one_direction(X))
    assert set(seen) == {480}


def test_few_rows_are_not_trained_on():
    X = rows(199)
    fitted = fit(X, np.zeros(199))  # and so their label may be anything
    np.testing.assert_array_equal(fitted.frequencies, draw())
    assert fitted.weights is fitted.error_drawn is None


def test_weights_are_those_of_the_model_or_equal():
    X = rows(600)
    weighed, equal = (fit(X, one_direction(X), weigh=weigh) for weigh in (True, False))
    assert weighed.weights.sum() == pytest.approx(1.0)
    assert (weighed.weights >= 0.0).all()
    assert weighed.weights.max() > 2 * weighed.weights.min()
    assert equal.weights is None


@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e20, 1e150])
def test_scale_and_offset_of_the_data_do_not_matter(scale):
    X = rows(600)
    y = one_direction(X)
    factor = 2.0 ** np.round(np.log2(scale))
    here, far = fit(X, y), fit(X * factor, y, drawn=draw() / factor)
    np.testing.assert_array_equal(far.frequencies, here.frequencies / factor)
    assert far.error_kept == here.error_kept


def test_an_offset_moves_the_phases():
    X = rows(600)
    y, phases = one_direction(X), np.random.default_rng(5).uniform(0, 2 * np.pi, 32)
    fitted = fit(X + 2.0**20, y, phases=phases)
    assert fitted.error_kept < 0.5 * fitted.error_drawn
    Z, held = (waves(part + 2.0**20, fitted.frequencies, fitted.phases) for part in (X[:400], X[400:]))
    # trained on most of these rows, so that the error is at most that of rows held out, but for chance
    ridge = fit_held_out_ridge(Z, y[:400, None], held, y[400:, None])
    assert ridge.error / y.var() < 1.5 * fitted.error_kept


@pytest.mark.parametrize("case", ["constant column", "outliers", "many classes", "text", "rare class"])
def test_odd_data(case):
    X = rows(600)
    y = (one_direction(X) > 0).astype(int)
    if case == "constant column":
        X[:, 3] = 1e9
    elif case == "outliers":
        X[:5] *= 1e200
    elif case == "many classes":
        y = np.array([f"c{int(v)}" for v in 300 * (X[:, 0] - X[:, 0].min()) / np.ptp(X[:, 0])])
    elif case == "text":
        y = np.where(y, "yes", "no").astype(object)
    elif case == "rare class":
        y[0] = 7
    fitted = fit(X, y)
    for array in (fitted.frequencies, fitted.weights):
        assert array is None or np.isfinite(array).all()
    assert fitted.error_kept <= fitted.error_drawn
    if case in ("text", "constant column", "rare class"):
        assert fitted.error_kept < 0.8 * fitted.error_drawn
