"""Landmarks where a first predictor of the label is wrong."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import RidgeCV

import kafeat
from kafeat.errors import DataError, UsageError
from kafeat.model.load import loads

RNG = np.random.default_rng(0)
X = RNG.uniform(-3.0, 3.0, size=(3000, 2))
# Smooth but in one corner, where it changes fast.
CORNER = (X > 1.5).all(axis=1)
Y = np.where(CORNER, np.sin(6.0 * X[:, 0]), 0.1 * X[:, 0])


def fit(label, rows=X, **parameters):
    step = {"kind": "nystroem", "n_components": 60, "gamma": 3.0, **parameters}
    return kafeat.fit({"steps": [step], "dtype": "float64"}, rows, label)


def landmarks(fm):
    return fm.chain.steps[0].state["landmarks"]


def test_they_lie_where_the_label_is_hard_to_predict():
    share = (landmarks(fit(Y)) > 1.5).all(axis=1).mean()
    assert share > 4.0 * CORNER.mean()
    errors = {}
    for name in ("uniform", "residual"):
        fm = fit(Y[:2000], X[:2000], landmarks=name)
        model = RidgeCV(10.0 ** np.arange(-10.0, 1.0)).fit(fm.transform(X[:2000]), Y[:2000])
        errors[name] = ((model.predict(fm.transform(X[2000:])) - Y[2000:]) ** 2).mean()
    assert errors["residual"] < 0.7 * errors["uniform"], errors


def test_auto_is_residual_with_a_label_and_kmeans_without():
    with_label, without = fit(Y), fit(None)
    assert with_label.chain.steps[0].step.landmarks == "residual"
    assert with_label.chain.steps[0].step.traits.keeps_rows
    assert not without.chain.steps[0].step.traits.keeps_rows
    np.testing.assert_array_equal(landmarks(with_label), landmarks(fit(Y, landmarks="residual")))
    np.testing.assert_array_equal(landmarks(without), landmarks(fit(None, landmarks="kmeans")))
    assert with_label.config.steps[0].landmarks == "auto"
    assert loads(with_label.dumps()).chain.steps[0].step.landmarks == "residual"


def test_auto_inside_of_a_union():
    step = {"kind": "nystroem", "n_components": 30}
    fm = kafeat.fit({"steps": [{"kind": "union", "maps": [{"steps": [step]}]}]}, X, Y)
    assert fm.chain.steps[0].step.maps[0].steps[0].landmarks == "residual"
    assert fm.chain.steps[0].step.traits.keeps_rows
    assert loads(fm.dumps()).transform(X[:5]).tobytes() == fm.transform(X[:5]).tobytes()


ALIKE = [np.full(3000, one) for one in (0.0, 0.5, "a")]


@pytest.mark.parametrize("label", [*ALIKE, np.arange(3000).astype(str)])
def test_auto_does_without_labels_that_nothing_is_learned_from(label):
    assert fit(label).chain.steps[0].step.landmarks == "auto"


def test_refused():
    with pytest.raises(UsageError, match=r"landmarks: residual: expected a label to choose rows by"):
        fit(None, landmarks="residual")
    with pytest.raises(DataError, match="label: expected at least two classes"):
        fit(np.zeros(3000), landmarks="residual")
    with pytest.raises(DataError, match="label: expected at most 1,000 classes to learn from, got 3,000"):
        fit(pa.array(map(str, range(3000))), landmarks="residual")
