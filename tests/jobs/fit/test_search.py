"""Sizes chosen from the data: the smallest width that reaches its error, the γ that scores best, both recorded."""

import json

import numpy as np
import pytest

import kafeat
from kafeat.errors import ConfigError, DataError, UsageError
from kafeat.jobs.fit.search import _smallest

RNG = np.random.default_rng(0)
X = RNG.standard_normal((800, 5))
RING = (np.linalg.norm(X[:, :2], axis=1) > 1.2).astype(int)
FOURIER = {"kind": "fourier", "gamma": 0.1, "frequencies": "iid", "weights": "uniform"}
NYSTROEM = {"kind": "nystroem", "n_components": 60, "landmarks": "uniform"}


def test_target_error_is_reached_by_no_more_than_needed(run, tmp_path):
    fm = kafeat.fit({"steps": [{**FOURIER, "n_components": {"target_error": 0.08}}]}, X)
    (record,) = fm.provenance.searches
    assert record.parameter == "steps[0].n_components"
    assert record.chosen == fm.n_components
    curve = dict(zip(record.widths, record.errors, strict=True))
    assert curve[record.chosen] <= 0.08
    assert all(error > 0.08 for width, error in curve.items() if width < record.chosen)
    new = RNG.standard_normal((300, 5))
    Z = fm.transform(new).astype(float)
    K = fm.exact_kernel(new)
    # On other rows and with other draws: the error of iid features scatters by some ten per cent.
    assert np.linalg.norm(K - Z @ Z.T) / np.linalg.norm(K) < 0.08 * 1.3
    fm.save(tmp_path / "m.joblib")
    shown = run("inspect", tmp_path / "m.joblib").stdout
    assert f"steps[0].n_components: {fm.n_components} chosen for an error of 0.08" in shown
    as_json = run("inspect --json", tmp_path / "m.joblib").stdout
    assert json.loads(as_json)["fitted_from"]["searches"] == [record.model_dump(exclude_defaults=True)]
    assert kafeat.load(tmp_path / "m.joblib").n_components == fm.n_components


@pytest.mark.parametrize(("exact", "chosen"), [(100, 100), (64, 64), (3, 16), (700, 700)])
def test_the_smallest_width_of_a_power_law_is_found_by_interpolation(exact, chosen):
    assert _smallest(lambda width: (exact / width) ** 0.5 * 0.1, 0.1, 4096, "steps[0].n_components") == chosen


def test_a_target_out_of_reach_says_how_far_it_got():
    told = r"n_components: target_error: expected an error of at most 0.001, got 0.0125"
    with pytest.raises(DataError, match=told):
        _smallest(lambda width: 0.1 / (width / 16) ** 0.5, 0.001, 1024, "steps[0].n_components")


def test_validation_finds_the_gamma_that_separates():
    step = {"kind": "nystroem", "gamma": {"validate": [1e-12, 0.3, 1e4]}, "n_components": 100}
    fm = kafeat.fit({"steps": [step]}, X, label=RING)
    (record,) = fm.provenance.searches
    assert record.chosen == 0.3
    assert float(fm.chain.steps[0].state["gamma"]) == 0.3
    assert record.scores[1] > 0.85 > max(record.scores[0], record.scores[2])


