"""Test of the mean of the features of a file against that of the fit."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import binomtest

import kafeat
from kafeat.contract.tile import SparseRows
from kafeat.errors import GateError, UsageError
from kafeat.io.storage.location import parse_location
from kafeat.jobs.transform.options import RowOptions
from kafeat.jobs.transform.result import TransformResult
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.column_means import ColumnMeans, column_sums
from kafeat.runtime.column_ranges import DriftTest, FeatureMean
from tests.jobs.files import transform_file, transform_parts

RNG = np.random.default_rng(5)
X = RNG.standard_normal((900, 3))
SHIFT = np.array([0.4, 0.0, 0.0])
OTHERS = RNG.standard_normal((700, 3))
CONFIG = {"chunk_rows": 64, "steps": [{"kind": "standardize"}, {"kind": "fourier", "n_components": 32}]}


@pytest.fixture(scope="module")
def fm() -> FeatureMap:
    return kafeat.fit(CONFIG, X)


def go(fm: FeatureMap, data: np.ndarray, folder: Path, jobs: int = 1, **rules: object) -> TransformResult:
    return transform_file(fm, data, folder / "o.npy", jobs=jobs, drift=True, **rules)


def outcome(*arguments: object, **rules: object) -> DriftTest:
    test = go(*arguments, **rules).drift_test
    assert test is not None
    return test


def test_the_means_are_those_of_the_features(fm, tmp_path):
    assert fm.feature_mean is not None
    np.testing.assert_allclose(fm.feature_mean.mean, fm.transform(X).mean(axis=0, dtype=float), rtol=1e-12)
    test = outcome(fm, OTHERS, tmp_path)
    difference = fm.transform(OTHERS).mean(axis=0, dtype=float) - fm.transform(X).mean(axis=0, dtype=float)
    assert test.distance == pytest.approx(np.linalg.norm(difference), rel=1e-9)
    # the trace of the covariance, of pairs of rows and not of all: 450 pairs, each of relative deviation below 1
    variance = np.var(fm.transform(X), axis=0, dtype=float).sum()
    assert test.usual == pytest.approx(np.sqrt(variance * (1 / 900 + 1 / 700)), rel=5 / np.sqrt(450))
    assert test.p_value > 0.01


def test_a_shifted_table_is_found_and_nothing_is_written(fm, tmp_path):
    (tmp_path / "o.npy").write_bytes(b"previous")
    shifted = OTHERS + SHIFT  # well inside of the ranges
    told = (
        r"in.npy: expected features with the mean of the training rows, at a p-value of at least 0.001 "
        r"\(--drift-test\), got p = .*e-.*: the means are .* apart, where .* is usual; the columns that differ "
        r"most: 'c0' \(0.[34]\d* standard deviations: mean 0.\d*, in training rows "
    )
    with pytest.raises(GateError, match=told) as caught:
        go(fm, shifted, tmp_path, drift_test=0.001, max_drift=0.1)
    assert caught.value.exit_code == 6
    assert (tmp_path / "o.npy").read_bytes() == b"previous"
    assert sorted(os.listdir(tmp_path)) == ["in.npy", "o.npy"]
    assert outcome(fm, OTHERS, tmp_path, drift_test=0.001).p_value > 0.001


def test_the_number_of_jobs_does_not_change_a_bit(fm, tmp_path):
    assert outcome(fm, OTHERS, tmp_path) == outcome(fm, OTHERS, tmp_path, 3)


@pytest.mark.parametrize("rule", ["drop", "null"])
def test_bad_rows_do_not_count(fm, rule, tmp_path):
    bad = np.insert(OTHERS, [0, 100], np.nan, axis=0)
    want, got = outcome(fm, OTHERS, tmp_path), outcome(fm, bad, tmp_path, on_bad_rows=rule)
    # the same rows in other chunks and tiles: their last bits, and the order of the sum
    assert got.distance == pytest.approx(want.distance, rel=1e-4)
    assert got.p_value == pytest.approx(want.p_value, rel=1e-3)


def test_no_rows_have_no_mean(fm, tmp_path):
    assert go(fm, OTHERS[:0], tmp_path, drift_test=0.5).drift_test is None


def test_a_map_of_an_older_kafeat_says_so(fm, tmp_path):
    old = replace(fm, feature_mean=None)
    assert go(old, OTHERS, tmp_path).drift_test is None
    with pytest.raises(UsageError, match="--drift-test: .*got an older one: fit it again"):
        go(old, OTHERS, tmp_path, drift_test=0.01)


def test_parts_are_tested_alone_and_again(fm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir("in")
    np.save("in/a.npy", OTHERS)
    np.save("in/b.npy", OTHERS + SHIFT)
    fm.save("m.joblib")

    def run(rules: RowOptions):
        return transform_parts("m.joblib", "in", "out", rules=rules, resume=True, overwrite=False)

    first = run(RowOptions(drift=True))
    assert (first.parts, first.failed) == (2, ())
    assert first.least_p_value is not None
    assert first.least_p_value < 1e-6
    second = run(RowOptions(drift=True, drift_test=0.001))
    assert second.kept == 1
    assert [(one.name, one.exit_code) for one in second.failed] == [("b.npy", 6)]
    assert sorted(name for name in os.listdir("out") if not name.startswith(("_", "."))) == ["a.npy"]
    assert parse_location("out").join("a.npy").entry() is not None


def test_the_command_writes_it_down(fm, tmp_path, run):
    fm.save(tmp_path / "m.joblib")
    np.save(tmp_path / "in.npy", OTHERS)
    run("transform --model m.joblib in.npy o.npy --stats s.json --drift-test 1e-3", cwd=tmp_path)
    stats = json.loads((tmp_path / "s.json").read_text())["drift_test"]
    assert stats == {"p_value": pytest.approx(outcome(fm, OTHERS, tmp_path).p_value), **{
        name: pytest.approx(getattr(outcome(fm, OTHERS, tmp_path), name)) for name in ("distance", "usual")
    }}  # fmt: skip


@pytest.mark.parametrize(("change", "what"), [
    ({"rows": 0}, "feature_mean.rows: expected a whole number of at least 1"),
    ({"mean": np.zeros(3)}, r"feature_mean.mean: expected the shape \(2,\)"),
    ({"mean": np.array([np.nan, 0.0])}, "feature_mean.mean: expected finite numbers"),
    ({"traces": np.array([1.0, -1.0, 1.0])}, "feature_mean.traces: expected numbers of at least 0"),
    ({"traces": np.array([1.0, 0.0, 1.0])}, "the last two to be both 0 or both above 0"),
    ({"more": np.ones(1)}, r"feature_mean: expected \['columns', 'mean', 'traces'\]|\['mean', 'traces'\]"),
    ({"columns": np.ones((3, 3))}, r"columns: expected the shape \(3, 2\)"),
    ({"columns": [1.0]}, "feature_mean: expected a dict of arrays"),
    ({"columns": np.full((3, 2), 6.0)}, "columns: expected counts from 0 to the number of rows"),
])  # fmt: skip
def test_a_strangers_mean_is_checked(change, what):
    plain = {"mean": np.zeros(2), "traces": np.ones(3), "rows": 5}
    for sound in (plain, {**plain, "columns": np.ones((3, 2))}):
        FeatureMean.from_plain(sound, 2, 2)
    with pytest.raises(ValueError, match=what):
        FeatureMean.from_plain({**plain, **change}, 2, 2)


NYSTROEM = {"kind": "nystroem", "n_components": 64, "landmarks": "uniform"}
IID = {"kind": "fourier", "n_components": 128, "frequencies": "iid"}


@pytest.mark.parametrize("steps", [[IID], ["standardize", NYSTROEM]], ids=["fourier", "nystroem"])
def test_splits_of_the_digits_seldom_differ_and_lighter_ink_does(digits, steps):
    """Halves of one table, at random: p-values are uniform, or above that, as the halves share no row."""
    null, lighter = [], []
    for seed in range(15):
        order = np.random.default_rng(seed).permutation(len(digits))
        fit, other = digits[order[:900]], digits[order[900:]]
        fm = kafeat.fit({"seed": seed, "steps": steps}, fit)
        assert fm.feature_mean is not None
        for data, p_values in ((other, null), (other * 0.9, lighter)):
            test = fm.feature_mean.test(fm.transform(data).sum(axis=0, dtype=float), len(data))
            assert test is not None
            p_values.append(test.p_value)
    for level in (0.05, 0.3, 0.6):
        # a coin of that level shows more of such splits once in 10⁴ seeds, and the seeds are fixed
        assert binomtest(sum(p < level for p in null), len(null), level, "greater").pvalue > 1e-4
    assert np.median(null) < 0.8
    assert max(lighter) < 0.01  # by a tenth


def named(fm: FeatureMap, data: pa.Table, folder: Path) -> str:
    pq.write_table(data, folder / "in.parquet")
    with pytest.raises(GateError, match="the means are") as caught:
        transform_file(fm, folder / "in.parquet", folder / "o.npy", drift_test=0.01)
    return str(caught.value).partition(" is usual; ")[2]


def mixed(n: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    day = np.datetime64("2024-01-01T00:00:00") + rng.integers(0, 10**6, n)
    a, b = rng.standard_normal((2, n))
    b[rng.random(n) < 0.1] = np.nan
    return pa.table({"a": a, "b": pa.array(b, from_pandas=True), "k": rng.choice(["u", "v", "w"], n),
                     "t": day, "one": np.ones(n), "words": rng.choice(["red car", "blue car"], n)})  # fmt: skip


@pytest.fixture(scope="module")
def of_mixed() -> FeatureMap:
    steps = [{"kind": "text", "columns": ["words"], "n_components": 4}, {"kind": "impute"},
             {"kind": "one_hot", "columns": ["k"]}, {"kind": "date_parts", "columns": ["t"]},
             {"kind": "standardize"}, {"kind": "fourier", "n_components": 64}]  # fmt: skip
    return kafeat.model.load.loads(kafeat.fit({"steps": steps}, mixed(2000)).dumps())


@pytest.mark.parametrize(("name", "changed", "told"), [
    ("a", lambda n: pa.array(mixed(n, 1)["a"].to_numpy() + 1.5),
     r".*most: 'a' \(1\.[45]\d* standard deviations: mean 1\.[45]\d*, in training rows -?0\.0\d*\)$"),
    ("b", lambda n: pa.array([None, 0.0] * (n // 2)), r".*'b' \(missing 50\.00%, in training rows \d*\.\d\d%\)$"),
    ("k", lambda n: pa.array(["w"] * n), r".*most: 'k' \(1\.\d* standard deviations\)$"),
    ("t", lambda n: pa.array(np.datetime64("2024-02-01T00:00:00") + np.arange(n)), ".*'t' .* standard deviations"),
    ("one", lambda n: pa.array(np.full(n, 2.0)), r".*'one' \(never another value in training rows: mean 2, "),
    ("words", lambda n: pa.array(["green bike"] * n), "no column differs in its mean"),
    ("a", lambda n: pa.array([3.0, -3.0] * (n // 2)), "no column differs in its mean: spreads"),
])  # fmt: skip
def test_the_columns_that_differ_are_named(of_mixed, name, changed, told, tmp_path):
    data = mixed(1000, 1)
    data = data.set_column(data.column_names.index(name), name, changed(1000))
    assert re.match(told, named(of_mixed, data, tmp_path))


def test_the_figures_are_those_of_numpy_and_do_not_depend_on_the_rows_of_a_chunk(tmp_path):
    dense = RNG.standard_normal((500, 4)) * (RNG.random((500, 4)) < 0.3)
    dense[3, 1] = np.nan
    for X in (dense, SparseRows.of(dense)):
        found = ColumnMeans.of(X, np.arange(4))
        np.testing.assert_allclose(found.mean, np.nanmean(dense, axis=0), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(found.deviation, np.nanstd(dense, axis=0), rtol=1e-12)
        assert found.known.tolist() == [500, 499, 500, 500]
        sums = column_sums(X[:200]) + column_sums(X[200:])
        np.testing.assert_allclose(sums[1], np.nansum(dense, axis=0), rtol=1e-12)


def test_an_older_map_names_no_columns(fm, tmp_path):
    assert fm.feature_mean is not None
    old = replace(fm, feature_mean=replace(fm.feature_mean, columns=None))
    assert "columns" not in old.feature_mean.to_plain()
    with pytest.raises(GateError, match="an older kafeat kept no means of the columns .*: fit the map again"):
        go(old, OTHERS + SHIFT, tmp_path, drift_test=0.001)
