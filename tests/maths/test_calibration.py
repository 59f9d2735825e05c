"""Temperature and biases of classes: multinomial logistic regression with one shared slope is the oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from kafeat.maths.calibration import fit_calibration, held_out_probabilities, softmax_loss


def drawn(n=4000, seed=0):
    """Scores of three classes of 74, 20 and 6 % of the rows, as ridge on one-hot targets has them."""
    rng = np.random.default_rng(seed)
    classes = rng.choice(3, n, p=[0.74, 0.2, 0.06])
    return 0.2 * np.eye(3)[classes] + 0.1 * rng.normal(size=(n, 3)) + [0.6, 0.2, 0.0], classes


def loss_of(inverse, biases, scores, classes, weights=None):
    return softmax_loss(scores * inverse + biases, np.eye(3)[classes], weights)


def test_two_classes_are_those_of_logistic_regression_on_the_difference_of_their_scores():
    scores, classes = drawn()
    scores, classes = scores[classes < 2, :2], classes[classes < 2]
    scores = scores + 0.3 * np.random.default_rng(1).normal(size=scores.shape)
    found = fit_calibration(scores, np.eye(scores.shape[1])[classes])
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(
        scores[:, 1:] - scores[:, :1], classes
    )
    # The penalty of the biases moves them by about as much as one row of n does.
    assert 1.0 / found.temperature == pytest.approx(theirs.coef_[0, 0], rel=0.05)
    assert found.biases[1] - found.biases[0] == pytest.approx(theirs.intercept_[0], rel=0.05)
    np.testing.assert_allclose(found(scores), theirs.predict_proba(scores[:, 1:] - scores[:, :1]), atol=1e-2)


@pytest.mark.parametrize("weighted", [False, True])
def test_no_other_temperature_or_biases_have_a_lower_loss(weighted):
    scores, classes = drawn()
    weights = np.random.default_rng(1).random(len(classes)) if weighted else None
    found, n = fit_calibration(scores, np.eye(3)[classes], weights), len(classes)
    shares = np.bincount(classes, weights) / (n if weights is None else weights.sum())

    def loss(x):
        penalty = 0.5 * float(x[1:] @ x[1:]) / n
        of_class = [loss_of(np.exp(x[0]), x[1:], scores, np.full(n, c), weights) for c in range(3)]
        own = loss_of(np.exp(x[0]), x[1:], scores, classes, weights)
        return (n * own + shares @ of_class) / (n + 1) + penalty  # one row more has every class by its share

    ours = np.append(-np.log(found.temperature), found.biases)
    theirs = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-6})
    assert loss(ours) == pytest.approx(theirs.fun, abs=1e-8)
    np.testing.assert_allclose(ours, theirs.x, atol=1e-2)


@given(st.integers(0, 1000), st.floats(0.02, 0.3), st.integers(2, 6))
def test_the_mean_probability_of_a_class_is_its_share(seed, rare, n_classes):
    rng = np.random.default_rng(seed)
    classes = rng.choice(n_classes, 500, p=[1.0 - rare, *[rare / (n_classes - 1)] * (n_classes - 1)])
    scores = np.eye(n_classes)[classes] * 0.3 + rng.normal(size=(500, n_classes)) * 0.2
    found = fit_calibration(scores, np.eye(scores.shape[1])[classes])
    shares = np.bincount(classes, minlength=n_classes) / 500
    # At the optimum they differ by bias / n, the gradient of the penalty.
    np.testing.assert_allclose(found(scores).mean(axis=0), shares - found.biases / 500, atol=1e-4)


def test_scores_that_separate_the_rows_do_not_make_an_error_certain():
    scores = np.eye(3)[np.arange(300) % 3]
    p = fit_calibration(scores, scores)(scores)
    # As much of one row in 301 has the two other classes as is its share.
    np.testing.assert_allclose(p.max(axis=1), 1.0 - 2.0 / 3.0 / 301.0, atol=1e-6)


def test_a_class_without_rows_keeps_a_probability():
    scores, classes = drawn(400)
    p = fit_calibration(scores[classes < 2], np.eye(3)[classes[classes < 2]])(scores)
    assert (p > 0.0).all()
    assert p[:, 2].mean() < 0.02


@pytest.mark.parametrize("scores", [np.full((50, 3), 0.5), np.full((50, 3), np.nan), np.empty((0, 3))])
def test_scores_that_say_nothing_are_left_as_they_are(scores):
    found = fit_calibration(scores, np.zeros(scores.shape))
    assert found.temperature == 1.0
    assert not found.biases.any()


def test_no_row_is_calibrated_by_its_own_half():
    scores, classes = drawn(400)
    first = held_out_probabilities(scores, np.eye(3)[classes])
    other = classes.copy()
    other[::2] = (other[::2] + 1) % 3
    second = held_out_probabilities(scores, np.eye(3)[other])
    assert np.array_equal(first[::2], second[::2])
    assert not np.array_equal(first[1::2], second[1::2])


def test_scores_of_the_second_class_alone_are_those_of_two_classes():
    scores, classes = drawn(400)
    one = scores[:, 1:2] - scores[:, :1]
    both = held_out_probabilities(np.hstack([-one, one]), np.eye(2)[np.minimum(classes, 1)])
    assert np.array_equal(held_out_probabilities(one, np.eye(2)[np.minimum(classes, 1)]), both)
