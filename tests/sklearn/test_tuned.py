"""The transformer that chooses its config: scikit-learn's checks, tables as they come, and what it keeps."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import kafeat
from kafeat.errors import KafeatWarning, UsageError
from kafeat.sklearn import TunedFeatureMap

X = np.random.default_rng(0).normal(size=(200, 3)) * [1.0, 100.0, 0.01]
Y = np.sin(2.0 * X[:, 0])


@pytest.mark.sampled
@parametrize_with_checks([TunedFeatureMap(8, trials=1, seeds=1)])
# some checks have fewer rows than a choice needs
@pytest.mark.filterwarnings("ignore:TunedFeatureMap. expected at least")
@pytest.mark.usefixtures("one_limit")
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_it_fits_the_config_that_tune_chooses() -> None:
    tuned = TunedFeatureMap(16, trials=3).fit(X, Y)
    plain = kafeat.tune(X, Y, 16, trials=3, jobs=1)
    assert tuned.config_ == plain.config.to_plain()
    assert tuned.transform(X).tobytes() == plain.fit().transform(X).tobytes()
    assert list(tuned.tuning_.table.to_pandas()["score"]) == [row["score"] for row in plain.table]
    assert tuned.get_feature_names_out()[-1] == "tunedfeaturemap15"


def test_groups_are_those_of_a_column() -> None:
    groups = np.random.default_rng(1).integers(0, 8, 200)
    tuned = TunedFeatureMap(16, trials=3).fit(X, Y, groups)
    table = pd.DataFrame(X, columns=["c0", "c1", "c2"]).assign(who=groups)
    plain = kafeat.tune(table, Y, 16, trials=3, jobs=1, split_by="group:who")
    assert [row["score"] for row in tuned.tuning_.table] == [row["score"] for row in plain.table]
    assert tuned.transform(X).tobytes() == plain.fit().transform(table).tobytes()
    kafeat.fit(tuned.config_, X, Y)  # which has no groups


def test_random_state_is_the_seed() -> None:
    base = {"seed": 1, "columns": {"exclude": ["c2"]}}
    tuned = TunedFeatureMap(16, trials=2, base=base, random_state=np.random.RandomState(3)).fit(X, Y)
    same = TunedFeatureMap(16, trials=2, base=base, random_state=tuned.config_["seed"]).fit(X, Y)
    assert tuned.config_["seed"] not in (0, 1)
    assert tuned.config_["columns"]["exclude"] == ["c2"]
    assert same.config_ == tuned.config_
    with pytest.raises(ValueError, match="seed: expected"):
        TunedFeatureMap(16, trials=2, random_state=-1).fit(X, Y)


def test_a_data_frame_with_text_and_gaps_in_a_pipeline() -> None:
    rng = np.random.default_rng(1)
    town = rng.choice(["a", "b"], 200)
    gaps = np.where(rng.random(200) < 0.2, np.nan, X[:, 1])
    frame = pd.DataFrame({"x": X[:, 0], "gaps": gaps, "town": town})
    labels = Y + 3.0 * (town == "a")
    model = make_pipeline(TunedFeatureMap(32, trials=3, n_jobs=2), Ridge(1e-3))
    # Without the text R² is at most var(Y)/(var(Y) + 9/4) < 0.2.
    of_folds = cross_validate(model, frame, labels, cv=2, return_estimator=True)
    assert of_folds["test_score"].min() > 0.5
    fitted = of_folds["estimator"][0][0]
    assert "one_hot" in [step["kind"] for step in fitted.config_["steps"]]
    assert list(fitted.feature_names_in_) == ["x", "gaps", "town"]


def test_missing_values_and_empty_columns_of_an_array() -> None:
    gaps = np.column_stack([X, np.full(200, np.nan)])
    gaps[::5, 1] = np.nan
    assert np.isfinite(TunedFeatureMap(8, trials=1).fit(gaps, Y).transform(gaps)).all()


def test_a_pickle_keeps_the_choice_and_not_the_data() -> None:
    tuned = TunedFeatureMap(8, trials=1).fit(X, Y)
    again = pickle.loads(pickle.dumps(tuned))
    assert again.tuning_.yaml == tuned.tuning_.yaml
    assert again.transform(X).tobytes() == tuned.transform(X).tobytes()
    with pytest.raises(UsageError, match="has its map as feature_map_"):
        again.tuning_.fit()


def test_few_rows_get_a_map_and_a_warning() -> None:
    with pytest.warns(KafeatWarning, match="expected at least 20 rows to choose a map by, got 12"):
        tuned = TunedFeatureMap(64).fit(X[:12], Y[:12])
    assert tuned.tuning_ is None
    assert tuned.transform(X[:5]).shape == (5, 12)


def test_mistakes_are_value_errors() -> None:
    with pytest.raises(ValueError, match="label: expected at least two classes"):
        TunedFeatureMap(8).fit(X, ["a"] * 200)
    with pytest.raises(ValueError, match="columns: expected a whole number from 2 to 1,048,576, got 1"):
        TunedFeatureMap(1).fit(X, Y)
    with pytest.raises(ValueError, match="the target y is None"):
        TunedFeatureMap(8).fit(X, None)
