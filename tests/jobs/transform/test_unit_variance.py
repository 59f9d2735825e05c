"""`--unit-variance`: features times one factor, so that the mean of their variances is 1."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import train_test_split

import kafeat
from kafeat.errors import GateError, UsageError
from kafeat.io.options import OutputOptions
from kafeat.model.feature_map import FeatureMap
from tests.jobs.files import transform_file, verify_file
from tests.zygote import ROOT

DIGITS = ROOT / "sample_data/digits.parquet"
X = np.random.default_rng(5).standard_normal((900, 3))
CONFIG = {"chunk_rows": 256, "steps": [{"kind": "standardize"}, {"kind": "fourier", "n_components": 32}]}
SCALED = OutputOptions(unit_variance=True, fsync=False)


@pytest.fixture(scope="module")
def fm() -> FeatureMap:
    return kafeat.fit(CONFIG, X)


@pytest.fixture
def data(tmp_path: Path) -> str:
    np.save(tmp_path / "in.npy", X)
    return str(tmp_path / "in.npy")


def test_the_mean_variance_is_one(fm):
    Z = fm.transform(X, unit_variance=True)
    assert Z.tobytes() == (fm.transform(X) * np.float32(fm.unit_scale)).tobytes()
    # tr Σ is the mean over 450 pairs of ‖u‖² of half a difference, at most 2 for features of norm 1, and 1 on average:
    # by Hoeffding it is off by more than a fifth with a probability below 2·exp(-2·450·0.2²/4) < 1e-3.
    assert Z.astype(float).var(axis=0).mean() == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "npy"])
def test_every_format_has_them_and_is_verified(fm, data, tmp_path, suffix):
    model, out = str(tmp_path / "m.joblib"), str(tmp_path / f"z.{suffix}")
    fm.save(model)
    assert transform_file(fm, data, out, writing=SCALED).scale == fm.unit_scale
    states_it = suffix in ("parquet", "arrow")
    assert verify_file(model, data, out, unit_variance=not states_it).largest_difference == 0.0
    if not states_it:
        with pytest.raises(GateError, match="feature"):
            verify_file(model, data, out)
    if suffix == "parquet":
        noted = json.loads(pq.read_schema(out).metadata[b"kafeat"])
        assert float(noted["scale"]) == fm.unit_scale


def test_stats_verify_and_inspect_tell_the_factor(in_process, run, fm, data, tmp_path):
    model, out, stats = tmp_path / "m.joblib", tmp_path / "z.npy", tmp_path / "s.json"
    fm.save(model)
    words = ["transform", "--model", model, data, out, "--unit-variance", "--stats", stats]
    run(*words, "--output-dtype", "float16")
    assert json.loads(stats.read_text())["output"]["scale"] == fm.unit_scale
    assert np.load(out).dtype == np.float16
    run("verify --model", model, data, out, "--stats", stats)
    told = in_process("inspect", model).stdout
    assert f"for features of unit variance: times {fm.unit_scale:.10g}" in told


def test_the_drift_test_is_that_of_features_as_they_are(fm, data, tmp_path):
    tests = []
    for writing in (SCALED, replace(SCALED, unit_variance=False)):
        done = transform_file(fm, data, tmp_path / "z.npy", writing=writing, drift_test=0.0)
        tests.append((done.drift_test.usual, done.drift_test.distance))
    # The distance is rounding error of float32: features of norm 1 are rounded by less than 6e-8 each.
    assert tests[0] == pytest.approx(tests[1], abs=1e-6)


def test_what_has_no_factor_is_refused(fm, data, tmp_path):
    out = tmp_path / "z.npy"
    predicting = kafeat.fit({**CONFIG, "steps": [*CONFIG["steps"], "ridge"]}, X, label=X[:, 0] > 0.0)
    constant = kafeat.fit({"steps": ["clip"]}, np.ones((20, 3)))
    told = "--unit-variance: expected features to scale, got predictions: use --features"
    of_before = (replace(fm, feature_mean=None), "one of an older version: fit it again")
    for refused, message in (of_before, (predicting, told), (constant, "one whose features are constant")):
        with pytest.raises(UsageError, match=message):
            transform_file(refused, data, out, writing=SCALED)
        assert not out.exists()
    transform_file(predicting, data, out, writing=replace(SCALED, features=True))
    with pytest.raises(UsageError, match="fit it again"):
        replace(fm, feature_mean=None).transform(X, unit_variance=True)


def test_default_penalties_fit():
    """Of scikit-learn, on digits: without the factor, the default of `RidgeClassifier` is several times too strong."""
    table = pq.read_table(DIGITS)
    fm = kafeat.fit(ROOT / "configs/nystroem.yaml", table, label="label")
    y = table["label"].to_numpy()
    scores = {}
    for unit_variance in (False, True):
        Z = fm.transform(table, unit_variance=unit_variance)
        train, test, y_train, y_test = train_test_split(Z, y, random_state=0)
        models = (LogisticRegression(max_iter=300), RidgeClassifier())
        scores[unit_variance] = [one.fit(train, y_train).score(test, y_test) for one in models]
    assert all(scaled > plain for scaled, plain in zip(scores[True], scores[False], strict=True))