def test_log_loss_is_that_of_calibrated_scores():
    """Uncalibrated, the shares of the classes alone would have a loss above that of a constant."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.where(np.sin(3.0 * X[:, 0]) > 0.7, "a", "b")
    nystroem = {"kind": "nystroem", "n_components": 64, "gamma": {"validate": [1e-9, 1.0]}}
    fm = kafeat.fit({"search": {"scoring": "log_loss"}, "steps": ["standardize", nystroem]}, X, y)
    (search,) = fm.provenance.searches
    share = float((y == "a").mean())
    constant = share * np.log(share) + (1.0 - share) * np.log(1.0 - share)
    assert search.chosen == 1.0
    assert search.scores[0] == pytest.approx(constant, abs=0.06)
    assert search.scores[1] > 0.5 * constant


def test_both_at_once_and_inside_of_a_union():
    maps = [{"steps": [{**FOURIER, "gamma": {"validate": [0.01, 0.5]}, "n_components": {"target_error": 0.2}}]},
            {"steps": [{**FOURIER, "n_components": 16}]}]  # fmt: skip
    fm = kafeat.fit({"steps": [{"kind": "union", "maps": maps}]}, X, label=RING)
    places = [record.parameter for record in fm.provenance.searches]
    assert places == ["steps[0].maps[0].steps[0].gamma", "steps[0].maps[0].steps[0].n_components"]
    assert fm.dumps() == kafeat.fit({"steps": [{"kind": "union", "maps": maps}]}, X, label=RING).dumps()


@pytest.mark.parametrize(("config", "message"), [
    ({"steps": [{"kind": "minmax"}, {**FOURIER, "gamma": {"validate": [1.0]}}]},
     r"steps\[1\].gamma: validate: expected a label to score by \(--label COL\)"),
    ({"steps": [{"kind": "union", "maps": [{"steps": [{**FOURIER, "gamma": {"validate": [1.0]}}]}]}]},
     r"steps\[0\].maps\[0\].steps\[0\].gamma: validate"),
    ({"steps": [{"kind": "nystroem", "landmarks": "dual_kmeans"}]},
     r"steps\[0\].landmarks: dual_kmeans: expected a label to choose rows by \(--label COL\), got none"),
    ({"steps": [{"kind": "union", "maps": [{"steps": [{"kind": "nystroem", "landmarks": "dual_weighted"}]}]}]},
     r"steps\[0\].maps\[0\].steps\[0\].landmarks: dual_weighted: expected a label"),
])  # fmt: skip
def test_a_missing_label_is_told_before_the_data_are_read(tmp_path, config, message):
    path = tmp_path / "bad.csv"
    path.write_text("a,b\n1,2\n3,not a number\n")
    with pytest.raises(UsageError, match=message):
        kafeat.fit(config, path)
    with pytest.raises(UsageError, match=message):
        kafeat.evaluate(config=config, data=str(path))


@pytest.mark.parametrize(("parameter", "value", "message"), [
    ("gamma", {"validate": []}, r"expected \{validate: \[values\]\}, got \{validate: an empty list\}"),
    ("gamma", {"valdate": [1.0]}, r"gamma: expected \{validate"),
    ("n_components", {"target_error": 2}, r"\{target_error: a number above 0 and below 1\}"),
    ("n_components", {}, r"n_components: expected \{target_error"),
])  # fmt: skip
def test_mistakes(parameter, value, message):
    with pytest.raises(ConfigError, match=message):
        kafeat.fit({"steps": [{**FOURIER, parameter: value}]}, X)


def test_a_row_that_is_refused_is_named_as_it_stands_in_the_data():
    """And not as in the part of the sample that a search looks at."""
    rows = np.abs(X).copy()
    rows[701, 3] = -2.0
    step = {"kind": "nystroem", "kernel": "chi2", "n_components": {"target_error": 0.5}}
    with pytest.raises(DataError, match=r"row 702 .*column 'c3': expected a value of at least 0, got -2"):
        kafeat.fit({"steps": [step]}, rows)


def test_a_value_that_the_rows_do_not_go_with_is_named():
    step = {**FOURIER, "gamma": {"validate": [0.1, 1e300]}, "n_components": 16}
    told = r"row \d+ .*: with steps\[0\].gamma = 1e\+300: expected features that float64"
    with pytest.raises(DataError, match=told):
        kafeat.fit({"steps": [step]}, X * 1e170, label=RING)


def test_a_search_without_a_score_is_told():
    labels = np.full(len(X), 0.25)
    labels[np.argsort(X[:, 0])[:3]] += np.arange(3)
    step = {**FOURIER, "gamma": {"validate": [0.1, 1.0]}, "n_components": 16}
    told = r"gamma = 0.1: validate: expected a score for every value, got none: labels must"
    with pytest.raises(DataError, match=told):
        for seed in range(20):  # held out are rows of one label, sooner or later
            kafeat.fit({"steps": [step], "seed": seed}, X[:40], label=np.r_[labels[:37], 1.5, 0.25, 0.25])


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_sizes_are_found_at_any_scale(scale):
    step = {**FOURIER, "gamma": {"validate": [0.3 / scale**2]}, "n_components": {"target_error": 0.3}}
    chosen = [
        kafeat.fit({"steps": [one]}, X[:300] * unit, label=RING[:300]).n_components
        for one, unit in ((step, scale), ({**step, "gamma": 0.3}, 1.0))
    ]
    assert abs(np.log2(chosen[0] / chosen[1])) <= 1  # the draws are other ones


def test_parameters_of_several_steps_are_chosen_together():
    gammas = {"validate": ["0.3*median", "1e4*median"]}
    kernels = {"kernel": {"validate": ["linear", "rbf"]}, "gamma": gammas}
    steps = [{"kind": "pca", "n_components": {"validate": [None, 1]}}, {**NYSTROEM, **kernels}]
    fm = kafeat.fit({"steps": steps}, X, label=RING)
    chosen = {record.parameter: record.chosen for record in fm.provenance.searches}
    assert [*chosen] == ["steps[0].n_components", "steps[1].kernel", "steps[1].gamma"]
    assert [*chosen.values()] == [None, "rbf", "0.3*median"]
    for record in fm.provenance.searches:
        assert record.scores[record.values.index(record.chosen)] == max(record.scores)
    median = kafeat.fit({"steps": ["pca", {"kind": "nystroem", "n_components": 60}]}, X)
    ratio = float(fm.chain.steps[1].state["gamma"] / median.chain.steps[1].state["gamma"])
    assert ratio == pytest.approx(0.3, rel=0.05)  # the median of other random pairs
    assert kafeat.fit({"steps": steps}, X, label=RING).dumps() == fm.dumps()


def test_by_coordinate_finds_what_every_combination_finds():
    gammas = {"validate": [f"{m}*median" for m in (0.01, 0.3, 1, 1e3)]}
    step = {**NYSTROEM, "gamma": gammas, "n_components": {"validate": [8, 40, 80]}}
    full, by_coordinate = (
        kafeat.fit({"steps": [step], "search": {"method": method}}, X, label=RING).provenance.searches
        for method in ("full", "coordinate")
    )
    assert [one.chosen for one in full] == [one.chosen for one in by_coordinate]


def test_folds_and_scoring_are_those_of_the_config():
    step = {**NYSTROEM, "gamma": {"validate": [1e-12, 0.3]}}
    options = {"folds": 3, "scoring": "auc", "rows": 300}
    fm = kafeat.fit({"steps": [step], "search": options}, X, label=RING)
    (record,) = fm.provenance.searches
    assert record.chosen == 0.3
    assert record.scores[1] > 0.95  # by accuracy it is below
    once = kafeat.fit({"steps": [step], "search": {"scoring": "auc", "rows": 300}}, X, label=RING)
    assert once.provenance.searches[0].scores != record.scores
    with pytest.raises(DataError, match="scoring: expected accuracy or .* for a label of classes, got r2"):
        kafeat.fit({"steps": [step], "search": {"scoring": "r2"}}, X, label=RING)


def test_several_labels_of_a_row_are_numbers_to_predict():
    several = np.column_stack([X[:, 0] ** 2, np.sin(2.0 * X[:, 1]), X[:, 2]])
    steps = [
        {"kind": "metric", "alpha": {"validate": [0.5, 1.0]}},
        {"kind": "nystroem", "n_components": 60},
        {"kind": "fourier", "n_components": 60, "frequencies": "supervised"},
    ]
    fm = kafeat.fit({"steps": steps}, X, several)
    assert fm.chain.steps[1].step.landmarks == "residual"
    assert set(np.argsort(fm.chain.steps[0].state["importance"])[:2]) == {3, 4}
    told = "label: expected one label per row, got 3: choose landmarks: residual for several"
    with pytest.raises(DataError, match=told):
        weighted = {"kind": "nystroem", "n_components": 9, "landmarks": "dual_weighted"}
        kafeat.fit({"steps": [weighted]}, X, several)
    told = r"label: expected an array of shape \(800,\), or \(800, k\) of numbers"
    with pytest.raises(UsageError, match=told):
        kafeat.fit({"steps": steps}, X, several[:, None])
    several[7, 1] = np.nan
    with pytest.raises(DataError, match="label: row 8 .*: expected finite numbers"):
        kafeat.fit({"steps": steps}, X, several)


def test_a_width_that_the_rows_held_in_have_not_is_no_hindrance():
    steps = [{"kind": "nystroem", "n_components": 170, "n_landmarks": 180, "gamma": {"validate": [0.1, 1.0]}}]
    fm = kafeat.fit({"steps": steps, "search": {"folds": 2}}, X[:200], RING[:200])
    assert fm.n_components == 170
    assert fm.chain.steps[0].state["landmarks"].shape == (180, 5)
    with pytest.raises(DataError, match=r"at least as many rows as landmarks \(180\), got 150"):
        kafeat.fit({"steps": steps}, X[:150], RING[:150])
