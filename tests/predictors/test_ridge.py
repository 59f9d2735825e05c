"""Ridge as the last step: scikit-learn's on the same features is the oracle."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss

import kafeat
from kafeat.errors import ArtifactError, ConfigError, DataError, UsageError
from kafeat.model import artifact, serialize
from kafeat.model.feature_map import FeatureMap

FOURIER = {"kind": "fourier", "n_components": 64, "frequencies": "orthogonal", "weights": "uniform"}
MAP = [{"kind": "standardize"}, FOURIER]


def fitted(X, y, **parameters):
    dtype = parameters.pop("dtype", "float64")
    steps = [*MAP, {"kind": "ridge", **parameters}]
    return kafeat.fit({"dtype": dtype, "chunk_rows": 300, "steps": steps}, X, y)


@pytest.fixture(scope="module")
def X():  # noqa: N802  # as in formulas
    return np.random.default_rng(0).standard_normal((1000, 5))


@pytest.fixture(scope="module")
def y(X):
    return 1e4 + 100.0 * np.sin(X[:, 0]) + 30.0 * X[:, 1] * X[:, 2]


def weights_of(fm):
    state = fm.predictor.fitted.state
    return state["weights"], state["intercept"], float(state["lambda"])


# Two solutions of the same normal equations differ by their condition times ε. The largest eigenvalue is at most the
# trace, D times the mean of the diagonal, and the smallest at least λ, the penalty times that mean.
@pytest.mark.parametrize("penalty", [1e-4, 0.01, 1.0])
def test_numbers_are_those_of_scikit_learn(X, y, penalty):
    fm = fitted(X, y, penalty=penalty)
    Z = fm.transform(X)
    w, b, alpha = weights_of(fm)
    assert alpha == pytest.approx(penalty * ((Z - Z.mean(axis=0)) ** 2).sum() / Z.shape[1], rel=1e-12)
    theirs = Ridge(alpha=alpha, solver="cholesky").fit(Z, y)
    condition = 1.0 + Z.shape[1] / penalty
    atol = 2.0 * np.finfo(float).eps * condition * np.abs(theirs.coef_).max()
    np.testing.assert_allclose(w[:, 0], theirs.coef_, rtol=0, atol=atol)
    np.testing.assert_allclose(fm.predict(X), theirs.predict(Z), rtol=1e-10)
    assert b.shape == (1,)


def test_classes_are_those_of_scikit_learn_on_one_hot_targets(digits, digits_table):
    y = np.asarray(digits_table["label"])
    fm = fitted(digits, y, penalty=0.01)
    Z, alpha = fm.transform(digits), weights_of(fm)[2]
    w, b, _ = weights_of(fm)
    theirs = Ridge(alpha=alpha, solver="cholesky").fit(Z, np.eye(10)[y])
    np.testing.assert_allclose(w, theirs.coef_.T, rtol=0, atol=1e-9)
    # The intercept has the biases of the calibration beside that of the fit.
    scores = theirs.predict(Z) + (b - theirs.intercept_)
    assert np.array_equal(fm.predict(digits), scores.argmax(axis=1))
    p = fm.predict_proba(digits)
    # exp, sum and quotient of ten numbers
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=20 * np.finfo(float).eps)
    T = float(fm.predictor.fitted.state["temperature"])
    expected = np.exp(scores / T) / np.exp(scores / T).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(p, expected, rtol=0, atol=1e-9)


def test_temperature_and_biases_make_held_out_probabilities_honest(digits, digits_table):
    order = np.random.default_rng(0).permutation(len(digits))  # later rows of the file are of other writers
    X, y = digits[order], np.asarray(digits_table["label"])[order]
    fm = fitted(X[:1200], y[:1200])
    T = float(fm.predictor.fitted.state["temperature"])
    p = fm.predict_proba(X[1200:])

    def loss(factor, biases=0.0):
        q = p ** (1.0 / factor) * np.exp(biases)
        return log_loss(y[1200:], q / q.sum(axis=1, keepdims=True))

    # Neither half nor twice the temperature that the folds chose is better on other rows, nor a plain softmax, nor
    # another bias.
    assert loss(1.0) < min(loss(0.5), loss(2.0), loss(1.0 / T))
    assert loss(1.0) < min(loss(1.0, sign * bias) for sign in (-2.0, 2.0) for bias in np.eye(10))


def test_auto_chooses_the_penalty_that_predicts_held_out_rows_best(X):
    noise = np.random.default_rng(1).standard_normal(len(X))
    smooth, rough = (fitted(X, np.sin(X[:, 0]) + s * noise) for s in (0.0, 3.0))
    assert smooth.predictor.fitted.step.penalty < 1e-3 < 0.1 < rough.predictor.fitted.step.penalty
    (search,) = rough.provenance.searches
    assert search.parameter == "steps[2].penalty"
    assert search.chosen == search.values[int(np.argmax(search.scores))]


def test_scores_are_r2_of_models_without_the_fold(X, y):
    from kafeat.contract.folds import FOLDS
    from kafeat.maths.row_sample import row_hashes

    fm = fitted(X, y, penalty={"validate": [0.01, 1.0]})
    Z, folds = fm.transform(X), row_hashes(0, 0, len(X)) % FOLDS
    missed = spread = 0.0
    for fold in range(FOLDS):
        rest, held = folds != fold, folds == fold
        alpha = 0.01 * ((Z[rest] - Z[rest].mean(axis=0)) ** 2).sum() / Z.shape[1]
        missed += ((Ridge(alpha=alpha).fit(Z[rest], y[rest]).predict(Z[held]) - y[held]) ** 2).sum()
        spread += ((y[held] - y[rest].mean()) ** 2).sum()
    assert fm.provenance.searches[0].scores[0] == pytest.approx(1.0 - missed / spread, rel=1e-9)


def test_several_labels_are_predicted_as_each_alone(X, y):
    Y = np.column_stack([y, -1e-3 * X[:, 3]])
    both = fitted(X, Y, penalty=0.01).predict(X)
    for j in range(2):
        np.testing.assert_allclose(both[:, j], fitted(X, Y[:, j], penalty=0.01).predict(X), rtol=1e-9)


LABELS = [
    (np.array(["no", "yes", "perhaps"]), "text"), (np.array([-1, 0, 7]), "integer"),
    (np.array([0.5, 1.0, 2.0]), "number"), (np.array([False, True]), "boolean"),
]  # fmt: skip


@pytest.mark.parametrize(("classes", "kind"), LABELS)
def test_a_prediction_has_the_type_of_the_label(X, classes, kind):
    y = classes[np.digitize(X[:, 0], [0.0, 1.0][: len(classes) - 1])]
    fm = fitted(X, y, task="classification")
    predicted = fm.predict(X)
    assert predicted.dtype.kind == ("O" if kind == "text" else classes.dtype.kind)
    assert fm.predictor.labels.type == kind
    assert fm.classes.tolist() == sorted(classes.tolist())
    assert (predicted == y).mean() > 0.8


def test_all_rows_are_learned_from_and_not_only_the_sample(X, y):
    config = {"fit_rows": 50, "dtype": "float64", "steps": [*MAP, {"kind": "ridge", "penalty": 0.01}]}
    fm = kafeat.fit(config, X, y)
    Z = fm.transform(X)
    theirs = Ridge(alpha=weights_of(fm)[2]).fit(Z, y)
    np.testing.assert_allclose(fm.predict(X), theirs.predict(Z), rtol=1e-9)
    assert (fm.provenance.rows_fitted, fm.provenance.rows_learned) == (50, len(X))


def test_constant_features_predict_the_mean(y):
    for penalty in ("auto", 0.0, 1.0):
        steps = [{"kind": "standardize"}, {"kind": "ridge", "penalty": penalty}]
        fm = kafeat.fit({"steps": steps}, np.ones((1000, 3)), y)
        np.testing.assert_allclose(fm.predict(np.ones((2, 3))), y.mean(), rtol=1e-12)


def test_a_class_that_a_fold_lacks_and_more_classes_than_rows_of_each(X):
    y = np.where(np.arange(len(X)) == 7, "once", np.where(X[:, 0] > 0, "a", "b"))
    assert fitted(X, y).classes.tolist() == ["a", "b", "once"]
    few = fitted(X[:30], np.array([f"c{i:02}" for i in range(30)]))
    assert few.predict_proba(X).shape == (1000, 30)


def test_predictions_are_computed_in_float64_where_float32_would_show(X, y):
    # Weights that nearly cancel: features of two columns that are almost the same.
    twins = np.column_stack([X[:, 0], X[:, 0] + 1e-6 * X[:, 1]])
    label = (twins[:, 1] - twins[:, 0]) * 1e6
    config = {"steps": [{"kind": "standardize"}, {"kind": "ridge", "penalty": 0.0}]}
    fm = kafeat.fit(config, twins, label)
    assert fm.predictor.fitted.state["wide"]
    assert not fitted(X, y, dtype="float32").predictor.fitted.state["wide"]


@pytest.mark.parametrize("unit", [2.0**-900, 2.0**900])
def test_the_unit_of_the_label_may_lie_outside_float32(X, y, unit):
    plain, scaled = (fitted(X, y * one, dtype="float32") for one in (1.0, unit))
    # float32 rounds the products of the plain model only
    np.testing.assert_allclose(scaled.predict(X) / unit, plain.predict(X), rtol=1e-6)


REFUSED = [
    (np.zeros(1000), {}, "label: expected at least two classes, got only"),
    (np.zeros(1000), {"task": "regression"}, "label: expected numbers that differ, got only 0"),
    (np.array(["a", "b"] * 500), {"task": "regression"}, "expected numbers for a regression, got text"),
    (np.arange(1000.0) + 0.5, {"class_weight": "balanced"}, "balanced: expected a label of classes, got numbers"),
    (np.full(1000, np.nan), {}, "expected finite numbers, got nan"),
    (np.zeros((1000, 2)), {"task": "classification"}, "expected one label if it has classes, got 2"),
]  # fmt: skip


@pytest.mark.parametrize(("label", "parameters", "message"), REFUSED)
def test_labels_that_cannot_be_learned_are_refused(X, label, parameters, message):
    with pytest.raises(DataError, match=message):
        fitted(X, label, **parameters)


def test_more_classes_than_can_be_learned(X):
    label = np.array([f"{i}" for i in range(1001)])
    assert fitted(X, label[:1000]).predict_proba(X[:2]).shape == (2, 1000)
    with pytest.raises(DataError, match="expected at most 1,000 classes to learn from, got more"):
        kafeat.fit({"steps": [*MAP, {"kind": "ridge"}]}, np.resize(X, (1001, 5)), label)


def test_a_map_and_a_config_without_a_label_are_refused(X):
    told = r"steps\[2\]\.kind: ridge: expected a label to predict \(--label COL\), got none"
    with pytest.raises(UsageError, match=told):
        fitted(X, None)
    fm = kafeat.fit({"steps": MAP}, X)
    assert fm.classes is None
    with pytest.raises(UsageError, match="predict: expected a model that ends in a predictor, got a map"):
        fm.predict(X)
    with pytest.raises(UsageError, match="predict_proba: expected a model of classes, got one of numbers"):
        fitted(X, X[:, 0]).predict_proba(X)


CONFIGS = [
    ([{"kind": "ridge"}], "steps: expected a scaler or a sampler before ridge, got none"),
    ([*MAP, {"kind": "ridge"}, {"kind": "pca"}], "steps: expected ridge as the last step only, got pca after it"),
    ([*MAP, {"kind": "ridge", "penalty": -1.0}], "expected a number of at least 0 or 'auto', got -1.0"),
    ([*MAP, {"kind": "ridge", "penalty": {"validate": ["auto"]}}], "search only numbers for the penalty"),
    ([*MAP, {"kind": "ridge", "task": {"validate": ["auto"]}}], "search only numbers for the penalty"),
    ([{"kind": "union", "maps": [{"steps": [{"kind": "ridge"}]}]}], "since predictors come last"),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "message"), CONFIGS)
def test_configs_that_are_refused(steps, message):
    with pytest.raises(ConfigError, match=message):
        kafeat.config.load_config({"steps": steps})


def weighted_table(X, y, w):
    return pa.table({f"x{j}": column for j, column in enumerate(X.T)} | {"y": y, "w": w})


OUT_OF_RANGE = r"expected 0 or a number from 1e-100 to 1e\+100, got "
WEIGHTS = [
    (np.full(1000, -1.0), rf"row 1 \(index 0\), weight 'w': {OUT_OF_RANGE}-1"),
    (np.full(1000, 1e300), rf"weight 'w': {OUT_OF_RANGE}1e\+300"),
    (np.full(1000, 1e-300), rf"weight 'w': {OUT_OF_RANGE}1e-300"),
    (np.full(1000, np.nan), "weight 'w': expected a value, got nan"),
    (np.array(["a"] * 1000), "weight 'w': expected numbers, got text"),
]


@pytest.mark.parametrize(("w", "message"), WEIGHTS)
def test_weights_that_are_refused(X, y, w, message):
    with pytest.raises(DataError, match=message):
        kafeat.fit({"steps": [*MAP, {"kind": "ridge"}]}, weighted_table(X, y, w), "y", weight="w")


def test_weights_need_a_predictor_and_a_column_of_their_own(X, y):
    table = weighted_table(X, y, np.ones(1000))
    told = "--weight: expected a config that ends in a predictor, such as ridge, got a map"
    with pytest.raises(UsageError, match=told):
        kafeat.fit({"steps": MAP}, table, weight="w")
    config = {"steps": [*MAP, {"kind": "ridge"}]}
    told = "--weight: expected another column than those of the label and the split, got 'y'"
    with pytest.raises(UsageError, match=told):
        kafeat.fit(config, table, "y", weight="y")
    with pytest.raises(DataError, match="--weight: expected the column 'v', got x0"):
        kafeat.fit(config, table, "y", weight="v")


@pytest.mark.parametrize(("name", "value", "told"), [
    ("weights", np.zeros((4, 1)), r"\.weights: expected the shape \(3, 1\)"),
    ("floor", np.zeros(1), r"\.floor: expected numbers above 0"),
    ("unit", np.zeros(1), r"\.unit: expected numbers above 0"),
    ("more", np.zeros(1), r": expected \['error', 'floor', "),
])  # fmt: skip
def test_intervals_of_numbers_that_no_fit_gives_are_refused(name, value, told):
    X = np.random.default_rng(0).normal(size=(60, 3))
    fm = kafeat.fit({"steps": ["standardize", "ridge"]}, X, label=X[:, 0] ** 2, intervals=True)
    content = artifact.loads(fm.dumps(), "a")
    content["predictor"]["intervals"][name] = value
    with pytest.raises(ArtifactError, match=f"intervals{told}"):
        serialize.build(FeatureMap, content, "a")
