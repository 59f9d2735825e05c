"""Tests of every predictor: a config, a page with its formula, and a state that is checked."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import kafeat
from kafeat.chain.chain import FittedStep
from kafeat.config import load_config
from kafeat.errors import ArtifactError
from kafeat.model import artifact, serialize
from kafeat.model.feature_map import FeatureMap
from kafeat.model.load import loads
from kafeat.registry import predictors, step_class

pytestmark = pytest.mark.parametrize("kind", predictors())


@pytest.fixture(scope="module")
def fit(digits, digits_table):
    label = np.asarray(digits_table["label"])[:300]

    @cache
    def fit(kind, intervals=False):
        steps = [{"kind": "standardize"}, {"kind": kind, "penalty": 0.01}]
        return kafeat.fit({"steps": steps}, digits[:300], label, intervals=intervals)

    return fit


def test_has_a_config_and_a_documented_formula(kind, configs):
    assert (Path(__file__).parent / f"test_{kind}.py").is_file()
    path = configs / f"{kind}.yaml"
    assert load_config(path).steps[-1].kind == kind
    assert path.read_text().splitlines()[1].startswith("# ")
    text = step_class(kind).__doc__
    assert "=" in text.split("\n\n")[0]
    assert "Source: " in text
    assert all(field.description for field in step_class(kind).model_fields.values())


def test_state_and_width_are_as_declared(kind, fit):
    fm = fit(kind)
    fitted = fm.predictor.fitted
    checked = FittedStep.checked(fitted.step, fitted.state, fm.n_components)
    assert checked.n_features_out == checked.bind(np.dtype("float32")).n_features_out == 10


def test_row_law_and_memory_order(kind, fit, digits):
    fm = fit(kind)
    whole = fm.predict_proba(digits)
    # Products of 64 terms in float32, in another place of a tile; probabilities move by less than scores do.
    order = np.random.default_rng(0).permutation(len(digits))
    np.testing.assert_allclose(fm.predict_proba(digits[order]), whole[order], rtol=0, atol=1e-4)
    assert fm.predict_proba(digits[:700]).tobytes() == whole[:700].tobytes()
    assert fm.predict_proba(digits[:0]).shape == (0, 10)
    assert fm.predict(digits[:0]).shape == (0,)


def test_repr_names_the_predictor_and_old_maps_have_none(kind, fit):
    assert repr(fit(kind)) == f"FeatureMap(standardize -> {kind}: 64 inputs, 64 features, float32)"


HOSTILE = [
    (lambda p: p.pop("labels"), "predictor.recipe: expected recipe, state and labels"),
    (lambda p: p.update(recipe={"kind": "pca"}), "predictor.recipe: expected a predictor, got pca"),
    (lambda p: p["recipe"].update(penalty={"validate": [1.0]}), "predictor.recipe: expected a predictor"),
    (lambda p: p["recipe"].update(penalty=-1.0), "predictor.recipe.penalty"),
    (lambda p: p["state"].update(weights=np.zeros((3, 10))), "expected the shape"),
    (lambda p: p["state"].update(temperature=np.array(0.0)), "temperature: expected a number above 0"),
    (lambda p: p["state"].update(temperature=np.array(np.nan)), "expected finite numbers"),
    (lambda p: p["state"].pop("temperature"), "expected classes for probabilities"),
    (lambda p: p["state"].update(wide=np.array(1.0)), "expected numbers of bool"),
    (lambda p: p["labels"].update(classes=None), "expected classes for probabilities"),
    (lambda p: p["labels"].update(classes=[1, 2]), "expected 10 classes or names"),
    (lambda p: p["labels"].update(classes=[*range(9), 8]), "ascending order"),
    (lambda p: p["labels"].update(classes=[*range(9), "x"]), "expected classes of the type integer"),
    (lambda p: p["labels"].update(type="list"), "expected one of text, integer, number, boolean"),
    (lambda p: p["labels"].update(names=["a\x1b[31m"]), "expected printable names"),
    (lambda p: p["labels"].update(names="ab"), "expected a list of text"),
]


@pytest.mark.parametrize(("spoil", "message"), HOSTILE)
def test_a_predictor_that_no_fit_gives_is_refused(kind, fit, spoil, message):
    content = artifact.loads(fit(kind).dumps(), "a")
    spoil(content["predictor"])
    with pytest.raises(ArtifactError, match=message):
        serialize.build(FeatureMap, content, "a")


def test_a_file_says_what_it_holds(kind, fit):
    content = artifact.loads(fit(kind).dumps(), "a")
    assert content["format"] == 3
    for change in ({"format": 2}, {"predictor": None}):
        with pytest.raises(ArtifactError, match="expected"):
            loads(artifact.dumps({**content, **change}))


HOSTILE_INTERVALS = [
    ("more", np.zeros(1), r": expected \['calibration|: expected \['error"),
    ("scores", [0.1], ": expected a dict of arrays"),
    ("scores", np.zeros((5, 2)), r"\.scores: expected the shape"),
    ("scores", np.zeros((5, 1), np.float32), r"\.scores: expected numbers of float64"),
    ("scores", np.zeros((0, 1)), r"\.scores: expected 1 to 10,000 ascending"),
    ("scores", np.zeros((10_001, 1)), r"\.scores: expected 1 to 10,000"),
    ("scores", np.array([[1.0], [0.5]]), r"\.scores: expected 1 to 10,000"),
    ("scores", np.array([[np.nan]]), r"\.scores: expected finite numbers"),
    ("error", np.array([-1.0, 0.0]), r"\.error: expected numbers of at least 0"),
    ("calibration", np.zeros(1), r"\.calibration: expected the shape"),
    ("calibration", np.full((15, 3), -1.0), r"\.calibration: expected"),
    ("calibration", np.full((15, 3), 1e300), r"\.calibration: expected"),
    ("calibration", np.array(-0.1), r"\.calibration: expected"),
]


@pytest.mark.parametrize(("name", "value", "told"), HOSTILE_INTERVALS)
def test_intervals_that_no_fit_gives_are_refused(kind, fit, name, value, told):
    content = artifact.loads(fit(kind, intervals=True).dumps(), "a")
    assert content["format"] == 4
    content["predictor"]["intervals"][name] = value
    with pytest.raises(ArtifactError, match=f"intervals{told}"):
        serialize.build(FeatureMap, content, "a")


@pytest.mark.parametrize("rest", [{}, {"intervals": [1.0]}])
def test_a_predictor_without_the_intervals_of_its_format_is_refused(kind, fit, rest):
    content = artifact.loads(fit(kind, intervals=True).dumps(), "a")
    del content["predictor"]["intervals"]
    content["predictor"].update(rest)
    with pytest.raises(ArtifactError, match="labels and intervals|intervals: expected a dict of arrays"):
        serialize.build(FeatureMap, content, "a")


def test_intervals_in_a_file_of_an_older_format_are_refused(kind, fit):
    content = artifact.loads(fit(kind, intervals=True).dumps(), "a")
    with pytest.raises(ArtifactError, match="recipe: expected recipe, state and labels"):
        serialize.build(FeatureMap, {**content, "format": 3}, "a")
