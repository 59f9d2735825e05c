"""Intervals of fitted models: their coverage on new rows, and what the fit has to hold out for it."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
import kafeat.jobs.fit.intervals
import kafeat.jobs.fit.predictor
from kafeat.errors import DataError, KafeatWarning, UsageError

FOURIER = [{"kind": "standardize"}, {"kind": "fourier", "n_components": 64}]
# Landmarks by the residuals of the label: these steps are fitted again in each fold.
BY_LABEL = [{"kind": "standardize"}, {"kind": "nystroem", "n_components": 64}]
LEVELS = (0.8, 0.9, 0.95)


def rows(n, seed):
    """Rows whose noise grows with their second column, their number, and one of three classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = 3.0 * np.sin(X[:, 0]) + (0.3 + np.abs(X[:, 1])) * rng.standard_normal(n)
    classes = np.array(["high", "low", "middle"])[(y < 1.0).astype(int) + ((y > -1.0) & (y < 1.0))]
    return X, y, classes


def fitted(steps, y_or_classes, n=1500, predictor="ridge", **more):
    X, y, classes = rows(n, 0)
    config = {"steps": [*steps, {"kind": predictor}], **more.pop("config", {})}
    return kafeat.fit(config, X, label=y if y_or_classes == "y" else classes, intervals=True, **more)


def tolerance(level, held_out, tested):
    """Four standard errors of a coverage: of the quantile of the rows held out, and of the rows tested."""
    return 4.0 * np.sqrt(level * (1.0 - level) * (1.0 / held_out + 1.0 / tested))


@pytest.mark.parametrize("steps", [FOURIER, BY_LABEL])
def test_intervals_cover_new_rows_as_often_as_is_said(steps):
    fm, (X, y, _) = fitted(steps, "y"), rows(4000, 1)
    for level in LEVELS:
        low, high = fm.predict_interval(X, level).T
        assert abs(((low <= y) & (y <= high)).mean() - level) <= tolerance(level, 1500, 4000) + 0.01


def test_widths_follow_the_noise_of_the_row():
    fm, (X, _, _) = fitted(FOURIER, "y"), rows(4000, 1)
    low, high = fm.predict_interval(X).T
    noise = 0.3 + np.abs(X[:, 1])
    assert np.corrcoef(high - low, noise)[0, 1] > 0.7
    np.testing.assert_allclose((low + high) / 2.0, fm.predict(X), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("steps", [FOURIER, BY_LABEL])
@pytest.mark.parametrize("predictor", ["ridge", "logistic"])
def test_sets_hold_the_class_at_least_as_often_as_is_said(steps, predictor):
    fm, (X, _, classes) = fitted(steps, "classes", predictor=predictor), rows(4000, 1)
    right = np.searchsorted(fm.classes.astype(str), classes)
    for level in LEVELS:
        held = fm.predict_interval(X, level)
        assert held[np.arange(4000), right].mean() >= level - tolerance(level, 1500, 4000)
        assert held[np.arange(4000), fm.predict_proba(X).argmax(axis=1)].all()


def test_labels_of_noise_show_that_steps_are_fitted_without_the_rows_that_are_scored():
    # Trees that have seen a label of pure noise repeat it: residuals of rows that they have seen would be far too
    # small. Honest ones are those of a constant, whose 90 % interval of a normal label is 2 · 1.645 wide.
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((400, 20)), rng.standard_normal(400)
    steps = [{"kind": "standardize"}, {"kind": "metric"}, {"kind": "nystroem", "n_components": 200}]
    config = {"steps": [*steps, {"kind": "ridge", "penalty": 1e-3}]}
    fm = kafeat.fit(config, X, label=y, intervals=True)
    new, truth = rng.standard_normal((4000, 20)), rng.standard_normal(4000)
    low, high = fm.predict_interval(new).T
    seen_low, seen_high = fm.predict_interval(X).T
    assert abs(((low <= truth) & (truth <= high)).mean() - 0.9) <= tolerance(0.9, 400, 4000) + 0.01
    assert ((seen_low <= y) & (y <= seen_high)).mean() > 0.98


def test_the_file_and_the_fit_are_the_same_for_any_number_of_threads(tmp_path):
    X, y, _ = rows(3000, 0)
    pq.write_table(pa.table({**{f"x{j}": X[:, j] for j in range(3)}, "y": y}), tmp_path / "data.parquet")
    for steps in (FOURIER, BY_LABEL):
        config = {"steps": [*steps, {"kind": "ridge"}], "chunk_rows": 500}
        data, asked = tmp_path / "data.parquet", {"label": "y", "intervals": True}
        one, two = (kafeat.fit(config, data, jobs=jobs, **asked) for jobs in (1, 2))
        assert one.dumps() == two.dumps()
        assert one.format == 4
        one.save(tmp_path / "m.joblib")
        back = kafeat.load(tmp_path / "m.joblib")
        np.testing.assert_array_equal(back.predict_interval(X[:50]), one.predict_interval(X[:50]))


@pytest.mark.parametrize("steps", [FOURIER, BY_LABEL])
def test_a_fit_with_intervals_predicts_the_same(steps):
    X, y, _ = rows(800, 0)
    config = {"steps": [*steps, {"kind": "ridge"}]}
    plain, with_intervals = (kafeat.fit(config, X, label=y, intervals=one) for one in (False, True))
    assert plain.format == 3
    np.testing.assert_array_equal(plain.predict(X), with_intervals.predict(X))


@pytest.mark.parametrize("steps", [FOURIER, BY_LABEL])
def test_whole_groups_are_held_out(steps):
    # Each group has a level of its own, which only rows of the group can tell. Rows of other groups cannot: their
    # intervals have to be as wide as the levels spread.
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(60), 20)
    marks, levels = rng.standard_normal((60, 3)), 5.0 * rng.standard_normal(60)
    X = marks[groups] + 0.01 * rng.standard_normal((1200, 3))
    table = pa.table({**{f"x{j}": X[:, j] for j in range(3)}, "g": groups, "y": levels[groups] + X[:, 0]})
    width = {}
    for split_by in (None, "group:g"):
        last = {"kind": "ridge", "penalty": 1e-6}
        config = {"steps": [*steps, last], "columns": {"include": ["x0", "x1", "x2"]}}
        fm = kafeat.fit(config, table, label="y", intervals=True, split_by=split_by)
        low, high = fm.predict_interval(rng.standard_normal((500, 3))).T
        width[split_by] = np.median(high - low)
    assert width["group:g"] > 3.0 * width[None]


