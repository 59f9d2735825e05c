"""FeatureMap as a transformer: scikit-learn's own checks, and the same features as everywhere else in kafeat."""

import copy
import pickle
import re
import warnings
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import kafeat
from kafeat.errors import DataError, KafeatWarning, UsageError
from kafeat.sklearn import FeatureMap, FeatureMapClassifier, FeatureMapRegressor

PROJECTION = {"kind": "projection", "n_components": 5}
Y = load_digits().target


@parametrize_with_checks([FeatureMap(), FeatureMap(["impute", "pca"], dtype="float32", n_jobs=2)])
# one of the checks calls `fit` and then `partial_fit`
@pytest.mark.filterwarnings("ignore:partial_fit")
@pytest.mark.usefixtures("one_limit")
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("steps", [["standardize", PROJECTION], {"kind": "nystroem", "n_components": 8}])
def test_the_map_is_the_one_that_kafeat_fits(steps: Any, digits: np.ndarray) -> None:
    recipes = [{"kind": "standardize"}, PROJECTION] if isinstance(steps, list) else [steps]
    ours = FeatureMap(steps, seed=3, fit_rows=500).fit(digits)
    plain = kafeat.fit({"seed": 3, "fit_rows": 500, "dtype": "float64", "steps": recipes}, digits)
    assert ours.feature_map_.dumps() == plain.dumps()
    for n_jobs in (None, 2, -1):
        ours.n_jobs = n_jobs
        assert ours.transform(digits).tobytes() == plain.transform(digits).tobytes()


def frame(library: str, X: np.ndarray, **more: Any) -> Any:
    columns = {f"p{i:02}": np.ascontiguousarray(column) for i, column in enumerate(X.T)}
    return pytest.importorskip(library).DataFrame({**columns, **more})


ASKED = [("float32", None, "float32"), ("float64", None, "float64"), ("int16", None, "float64")]
ASKED += [("float64", "float32", "float32"), ("float32", "float64", "float64")]


@pytest.mark.sampled
@pytest.mark.parametrize("library", ["numpy", "sparse", "pandas", "polars"])
@pytest.mark.parametrize(("dtype", "asked", "got"), ASKED)
def test_float32_is_kept_unless_asked(library, dtype, asked, got, digits):
    X = digits[:50].astype(dtype)
    made = {"numpy": np.asarray, "sparse": csr_array}.get(library, partial(frame, library))
    table = made(X)
    fitted = FeatureMap(PROJECTION, dtype=asked).fit(table)
    assert fitted.feature_map_.dtype == got
    assert fitted.transform(table).dtype == got


def test_a_search_reaches_the_parameters_of_steps(digits: np.ndarray) -> None:
    model = make_pipeline(StandardScaler(), FeatureMap(PROJECTION), RidgeClassifier())
    grid = {"featuremap__projection__n_components": np.array([2, 40]), "featuremap__seed": [0, 1]}
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(digits[:600], Y[:600])
    # two directions of 64 cannot tell ten digits apart
    assert search.best_params_["featuremap__projection__n_components"] == 40
    assert search.best_estimator_[1].feature_map_.n_components == 40
    assert PROJECTION == {"kind": "projection", "n_components": 5}


def test_steps_have_the_names_of_their_kinds_or_given_ones() -> None:
    steps = ["minmax", {"kind": "fourier", "n_components": 8}, ("last", {"kind": "fourier"}), "minmax"]
    fm = FeatureMap(steps)
    params = fm.get_params()
    assert {"minmax-1", "minmax-2__clip", "fourier__n_components", "last__gamma"} <= set(params)
    assert params["fourier__n_components"] == 8
    assert params["last__gamma"] == "median"
    assert params["steps"] is steps
    assert set(fm.get_params(deep=False)) == {
        "steps", "config", "seed", "dtype", "fit_rows", "chunk_rows", "n_jobs", "random_state", "sparse_output",
    }  # fmt: skip
    fm.set_params(**{"minmax-1": "standardize", "last__n_components": 4, "minmax-2__clip": True})
    assert steps[0] == "minmax"
    kinds = [fitted.step.kind for fitted in fm.fit(np.eye(6)).feature_map_.chain.steps]
    assert kinds == ["standardize", "fourier", "fourier", "minmax"]
    assert fm.feature_map_.n_components == 4
    # along with another kind come its parameters
    fm.set_params(last={"kind": "tensor_sketch"}, last__degree=3)
    assert fm.fit(np.eye(6)).feature_map_.chain.steps[2].step.recipe()["degree"] == 3


