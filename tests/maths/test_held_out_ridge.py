"""The ridge regression that steps compare choices with."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from kafeat.maths.held_out_ridge import HELD_OUT_PENALTIES, clearly_better, fit_held_out_ridge, hold_out


@pytest.mark.parametrize("width", [5, 120])
def test_equals_the_best_of_scikit_learn_on_held_out_rows(width):
    rng = np.random.default_rng(0)
    Z, w = rng.normal(1.0, 2.0, size=(100, width)), rng.normal(size=(width, 2))
    Y = Z @ w + rng.normal(0.0, 5.0, size=(100, 2))
    fitted = fit_held_out_ridge(Z[:80], Y[:80], Z[80:], Y[80:])
    centred = Z[:80] - Z[:80].mean(axis=0)
    unit = np.trace(centred.T @ centred) / min(80, width)
    errors = [
        ((Ridge(alpha=p * unit, solver="svd").fit(Z[:80], Y[:80]).predict(Z[80:]) - Y[80:]) ** 2).sum(axis=1)
        for p in HELD_OUT_PENALTIES
    ]
    best = min(errors, key=np.mean)
    np.testing.assert_allclose(fitted.errors, best, rtol=1e-6)
    np.testing.assert_allclose(
        ((Z[80:] @ fitted.w + fitted.intercept - Y[80:]) ** 2).sum(axis=1), fitted.errors, rtol=1e-6
    )


def test_held_out_rows_are_a_fifth_and_never_fitted_on():
    train, held = hold_out(1000, np.random.default_rng(0), 500)
    assert (len(train), len(held)) == (400, 100)
    assert not set(train) & set(held)


def test_a_difference_within_its_noise_is_no_gain():
    rng = np.random.default_rng(0)
    errors = rng.chisquare(1, size=500)
    assert clearly_better(errors, errors + 0.1)
    assert not clearly_better(errors, errors)
    assert not clearly_better(errors + 0.1, errors)
    assert not clearly_better(errors, errors + rng.normal(0.01, 5.0, size=500) - 0.5)
