"""What Python asks of every object: equality, a hash, a repr, copies and pickles; and what `dir` shows."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat import errors
from kafeat.io.options import InputOptions
from kafeat.jobs.dataset.manifest import PartFailure

X = np.random.default_rng(0).normal(size=(120, 2))
Y = X[:, 0] + 0.1 * X[:, 1]
STEPS = [{"kind": "standardize"}, {"kind": "fourier", "n_components": 8}]
MODEL = {"steps": [*STEPS, {"kind": "ridge", "penalty": 0.1}]}


def dots(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x @ y.T


def model() -> kafeat.FeatureMap:
    return kafeat.fit(MODEL, X, label=Y)


EQUAL: dict[str, Callable[[], Any]] = {
    "a map": lambda: kafeat.fit({"steps": STEPS}, X),
    "a model": model,
    "a config": lambda: model().config,
    "a config of a search": lambda: kafeat.Config(steps=[{"kind": "fourier", "gamma": {"validate": [1.0]}}]),
    "columns": lambda: model().columns,
    "provenance": lambda: model().provenance,
    "labels": lambda: model().predictor.labels,
    "options for reading": lambda: InputOptions(delimiter=";", date_format=("%d.%m.%Y",)),
}


@pytest.mark.parametrize("name", EQUAL)
def test_objects_of_the_same_content_are_equal(name: str) -> None:
    one, other = EQUAL[name](), EQUAL[name]()
    assert one == other
    assert hash(one) == hash(other)
    assert {one} == {other}
    assert one != "something else"
    for again in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert again == one
        assert repr(again) == repr(one)


def test_maps_of_other_rows_or_steps_are_not_equal() -> None:
    fm = model()
    assert fm != kafeat.fit(MODEL, X[1:], label=Y[1:])
    assert fm != kafeat.fit({"steps": STEPS}, X)
    assert fm != kafeat.fit({**MODEL, "seed": 1}, X, label=Y)


def test_a_map_that_was_used_is_pickled_and_loaded_maps_are_equal(tmp_path: Path) -> None:
    fm = model()
    predicted, interval = fm.predict(X), fm.predict_interval(X, 0.8)
    fm.save(tmp_path / "m.joblib")
    for again in (pickle.loads(pickle.dumps(fm)), copy.deepcopy(fm), kafeat.load(tmp_path / "m.joblib")):
        assert again == fm
        assert again.digest == fm.digest
        assert again.predict(X).tobytes() == predicted.tobytes()
        assert again.predict_interval(X, 0.8).tobytes() == interval.tobytes()


def test_a_map_with_a_function_equals_only_itself() -> None:
    steps = [{"kind": "nystroem", "kernel": dots, "n_components": 2}]
    fm, other = (kafeat.fit({"steps": steps}, X) for _ in range(2))
    assert (fm == fm, fm == other, hash(fm) == hash(fm)) == (True, False, True)
    again = pickle.loads(pickle.dumps(fm))
    assert again.transform(X).tobytes() == fm.transform(X).tobytes()


@pytest.mark.parametrize("part", ["chain", "column_ranges", "feature_mean", "predictor"])
def test_parts_of_a_map_can_be_compared_hashed_and_pickled(part: str) -> None:
    one, other = getattr(model(), part), getattr(model(), part)
    assert (one == one, one == other) == (True, False)
    assert len({one, other}) == 2
    assert type(pickle.loads(pickle.dumps(one))) is type(one)


def test_results_are_pickled() -> None:
    tuning = kafeat.tune(X, Y, columns=4, trials=1)
    assert copy.deepcopy(tuning) == copy.copy(tuning) == tuning
    assert tuning in {tuning}
    again = pickle.loads(pickle.dumps(tuning))
    assert (again.yaml, again.config, again.table) == (tuning.yaml, tuning.config, tuning.table)
    assert tuning.fit() == kafeat.fit(tuning.config, X, label=Y)
    told = "fit: expected the data of the search, got a result without them"
    with pytest.raises(errors.UsageError, match=told):
        again.fit()
    found = kafeat.evaluate(config={"steps": STEPS}, data=pa.table({"a": X[:, 0], "b": X[:, 1]}))
    assert pickle.loads(pickle.dumps(found)) == found


ERRORS = [
    errors.KafeatError("a"), errors.UsageError("a"), errors.ConfigError(["steps: one", "seed: two"]),
    errors.DataError("a"), errors.InvalidValueError(1, "x", "expected a number"), errors.ArtifactError("a"),
    errors.SystemRefusedError("a"), errors.GateError("a"),
    errors.PartsError("out", 1, [PartFailure(name="a.csv", error="a.csv: bad", exit_code=3)]),
    errors.KafeatWarning("a"),
]  # fmt: skip


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_cross_a_border_of_processes(error: Exception) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


def test_every_error_is_tested() -> None:
    public = {one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, Exception)}
    assert public == {type(error) for error in ERRORS}


def test_dir_shows_the_functions() -> None:
    assert dir(kafeat) == sorted(kafeat.__all__)
    assert all(callable(getattr(kafeat, name)) for name in kafeat.__all__ if name != "__version__")