@pytest.mark.parametrize("name", ["nope", "projection__nope", "nope__n", "fourier__gamma", "projection__"])
def test_unknown_parameters_are_refused(name: str) -> None:
    fm = FeatureMap(PROJECTION)
    with pytest.raises(ValueError, match=f"Invalid parameter '{name}'"):
        fm.set_params(**{name: 1})
    assert fm.steps is PROJECTION


MISTAKES = [
    ({"steps": 3}, "steps: expected a kind, a recipe, or a list of them, got 3"),
    ({"steps": []}, "steps: expected a kind, a recipe"),
    ({"steps": [("seed", "pca")]}, "that are not parameters and do not contain '__', got 'seed'"),
    ({"steps": [("a__b", "pca")]}, "do not contain '__', got 'a__b'"),
    ({"steps": "pca", "config": {"steps": ["pca"]}}, "config: expected it without steps, which the config"),
    ({"seed": 1, "config": {"steps": ["pca"]}}, "config: expected it without seed, which the config sets"),
    ({"seed": -1}, "seed: expected a whole number"),
    ({"dtype": "float16"}, "dtype: expected one of"),
]


@pytest.mark.parametrize(("params", "message"), MISTAKES)
def test_mistakes_are_told_by_the_fit_as_value_errors(params: dict[str, Any], message: str) -> None:
    X = np.random.default_rng(0).standard_normal((9, 3))
    fm = FeatureMap(**params)
    fm.get_params()
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        fm.fit(X)
    assert isinstance(caught.value, UsageError | DataError)


def test_a_config_stands_for_all_parameters(configs, digits, digits_table):
    path = configs / "tensor_sketch.yaml"
    named = frame("pandas", digits, label=Y)
    ours = FeatureMap(config=path).fit(named)  # which leaves the label out
    assert ours.transform(named).tobytes() == kafeat.fit(path, digits_table).transform(digits_table).tobytes()
    assert not [name for name in ours.get_params() if "__" in name]