def test_several_labels_have_an_interval_each():
    X, y, _ = rows(1000, 0)
    fm = kafeat.fit({"steps": [*FOURIER, "ridge"]}, X, label=np.column_stack([y, 10.0 * y]), intervals=True)
    ends = fm.predict_interval(X[:20])
    assert ends.shape == (20, 2, 2)
    # products in float32, of which ŷ ∓ q s is a difference
    np.testing.assert_allclose(ends[:, 1], 10.0 * ends[:, 0], rtol=0.0, atol=1e-4 * np.abs(ends[:, 1]).max())


def test_weights_of_zero_are_rows_that_are_not_there():
    X, y, _ = rows(1000, 0)
    weights = np.r_[np.ones(600), np.zeros(400)]
    names = [f"x{j}" for j in range(3)]
    wild = np.where(weights > 0.0, y, 1e6)
    table = pa.table({**{name: X[:, j] for j, name in enumerate(names)}, "y": wild, "w": weights})
    for steps in (FOURIER, BY_LABEL):
        config = {"steps": [*steps, {"kind": "ridge", "penalty": 1e-3}], "columns": {"include": names}}
        fm = kafeat.fit(config, table.slice(0, 1000), label="y", weight="w", intervals=True)
        low, high = fm.predict_interval(X[:600]).T
        assert np.median(high - low) < 20.0


@pytest.mark.parametrize("steps", [FOURIER, BY_LABEL])
def test_a_map_has_no_intervals_and_a_model_has_them_unasked(steps):
    X, y, _ = rows(200, 0)
    assert kafeat.fit({"steps": FOURIER}, X).predictor is None
    assert kafeat.fit({"steps": [*steps, "ridge"]}, X, label=y).predictor.intervals is not None


@pytest.mark.parametrize("level", [[0.8, 0.9], "0.9", None, 1.5])
def test_a_level_is_one_probability(level):
    fm = fitted(FOURIER, "y", n=200)
    with pytest.raises(UsageError, match="interval: expected (one|a) probability"):
        fm.predict_interval(rows(5, 1)[0], level)


@pytest.mark.parametrize("steps", [FOURIER, BY_LABEL])
def test_a_fit_does_not_fail_for_the_sake_of_intervals(steps, monkeypatch):
    X, y, _ = rows(200, 0)

    def fail(*_args):
        raise DataError("data.csv: no errors")

    for module in (kafeat.jobs.fit.intervals, kafeat.jobs.fit.predictor):
        monkeypatch.setattr(module, "fit_intervals", fail)
    with pytest.warns(KafeatWarning, match="the model has no intervals.*data.csv: no errors"):
        fm = kafeat.fit({"steps": [*steps, "ridge"]}, X, label=y)
    assert fm.predictor.intervals is None
