"""Logistic regression as the last step: scikit-learn's on the same features is the oracle."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import kafeat
from kafeat.contract.predictor import Targets, TrainingRows
from kafeat.errors import ConfigError, DataError, KafeatWarning
from kafeat.predictors import logistic

FOURIER = {"kind": "fourier", "n_components": 32, "frequencies": "orthogonal", "weights": "uniform"}
MAP = [{"kind": "standardize"}, FOURIER]


def fitted(X, y, **parameters):
    jobs, dtype = parameters.pop("jobs", None), parameters.pop("dtype", "float64")
    steps = [*MAP, {"kind": "logistic", **parameters}]
    return kafeat.fit({"dtype": dtype, "chunk_rows": 300, "steps": steps}, X, y, jobs=jobs)


@pytest.fixture(scope="module")
def X():  # noqa: N802  # as in formulas
    return np.random.default_rng(0).standard_normal((900, 4))


@pytest.fixture(scope="module")
def y(X):
    return np.array(["a", "b", "c"])[np.digitize(X[:, 0] * X[:, 1] + 0.3 * X[:, 2], [-0.3, 0.4])]


# The loss is strongly convex: with gradients of at most 1e-9 and 1e-10 a row and a curvature of at least λ/n, weights
# are within n · 1e-9/λ of the minimum, and probabilities of these features within as much.
@pytest.mark.parametrize(("penalty", "weights"), [(0.01, "none"), (1.0, "none"), (0.1, "balanced")])
def test_probabilities_are_those_of_scikit_learn(X, y, penalty, weights):
    fm = fitted(X, y, penalty=penalty, class_weight=weights)
    Z, strength = fm.transform(X), float(fm.predictor.fitted.state["lambda"])
    balanced = "balanced" if weights == "balanced" else None
    theirs = LogisticRegression(C=1.0 / strength, tol=1e-10, max_iter=10_000, class_weight=balanced).fit(Z, y)
    near = len(X) * 2e-9 / strength
    np.testing.assert_allclose(fm.predict_proba(X), theirs.predict_proba(Z), rtol=0, atol=max(near, 1e-5))
    assert fm.classes.tolist() == theirs.classes_.tolist()


def test_two_classes_and_a_class_that_a_fold_lacks(X):
    two = fitted(X, X[:, 0] > 0.0)
    assert two.classes.tolist() == [False, True]
    assert (two.predict(X) == (X[:, 0] > 0.0)).mean() > 0.95
    rare = np.where(np.arange(len(X)) == 7, "c", np.where(X[:, 0] > 0, "b", "a"))
    assert fitted(X, rare).predict_proba(X).shape == (900, 3)


def test_auto_chooses_by_held_out_loss(X, y):
    fm = fitted(X, y)
    (search,) = fm.provenance.searches
    assert search.values == [pytest.approx(10.0**power) for power in range(-6, 0)]
    assert search.chosen == search.values[int(np.argmax(search.scores))]
    noise = np.random.default_rng(1).integers(0, 3, len(X))
    # Nothing can be learned from noise: the strongest penalty is best, and no loss is saved.
    (search,) = fitted(X, noise).provenance.searches
    assert search.chosen == pytest.approx(0.1)
    assert max(search.scores) < 0.02


def test_bytes_do_not_depend_on_jobs(X, y):
    assert fitted(X, y, penalty=0.1, jobs=1).dumps() == fitted(X, y, penalty=0.1, jobs=3).dumps()


def test_of_more_rows_than_memory_holds_a_random_sample_is_taken(X, y, monkeypatch):
    monkeypatch.setattr(logistic, "_MOST_NUMBERS", 32 * 500)
    with pytest.warns(KafeatWarning, match="fitted on a random sample of 500 of 900 rows"):
        fm = fitted(X, y, penalty=0.1)
    assert fm.provenance.rows_learned == 500
    assert (fm.predict(X) == y).mean() > 0.6


def test_constant_features_predict_the_frequencies(y):
    steps = [{"kind": "standardize"}, {"kind": "logistic", "penalty": 0.1}]
    p = kafeat.fit({"dtype": "float64", "steps": steps}, np.ones((900, 2)), y).predict_proba(np.ones((1, 2)))
    np.testing.assert_allclose(p[0], [(y == one).mean() for one in "abc"], rtol=0, atol=1e-6)


def test_numbers_are_refused(X):
    told = "logistic: expected a label of classes, got numbers: ridge predicts numbers"
    with pytest.raises(DataError, match=told):
        fitted(X, X[:, 0])
    with pytest.raises(ConfigError, match="expected one of 'auto', 'classification', 'soft', got"):
        fitted(X, X[:, 0], task="regression")


def test_a_fold_of_little_weight_hardly_counts_in_the_search():
    rng = np.random.default_rng(0)
    Z, folds = rng.standard_normal((300, 2)), np.arange(300) % 3
    classes = (Z[:, 0] > 0.0).astype(int)
    classes[folds == 0] = 1 - classes[folds == 0]
    rows = TrainingRows(Z, np.eye(2)[classes], folds, np.where(folds == 0, 1e-6, 1.0))
    learning = logistic.Logistic().begin(2, Targets(2, True, np.zeros(2), np.ones(2)), 1)
    # A line separates the rows of two folds. The third, of opposite labels, has less than a millionth of the weight.
    assert max(learning.learned(rows).scores) > 0.9