def test_data_frames_and_columns_transformers(digits: np.ndarray) -> None:
    for library in ("pandas", "polars"):
        table = frame(library, digits[:30])
        fm = FeatureMap(PROJECTION).set_output(transform=library)
        Z = fm.fit(table).transform(table)
        assert type(Z).__module__.startswith(library)
        assert list(Z.columns) == [f"featuremap{i}" for i in range(5)] == list(fm.get_feature_names_out())
        assert Z.to_numpy().tobytes() == fm.set_output(transform="default").transform(table).tobytes()
        swapped = table[[*table.columns[::-1]]]
        with pytest.raises(ValueError, match="feature names should match"):
            fm.transform(swapped)
    kept = ("kept", "passthrough", ["p12"])
    parts = ColumnTransformer([("map", FeatureMap(PROJECTION), ["p10", "p11"]), kept])
    Z = parts.fit_transform(frame("pandas", digits[:30]))
    assert Z.shape == (30, 6)
    assert parts.get_feature_names_out()[-2:].tolist() == ["map__featuremap4", "kept__p12"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_texts_and_times_where_a_step_names_them(library: str, digits: np.ndarray) -> None:
    size = np.where(Y[:80] > 4, "big", "small")
    time = np.datetime64("2024-02-28T22:00", "ms") + 3_600_000 * np.arange(80)
    table = frame(library, digits[:80], size=size, time=time)
    parts = {"kind": "date_parts", "columns": ["time"], "parts": ["day", "hour"], "cyclic": False}
    fm = FeatureMap([{"kind": "one_hot", "columns": ["size"]}, parts]).fit(table)
    Z, names = fm.transform(table), fm.get_feature_names_out().tolist()
    assert names == [*fm.feature_names_in_[:64], "size_big", "size_small", "time_0", "time_1"]
    np.testing.assert_array_equal(Z[:, :64], digits[:80])
    np.testing.assert_array_equal(Z[:, 64], size == "big")
    np.testing.assert_array_equal(Z[:3, -2:], [[28, 22], [28, 23], [29, 0]])


def test_labels_go_where_they_are_wanted(digits: np.ndarray) -> None:
    X, y = digits[:300], Y[:300]
    wanting = {"kind": "nystroem", "n_components": 8, "landmarks": "dual_weighted"}
    fm = FeatureMap(wanting)
    with pytest.raises(ValueError, match="y: expected labels"):
        fm.fit(X)
    with pytest.raises(ValueError, match="y: expected labels"):
        FeatureMap({"kind": "fourier", "gamma": {"validate": [0.1, 1.0]}}).fit(X)
    plain = kafeat.fit({"dtype": "float64", "steps": [wanting]}, X, label=y)
    assert fm.fit(X, y).feature_map_.dumps() == plain.dumps()
    with pytest.raises(ValueError, match=r"expected an array of shape \(300,\)"):
        fm.fit(X, y[:-1])
    validated = {"kind": "fourier", "n_components": 8, "gamma": {"validate": [0.1, 1.0]}}
    union = FeatureMap({"kind": "union", "maps": [{"steps": [validated]}]})
    assert union.__sklearn_tags__().target_tags.required
    assert union.fit(X, y).feature_map_.provenance.searches


# --- in batches

CHAINS = [
    ["standardize", PROJECTION],
    ["minmax", {"kind": "nystroem", "n_components": 12}],
    [{"kind": "fourier", "n_components": 8, "frequencies": "orthogonal", "weights": "uniform"}],
]


@pytest.mark.sampled
@pytest.mark.parametrize("steps", CHAINS)
@pytest.mark.parametrize("fit_rows", [300, 5000, "all"])
def test_batches_give_the_map_of_all_rows(steps: list, fit_rows: int | str, digits: np.ndarray) -> None:
    whole = FeatureMap(steps, fit_rows=fit_rows, seed=5).fit(digits)
    expected = states(whole)
    for cuts in ([1], [900], [10, 11, 700, 1796], list(range(100, 1797, 100))):
        parts = FeatureMap(steps, fit_rows=fit_rows, seed=5)
        for batch in np.split(digits, cuts):
            parts.partial_fit(batch)
        assert states(parts) == expected
        assert parts.transform(digits).tobytes() == whole.transform(digits).tobytes()
        origin = parts.feature_map_.provenance
        assert origin.rows_fitted == whole.feature_map_.provenance.rows_fitted
        assert [source.rows for source in origin.sources] == [len(digits)]


def states(fitted: FeatureMap) -> list:
    fm = fitted.feature_map_
    assert fm.column_ranges is not None
    column_ranges = (fm.column_ranges.low.tobytes(), fm.column_ranges.high.tobytes())
    return [{k: v.tobytes() for k, v in step.state.items()} for step in fm.chain.steps] + [column_ranges]


@pytest.mark.filterwarnings("ignore:partial_fit. expected all batches")
def test_batches_of_categories(digits: np.ndarray) -> None:
    """Codes are settled when the map is learned, and more categories may come behind that."""
    table = frame("pandas", digits[:90], word=[f"w{i * 7 % 13}" for i in range(90)])
    # which learns from what the codes stand for
    steps = [{"kind": "one_hot", "columns": ["word"]}, "standardize"]
    whole, parts = FeatureMap(steps).fit(table), FeatureMap(steps)
    for start in range(0, 90, 9):
        batch = table.iloc[start : start + 9]
        parts.partial_fit(batch).transform(batch)
    assert parts.transform(table).tobytes() == whole.transform(table).tobytes()


def test_a_batch_after_a_use_of_the_map_warns(digits: np.ndarray, recwarn: pytest.WarningsRecorder) -> None:
    fm = FeatureMap([{"kind": "standardize"}])
    fm.partial_fit(digits[:100]).partial_fit(digits[100:200])
    first = fm.transform(digits[:100])
    pickle.loads(pickle.dumps(fm)).transform(digits)
    assert not recwarn.list
    late = "partial_fit: expected all batches before the first use of the map"
    with pytest.warns(KafeatWarning, match=late):
        fm.partial_fit(digits[200:])
    assert np.abs(fm.transform(digits[:100]) - first).max() > 0.1  # which a learner would not know
    with pytest.warns(KafeatWarning, match="partial_fit: expected all batches"):
        fm.partial_fit(digits[:10]).partial_fit(digits[:10])


def test_a_refused_batch_leaves_what_was_before(digits: np.ndarray) -> None:
    table = frame("pandas", digits, word=["a", "b", "c"] * 599)
    steps = [{"kind": "one_hot", "columns": ["word"]}, "standardize", PROJECTION]
    fm = FeatureMap(steps, dtype="float32", chunk_rows=64).partial_fit(table[:900])
    expected = clone(fm).fit(table)
    bad = table[900:].copy()
    bad.iloc[500, 3] = np.nan  # the chunks before are sound
    with pytest.raises(ValueError, match="row 501"):
        fm.partial_fit(bad)
    fm.partial_fit(table[900:])
    assert states(fm) == states(expected)
    assert [source.rows for source in fm.feature_map_.provenance.sources] == [len(table)]


def test_threads_are_those_of_joblib(digits: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    transform = kafeat.FeatureMap.transform

    def noting(self: kafeat.FeatureMap, X: Any, jobs: int) -> Any:
        asked.append(jobs)
        return transform(self, X, jobs)

    fm = FeatureMap(PROJECTION).fit(digits)
    monkeypatch.setattr(kafeat.FeatureMap, "transform", noting)
    for n_jobs in (None, 3, -1):
        fm.set_params(n_jobs=n_jobs).transform(digits)
    assert asked == [1, 3, joblib.cpu_count()]


@pytest.mark.filterwarnings("ignore:partial_fit. expected all batches")
def test_there_are_no_more_landmarks_than_rows(digits: np.ndarray) -> None:
    steps = {"kind": "union", "maps": [{"steps": [{"kind": "nystroem", "n_components": 20}]}]}
    few = r"as landmarks \(20\), got 10: n_components is lowered"
    with pytest.warns(KafeatWarning, match=few):
        fitted = FeatureMap(steps).fit(digits[:10])
    batch = FeatureMap(steps).partial_fit(digits[:10])
    with pytest.warns(KafeatWarning, match=few):
        np.testing.assert_array_equal(batch.transform(digits), fitted.transform(digits))
    assert fitted.transform(digits).shape == (1797, 10)
    assert batch.partial_fit(digits[10:30]).transform(digits).shape == (1797, 20)
    with warnings.catch_warnings(action="error"):  # nobody asked for 512 landmarks
        FeatureMap("nystroem").fit(digits[:10])
        FeatureMap(config={"steps": ["standardize", "nystroem"]}).fit(digits[:10])


@pytest.mark.parametrize("missing", [np.nan, None, "NA"])
def test_missing_values_are_placed(missing: object) -> None:
    pandas = pytest.importorskip("pandas")
    values = pandas.array([1, 2, None], dtype="Int64") if missing == "NA" else [1.0, 2.0, missing]
    table = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": values})
    for X, name in ((table, "'b'"), (table.to_numpy(dtype=float, na_value=np.nan), "1")):
        told = rf"contains NaN: row 3 .*, column {name}: .*; impute as the first"
        with pytest.raises(ValueError, match=told):
            FeatureMap().fit(X)


TIMES = [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2)]
OTHERS = {
    "times": ([at.replace(tzinfo=None) for at in TIMES], r"timestamp\[[un]s\]: name it in a date_parts step"),
    "dates": ([time.date() for time in TIMES], r"date32\[day\]: name it in a date_parts step"),
    "texts": (["x", "y"], "text: name it in a one_hot step"),
    "durations": ([TIMES[1] - TIMES[0]] * 2, r"duration\[[un]s\]: convert it to numbers"),
    "lists": ([[1.0, 2.0]] * 2, ".*list<item: double>: make a column of each of its numbers"),
    "bytes": ([b"x"] * 2, "binary.*: convert it to numbers"),
}


@pytest.mark.parametrize(("values", "says"), OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_column_that_holds_no_numbers_is_named(library: str, values: list[object], says: str) -> None:
    make = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}[library]
    table = getattr(pytest.importorskip(library), make)({"a": [1.0, 2.0], "c": values})
    with pytest.raises(ValueError, match=f"^column 'c': expected numbers, got {says}"):
        FeatureMap().fit(table)


def test_objects_are_refused_with_their_column() -> None:
    pandas = pytest.importorskip("pandas")
    for values in ([object(), object()], [1, "x"], [1j, 2j]):
        table = pandas.DataFrame({"a": [1.0, 2.0], "c": values})
        told = "got: .*; Conversion failed for column c with type .*; convert the column"
        with pytest.raises(ValueError, match=told):
            FeatureMap().fit(table)
    with pytest.raises(DataError, match="got: Python int too large .*; convert the column"):
        kafeat.fit({"steps": ["standardize"]}, pandas.DataFrame({"a": [2**70, 2**71]}))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_decimals_are_numbers_in_every_library(library: str) -> None:
    make = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}[library]
    rows = {"a": [1.0, 2.0], "c": [Decimal("1.5"), Decimal("2.5")]}
    table = getattr(pytest.importorskip(library), make)(rows)
    same = FeatureMap("standardize").fit_transform(np.array([[1.0, 1.5], [2.0, 2.5]]))
    np.testing.assert_array_equal(FeatureMap("standardize").fit_transform(table), same)


def test_warnings_of_the_fit_are_passed_on() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 1e6, 1.0]
    with pytest.warns(KafeatWarning, match="spread"):
        FeatureMap("fourier").fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FeatureMap(["standardize", "fourier"]).fit(X)


def test_batches_behind_a_fit_begin_anew(digits: np.ndarray) -> None:
    fm = FeatureMap("standardize").fit(digits)
    with pytest.warns(UserWarning, match="rows of the previous fit are not kept"):
        fm.partial_fit(digits[:50])
    assert states(fm) == states(FeatureMap("standardize").fit(digits[:50]))
    fm.fit(digits)
    assert states(fm) == states(FeatureMap("standardize").fit(digits))


# --- copies


def test_a_pickle_holds_the_artifact(digits: np.ndarray) -> None:
    fitted = FeatureMap(["standardize", PROJECTION]).fit(digits)
    data = pickle.dumps(fitted)
    assert fitted.feature_map_.dumps() in data
    for same in (pickle.loads(data), copy.deepcopy(fitted)):
        assert same.transform(digits).tobytes() == fitted.transform(digits).tobytes()
        assert joblib.hash(same) == joblib.hash(fitted)
    # a bit of the map that changed on the way is noticed
    at = data.index(b"KAFEAT-SHA256") - 100
    with pytest.raises(kafeat.errors.ArtifactError, match="checksum"):
        pickle.loads(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


@pytest.mark.filterwarnings("ignore:partial_fit. expected all batches")
def test_a_pickle_in_the_midst_of_batches_goes_on(digits: np.ndarray) -> None:
    fm = FeatureMap(["standardize", PROJECTION]).partial_fit(digits[:700])
    fm.transform(digits)
    again = pickle.loads(pickle.dumps(fm)).partial_fit(digits[700:])
    assert states(again) == states(FeatureMap(["standardize", PROJECTION]).fit(digits))


def test_a_step_that_can_learn_from_y_does():
    X = np.random.default_rng(0).normal(size=(300, 4))
    steps = ["standardize", {"kind": "nystroem", "n_components": 20}]
    several = np.column_stack([X[:, 0] > 0, X[:, 1]]).astype(float)
    for y in ((X[:, 0] > 0).astype(int), X[:, 1], several):
        assert FeatureMap(steps).fit(X, y).feature_map_.chain.steps[1].step.landmarks == "residual"
    assert FeatureMap(steps).fit(X).feature_map_.chain.steps[1].step.landmarks == "auto"


def test_batches_have_labels_all_or_none():
    X = np.random.default_rng(0).normal(size=(100, 3))
    steps = ["standardize", {"kind": "nystroem", "n_components": 10}]
    once = FeatureMap(steps).partial_fit(X[:50], X[:50, 0]).partial_fit(X[50:], X[50:, 0])
    np.testing.assert_array_equal(once.transform(X), FeatureMap(steps).fit(X, X[:, 0]).transform(X))
    told = "label: expected labels for all batches of rows or for none, got both"
    with pytest.raises(UsageError, match=told):
        FeatureMap(steps).partial_fit(X[:50], X[:50, 0]).partial_fit(X[50:])


@pytest.mark.parametrize("landmarks", ["uniform", "rpcholesky", "residual"])
def test_the_row_numbers_of_landmarks_are_kept(landmarks: str, digits: np.ndarray) -> None:
    step = {"kind": "nystroem", "n_components": 20, "landmarks": landmarks}
    fm = FeatureMap(["minmax", step], fit_rows=400).fit(digits, Y)
    scaled, numbers = FeatureMap("minmax", fit_rows=400).fit_transform(digits), fm.component_indices_
    np.testing.assert_array_equal(fm.feature_map_.chain.steps[1].state["landmarks"], scaled[numbers])
    # of the whole input, not of the sample of 400 rows
    assert numbers.max() >= 400
    parts = FeatureMap(["minmax", step], fit_rows=400)
    for rows in np.array_split(np.arange(len(digits)), 5):
        parts.partial_fit(digits[rows], Y[rows])
    np.testing.assert_array_equal(parts.component_indices_, numbers)
    loaded = kafeat.model.load.loads(fm.feature_map_.dumps(), "m")
    np.testing.assert_array_equal(loaded.chain.steps[1].state["rows"], numbers)


def test_landmarks_that_are_no_rows_have_no_row_numbers(digits: np.ndarray) -> None:
    fm = FeatureMap({"kind": "nystroem", "n_components": 9, "landmarks": "kmeans"}).fit(digits[:50])
    with pytest.raises(AttributeError, match="component_indices_: expected a nystroem step whose landmarks"):
        _ = fm.component_indices_
    K = digits[:50] @ digits[:50].T
    of_kernel = FeatureMap({"kind": "nystroem", "n_components": 9, "kernel": "precomputed"}).fit(K)
    assert len(np.unique(of_kernel.component_indices_)) == 9


def test_random_state_is_the_seed_as_scikit_learn_spells_it():
    X = np.random.default_rng(0).normal(size=(60, 3))

    def features(**parameters):
        return clone(FeatureMap({"kind": "fourier", "n_components": 8}, **parameters)).fit_transform(X)

    expected = features(seed=7)
    np.testing.assert_array_equal(features(random_state=7), expected)
    np.testing.assert_array_equal(features(seed=1, random_state=np.int64(7)), expected)
    state = np.random.RandomState(7)
    of_generator = features(random_state=np.random.RandomState(7))
    np.testing.assert_array_equal(features(random_state=state), of_generator)
    assert state.get_state()[2] == np.random.RandomState(7).get_state()[2]
    assert not np.array_equal(features(random_state=state), expected)
    config = {"seed": 3, "dtype": "float64", "steps": [{"kind": "fourier", "n_components": 8}]}
    np.testing.assert_array_equal(FeatureMap(config=config, random_state=7).fit_transform(X), expected)
    with pytest.raises(ValueError, match="seed"):
        features(random_state="seven")


CONFUSED = {
    "path": "configs/fourier.yaml",
    "Path": Path("configs/fourier.yaml"),
    "a path in a list": ["standardize", "maps/fourier.yaml"],
    "a named path": [("map", "fourier.yaml")],
    "config": {"steps": [{"kind": "standardize"}]},
    "Config": kafeat.Config(steps=[{"kind": "standardize"}]),
    "map": kafeat.fit({"steps": [{"kind": "standardize"}]}, [[1.0], [2.0]]),
}


@pytest.mark.parametrize("name", CONFUSED)
@pytest.mark.parametrize("kind", [FeatureMap, FeatureMapRegressor])
def test_what_is_confused_with_steps_gets_the_keyword_that_takes_it(kind: type, name: str) -> None:
    match = "^steps: expected a kind, a recipe, or a list of them, got .*: a config or its path is given as config="
    with pytest.raises(ValueError, match=match):
        kind(CONFUSED[name]).fit([[1.0], [2.0]], [1.0, 2.0])


@pytest.mark.parametrize("steps", [MinMaxScaler(), [MinMaxScaler(), "pca"], [("a", MinMaxScaler()), "pca"]])
def test_transformers_of_scikit_learn_are_no_steps(steps: object) -> None:
    told = r"^steps\[0\]: expected .*, got a value of type MinMaxScaler: .* make_pipeline\("
    with pytest.raises(UsageError, match=told):
        FeatureMapRegressor(steps).fit([[1.0], [2.0]], [1.0, 2.0])


@pytest.mark.parametrize("kind", [FeatureMap, FeatureMapClassifier, FeatureMapRegressor])
def test_a_parameter_of_a_step_as_a_keyword_is_told_where_it_belongs(kind: type) -> None:
    told = rf"^{kind.__name__}: got an unexpected .* 'gamma'; parameters of a step belong to its recipe: \{{'kind"
    with pytest.raises(TypeError, match=told):
        kind("nystroem", gamma=1.0)


def test_what_is_confused_with_a_config_or_a_model_is_named() -> None:
    X = [[1.0], [2.0]]
    told = "got a value of type FeatureMap; its `config` is one"
    with pytest.raises(kafeat.errors.ConfigError, match=told):
        kafeat.fit(CONFUSED["map"], X)
    told = "expected a path, a mapping or a list of steps, got text: save it to a file"
    with pytest.raises(kafeat.errors.ConfigError, match=told):
        kafeat.fit("steps:\n  - kind: standardize\n", X)
    with pytest.raises(kafeat.errors.UsageError, match="load: expected a path or URI, got dict"):
        kafeat.load({"steps": []})
