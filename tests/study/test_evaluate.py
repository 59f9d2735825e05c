"""The whole evaluation through its Python form: records, held-out rows, comparisons, gates."""

import json
import re
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import DataError, GateError, UsageError
from kafeat.jobs.fit.reread import rereadable
from kafeat.maths.scoring import scores_of
from kafeat.study.candidates import list_candidates
from kafeat.study.evaluate import gate
from kafeat.study.measure import choose_rows, compared_rows
from kafeat.study.recommendation import answer, choose, recommend
from kafeat.study.records import Estimate, Report
from kafeat.study.request import EvaluationRequest
from kafeat.study.summary import summarize
from tests.study.summaries import WHICH, record_of, summary_of
from tests.zygote import ROOT

STEP = {"kind": "fourier", "n_components": 32, "frequencies": "iid", "weights": "uniform", "gamma": 0.5}
CONFIG = {"fit_rows": "all", "steps": [STEP]}
OF_RINGS = {**CONFIG, "columns": {"exclude": ["part"]}}
OF_COLUMNS = {"columns": {"include": ["a", "b"]}, "steps": [STEP]}
FEW = {"exact_rows": 60, "rows": 50, "jobs": 1}
"""Of the exact machine and the errors, where they are not the point: they are most of the time."""


@pytest.fixture(scope="module")
def rings(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (900, 2)).astype("f4")
    y = (np.hypot(*X.T) > 1.5).astype(int)
    part = np.where(np.arange(900) % 3, "train", "test")
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": y, "part": part})
    path = tmp_path_factory.mktemp("rings") / "rings.parquet"
    pq.write_table(table, path)
    return table, str(path)


@pytest.mark.parametrize("split", [None, "part"])
def test_kernels_of_a_config_are_compared_on_rows_that_it_was_not_fitted_on(rings, split):
    request = EvaluationRequest(label=("y",), split=split, rows=100, jobs=1)
    (candidate,) = list_candidates([], [CONFIG], [], 1)
    with rereadable(rings[0], None) as source:
        (rows,) = choose_rows(source, request, [candidate], 1)
    assert rows.test[compared_rows(rows, candidate, 100)].all()


@pytest.fixture(scope="module")
def compared(rings):
    return kafeat.evaluate(
        data=rings[1], label="y", config=OF_RINGS, sweep=["n_components=4,16,64"], seeds=2, exact_rows=300, rows=100
    )  # fmt: skip


def test_one_record_for_each_map_setting_and_seed(compared):
    records = compared["records"]
    settings = [({"n_components": n}, seed) for n in (4, 16, 64) for seed in (0, 1)]
    assert [(r["setting"], r["seed"]) for r in records] == settings
    for record in records:
        assert record["rows"] == 100
        assert record["rows_seen_in_fit"] == 0
        assert (record["rows_train"], record["rows_test"]) == (720, 180)
        assert record["rows_exact"] == 300
        assert record["bytes_per_row"] == 4 * record["n_components"]
        for key in ("fit_seconds", "transform_seconds", "exact_seconds", "relative_frobenius", "score_raw"):
            assert record[key] >= 0
    json.dumps(compared, allow_nan=False)


def test_costs_count_everything_and_the_search_apart(compared):
    for record in compared["records"]:
        assert record["total_seconds_raw"] >= record["learn_seconds_raw"] > 0
        parts = (
            record[f"{part}_seconds{of}"]
            for part, of in (("fit", ""), ("transform", "_map"), ("learn", "_map"))
        )
        assert record["total_seconds_map"] == pytest.approx(sum(parts))
        exact = record["kernel_seconds_exact"] + record["learn_seconds_exact"]
        assert record["total_seconds_exact"] == pytest.approx(exact)
        fit, same_rows = record["fit_seconds"], record["total_seconds_map_exact_rows"]
        assert same_rows > fit
        D, rows = record["n_components"], record["rows_exact"]
        assert record["matrix_bytes_map"] == 720 * 4 * D
        assert record["matrix_bytes_exact"] == 8 * rows**2
        # The kernel, and the copies of it that are centred and factored.
        for which in ("raw", "map", "exact"):
            assert record[f"search_seconds_{which}"] > 0
            assert record[f"predict_seconds_{which}"] > 0


def test_a_penalty_is_used_for_all_and_nothing_is_searched(rings):
    record = kafeat.evaluate(data=rings[1], label="y", config=OF_RINGS, penalty=0.25, **FEW)
    for which in ("raw", "map", "exact"):
        assert record[f"penalty_{which}"] == pytest.approx(0.25)
        assert record[f"search_seconds_{which}"] == 0.0
    for penalty in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="penalty: expected a number above 0"):
            kafeat.evaluate(data=rings[1], label="y", config=CONFIG, penalty=penalty)


def documented_keys():
    """The keys in the list of docs/reference/json.md; … stands for what was scored."""
    page = (ROOT / "docs/reference/json.md").read_text()
    section = page.split("**Keys of a record**")[1].split("\n## ")[0]
    rows = re.findall(r"^- (`.*?): ", section, re.MULTILINE)
    keys = {key for row in rows for key in re.findall(r"`(\w+…?)`", row)} - {"_model"}
    of_linear = {f"{key}_boosting" for key in ("nonzero", "penalty", "converged")}
    of_constant = {f"{score.name}_constant" for score in scores_of("classification")}
    every = {key.replace("…", which) for key in keys for which in ("raw", "map", "exact", "boosting")}
    return (every | of_constant) - of_linear


def test_records_and_summaries_have_the_documented_keys(compared):
    absent = {
        "distortion_max", "distortion_mean", "distortion_bound",  # only of projections
        "kernel_pca_error_least", "kernel_pca_spectrum", "kernel_pca_subspace",  # only of pca after a map
        "closed_form_error_max", "closed_form_error_mean",  # only of homogeneous maps
        # only of scores without a formula of it
        "score_uncertainty_raw", "score_uncertainty_map", "score_uncertainty_exact", "score_uncertainty_boosting",
        "score_uncertainty_model", "score_uncertainty_map_validation",
        "boosting_left_out",  # only without boosting
        "importance", "importance_error",  # only with a report
        "parts",  # only of unions
        # only of maps that end in a predictor
        "score_model", "calibration_error_model", "equivalent_model", "test_rows_seen_model",
        "coverage_model", "held_out_model",  # only of models with intervals, on all rows
    }  # fmt: skip
    absent |= {f"{score.name}_{which}" for score in scores_of("regression") for which in WHICH}
    for record in compared["records"]:
        assert set(record) == documented_keys() - absent
    for summary in compared["summary"]:
        assert set(summary) - {"seeds", "splits"} <= set(record)
        means = [value for value in summary.values() if isinstance(value, dict) and "mean" in value]
        assert len(means) > 50
        assert all(set(value) == set(Estimate.__annotations__) for value in means)
    assert set(compared) == {"records", "summary", "recommendation", "score_of_choice"}


def test_more_columns_are_nearer_and_the_map_sees_the_ring(compared):
    errors = [entry["relative_frobenius"]["mean"] for entry in compared["summary"]]
    assert errors == sorted(errors, reverse=True)
    last = compared["summary"][-1]
    assert last["score_map"]["mean"] > last["score_raw"]["mean"] + 0.2
    assert last["score_exact"]["mean"] > 0.9
    assert last["log_loss_map"]["mean"] is None  # without probabilities


def test_a_model_says_how_many_of_the_rows_its_fit_saw(rings):
    table, path = rings
    for fit_rows, rows, seen in ((500, 400, 0), (500, 500, 100), ("all", 50, 50)):
        fm = kafeat.fit({**OF_COLUMNS, "fit_rows": fit_rows}, path)
        assert kafeat.evaluate(fm, path, rows=rows)["rows_seen_in_fit"] == seen
    assert kafeat.evaluate(fm, table.slice(1))["rows_seen_in_fit"] is None


def test_a_single_record_stands_at_the_top_too(rings):
    report = kafeat.evaluate(kafeat.fit(OF_COLUMNS, rings[1]), rings[1], label="y", **FEW)
    assert report["records"] == [{key: report[key] for key in report["records"][0]}]
    assert report["recommendation"] is None
    assert report["fit_seconds"] is None


def test_several_models_meet_the_same_rows(rings):
    maps = [kafeat.fit({**OF_COLUMNS, "seed": seed}, rings[1]) for seed in (1, 2)]
    report = kafeat.evaluate(maps, rings[1], label="y", **FEW)
    one, other = report["records"]
    assert [one["map"], other["map"]] == ["map 1", "map 2"]
    assert one["score_raw"] == other["score_raw"]
    assert one["score_exact"] == other["score_exact"]


def test_another_kernel_is_another_exact_machine(rings):
    sweep = {"gamma": [1e-4, 2.0]}
    report = kafeat.evaluate(data=rings[1], label="y", config=OF_RINGS, sweep=sweep, **FEW)
    flat, steep = report["records"]
    assert steep["penalty_exact"] != flat["penalty_exact"]
    assert steep["score_raw"] == flat["score_raw"]


def test_another_dtype_of_the_output_shows_what_it_costs(rings):
    asked = {"data": rings[1], "label": "y", "config": OF_RINGS, **FEW}
    wide, narrow = (kafeat.evaluate(**asked, output_dtype=dtype) for dtype in (None, "float16"))
    assert (wide["dtype"], narrow["dtype"]) == ("float32", "float16")
    assert narrow["bytes_per_row"] * 2 == wide["bytes_per_row"] == 32 * 4
    assert 0 < abs(narrow["relative_frobenius"] - wide["relative_frobenius"]) < 1e-3
    assert narrow["score_exact"] == wide["score_exact"]


def test_projections_tell_their_distortion(rings):
    fm = kafeat.fit({"columns": {"include": ["a", "b"]}, "steps": [{"kind": "projection", "n_components": 3000}]},
                    rings[1])  # fmt: skip
    report = kafeat.evaluate(fm, rings[1], rows=50)
    assert 0 < report["distortion_mean"] < report["distortion_max"] < report["distortion_bound"] < 1
    assert "distortion_max" not in kafeat.evaluate(kafeat.fit({"steps": [STEP]}, rings[0].select(["a", "b"])),
                                                   rings[0].select(["a", "b"]))  # fmt: skip


OF_A_MODEL = [
    ({"label": "a"}, DataError, "label 'a': expected a column that is not a feature"),
    ({"label": "y", "split": "y"}, UsageError, "another column than the label"),
    ({"split": "y"}, DataError, "expected train or test"),
    ({"sweep": ["n_components=2,4"]}, UsageError, "got a model, which is fitted already"),
    ({"seeds": 3}, UsageError, "got a model, which is fitted already"),
    ({"label": "y", "learner": "tree"}, UsageError, "expected one of ridge"),
    ({"splits": 2}, UsageError, "--splits: expected recipes .*got the model map 1"),
]
SWEPT = "n_components: expected a parameter to be swept once,"
OF_A_RECIPE = [
    ({"scoring": "r2"}, DataError, "scoring: expected accuracy or .* for a label of classes, got r2"),
    ({"splits": 0}, UsageError, "splits: expected a whole number from 1 to 100, got 0"),
    ({"splits": 1_000_000}, UsageError, "splits: expected a whole number from 1 to 100, got 1000000"),
    ({"splits": 2, "split": "part"}, UsageError, "--splits: expected no --split with it, got 'part'"),
    ({"sweep": ["n_components=8,8"]}, UsageError, "n_components: expected every value once, got 8, 8"),
    ({"sweep": ["n_components=8", "n_components=16"]}, UsageError, SWEPT),
    ({"sweep": ["n_components=8", "steps[0].n_components=16"]}, UsageError, SWEPT),
    (
        {"sweep": ["kind=nystroem"]},
        UsageError,
        "kind: expected a parameter, got the kind: give a --config for each",
    ),
    (
        {"sweep": ["gamma={validate: [0.1]}"]},
        UsageError,
        "expected numbers, true, false or words, got a list or a",
    ),
]


@pytest.mark.parametrize("fitted", [True, False])
def test_what_cannot_be_asked(rings, fitted):
    recipe = {"config": OF_COLUMNS, "label": "y"}
    asked = {"model": kafeat.fit(OF_COLUMNS, rings[1])} if fitted else recipe
    for options, error, message in OF_A_MODEL if fitted else OF_A_RECIPE:
        with pytest.raises(error, match=message):
            kafeat.evaluate(data=rings[1], **asked, **options)


def test_nothing_to_evaluate(rings):
    with pytest.raises(UsageError, match="expected a model or a config"):
        kafeat.evaluate(data=rings[1])
    with pytest.raises(UsageError, match="expected data, got none"):
        kafeat.evaluate(config=CONFIG)


def test_label_and_split_are_no_features_of_a_recipe(rings):
    for name, options in (("y", {"label": "y"}), ("part", {"label": "y", "split": "part"})):
        config = {"columns": {"include": ["a", name]}, "steps": [STEP]}
        with pytest.raises(DataError, match=f"label '{name}': expected a column that is not a feature"):
            kafeat.evaluate(data=rings[1], config=config, **options)
    # Without a list, neither is taken.
    report = kafeat.evaluate(data=rings[0], config={"steps": [STEP]}, label="y", split="part", **FEW)
    assert report["n_features_in"] == 2


def test_gates(compared):
    gate(compared.report, max_error=10.0, min_score=0.0)
    with pytest.raises(GateError, match=r"relative Frobenius error: expected at most 0.0001, got 0\."):
        gate(compared.report, max_error=1e-4, min_score=None)
    with pytest.raises(GateError, match="score of the features: expected at least 1.1, got 0") as caught:
        gate(compared.report, None, 1.1)
    assert len(str(caught.value).splitlines()) == 3


def entry(name, D, score, error=0.0, seconds=1.0, **more):
    figure = {"mean": score, "standard_error": error}
    return {"map": name, "setting": {}, "n_components": D, "bytes_per_row": 4 * D, "rows": 10, "rows_test": 1000,
            "task": "classification", "score_map": figure, "score_raw": {"mean": 0.5},
            "transform_seconds": {"mean": seconds}, **more}  # fmt: skip


def test_the_recommendation_is_the_cheapest_that_is_as_good_as_the_best():
    entries = [entry("small", 16, 0.80), entry("middle", 64, 0.946), entry("large", 512, 0.95)]
    said = recommend(list(map(summary_of, entries)))
    # An accuracy of 0.95 on 1,000 rows is uncertain by √(0.95·0.05/1000) = 0.0069.
    assert said.startswith("take middle: accuracy 0.9460, within 0.0069 ")
    assert "64 columns in place of 512" in said
    entries[1]["score_map"]["mean"] = 0.94
    assert recommend(list(map(summary_of, entries))).startswith(
        "take large: accuracy 0.9500, and nothing with fewer columns"
    )
    assert recommend([summary_of(entries[0])]) is None
    level = [entry("slow", 64, 0.95, seconds=2.0), entry("fast", 64, 0.948, seconds=1.0)]
    assert recommend(list(map(summary_of, level))).startswith("take slow: accuracy 0.9500, and nothing")


def test_the_answer_says_what_is_better_than_the_map():
    def said(map_score, raw, boosting, rows=1000, constant=0.5):
        one = {
            **entry("m", 64, map_score), "rows_test": rows, "splits": 1, "rows_train": 4000,
            **{f"score_{which}": {"mean": score, "standard_error": None}
               for which, score in (("raw", raw), ("boosting", boosting), ("constant", constant))},
        }  # fmt: skip
        summaries = [summary_of(one)]
        return answer(Report(records=[], summaries=summaries, recommendation=None, score_of_choice=None))

    # Two standard errors of the difference of accuracies near 0.9 on 1,000 rows are 2·√(2·0.09/1000) = 0.027.
    best = "m: accuracy 0.9000 ± 0.009 on 1,000 test rows, better than a constant (0.5000)"
    others = [
        "the raw columns (0.9500) are better, beyond noise",
        "gradient boosting (0.8900) is as good, within noise",
    ]
    assert said(0.9, 0.95, 0.89) == [best, *others]
    assert said(0.9, 0.8, 0.95)[1:] == ["gradient boosting (0.9500) is better, beyond noise"]
    # of 100 rows, ten are within noise
    assert said(0.9, 0.95, 0.89, rows=100)[1:] == [
        "gradient boosting (0.8900) and the raw columns (0.9500) are as good, within noise"
    ]
    better = "the raw columns (0.4500) and a constant (0.5000) are better, beyond noise"
    assert said(0.4, 0.45, 0.41)[1] == better
    assert said(0.9, 0.8, 0.8, constant=0.7)[-1].startswith("one class has 70% of these rows")


def test_several_splits_score_at_most_all_rows():
    rows = {"rows_train": 60, "rows_test": 40, "splits": 5}
    entries = [entry("small", 16, 0.88, **rows), entry("large", 512, 0.9, **rows)]
    said = recommend(list(map(summary_of, entries)))
    # Five splits score 200 rows, but there are only 100, and √(0.9·0.1/100) = 0.03.
    assert said.startswith("take small: accuracy 0.8800, within 0.0300 (its uncertainty) of the best, large")


def test_errors_against_different_kernels_are_not_ranked():
    def one(name, D, error, mean):
        return {**entry(name, D, None), "score_map": None, "relative_frobenius": {"mean": error, "standard_error": 0.0},
                "kernel_mean": {"mean": mean}}  # fmt: skip

    same = [one("a", 16, 0.2, 0.50), one("b", 64, 0.1, 0.52)]
    other = [one("a", 16, 0.0, 1.0), one("b", 64, 0.1, 0.3)]
    for entries in (same, other):
        for summary in entries:
            del summary["score_map"]
    assert recommend(list(map(summary_of, same))).startswith("take b: relative error 0.1000")
    assert recommend(list(map(summary_of, other))).startswith(
        "no recommendation: the maps stand for different kernels"
    )


def summarized(*figures):
    of_map = {"map": "m", "setting": {}, "n_components": 2, "bytes_per_row": 8, "rows": 5}
    return summarize([record_of({**of_map, **one}) for one in figures])[0].flat()


def test_equal_figures_have_no_uncertainty_and_one_has_none():
    score = 342 / 359
    assert np.std([score] * 3, ddof=1) > 0.0  # what rounding of the mean makes of them
    found = summarized(*({"score_raw": score, "relative_frobenius": error} for error in (0.1, 0.2, 0.3)))
    assert found["score_raw"] == {"mean": score, "standard_error": 0.0, "deviation": 0.0}
    assert found["relative_frobenius"]["standard_error"] == pytest.approx(0.1 / np.sqrt(3))
    alone = {"mean": 0.5, "standard_error": None, "deviation": None}
    assert summarized({"relative_frobenius": 0.5})["relative_frobenius"] == alone


@pytest.fixture(scope="module")
def wave(tmp_path_factory):
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (400, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + rng.normal(size=400) / 10
    return pa.table({"a": X[:, 0], "b": X[:, 1], "y": y})


@pytest.fixture(scope="module")
def learned_from(wave):
    """The scores of a learner on labels in other units."""

    @cache
    def learned_from(learner, factor, offset):
        config = {"fit_rows": "all", "steps": [{**STEP, "n_components": 64}]}
        moved = wave.set_column(2, "y", pa.array(wave["y"].to_numpy() * factor + offset))
        return kafeat.evaluate(data=moved, config=config, label="y", learner=learner, exact_rows=200, rows=50)

    return learned_from


@pytest.mark.sampled
@pytest.mark.parametrize("learner", ["ridge", "linear_svc", "dual_l1", "sgd"])
@pytest.mark.parametrize("units", [(1e6, 0.0), (1.0, 1000.0), (1e-6, -3.0e-4), (1e200, 0.0)])
def test_scores_do_not_depend_on_the_units_of_the_label(learned_from, learner, units):
    one, other = learned_from(learner, 1.0, 0.0), learned_from(learner, *units)
    for key in ("score_raw", "score_map", "score_exact", "score_map_exact_rows"):
        assert other[key] == pytest.approx(one[key], abs=2e-3), key
    assert one["score_exact"] > 0.9


@pytest.mark.sampled
@pytest.mark.parametrize("learner", ["ridge", "linear_svc", "linear_svc_l1", "logistic", "sgd"])
def test_a_class_of_one_row_is_no_fault(rings, learner):
    table, _ = rings
    label = np.where(np.arange(table.num_rows) == 17, "rare", "usual")
    config = {"fit_rows": "all", "steps": [STEP]}
    found = kafeat.evaluate(
        data=table.set_column(2, "y", pa.array(label)).drop(["part"]), config=config, label="y", learner=learner, **FEW
    )  # fmt: skip
    assert found["score_map"] > 0.99
    assert found["score_exact"] > 0.99


def test_features_that_are_all_alike_predict_the_largest_class(rings):
    table, _ = rings
    flat = pa.table({"a": np.ones(900), "b": np.ones(900), "y": table["y"]})
    found = kafeat.evaluate(data=flat, config=CONFIG, label="y", **FEW)
    largest = found["score_raw"]
    assert largest > 0.5
    assert found["score_map"] == found["score_exact"] == largest


def test_what_the_features_lose_shows_on_the_rows_of_the_exact_machine(wave):
    config = {"fit_rows": "all", "steps": [{**STEP, "n_components": 512}]}
    found = kafeat.evaluate(data=wave, config=config, label="y", exact_rows=100, rows=50)
    # many columns: nearly the kernel itself, on the same rows; with all of them it is better
    assert found["score_map_exact_rows"] == pytest.approx(found["score_exact"], abs=0.02)
    assert found["score_map"] > found["score_map_exact_rows"]


@pytest.mark.parametrize("n", [2, 3, 4])
def test_too_few_rows(rings, n):
    with pytest.raises(DataError, match=f"expected at least 5 rows to evaluate on, got {n}"):
        kafeat.evaluate(data=rings[0].slice(0, n), label="y", config=CONFIG)


def test_classes_that_no_training_row_has(rings):
    table, _ = rings
    names = pa.array([f"row {i}" for i in range(900)])
    told = "label 'y': expected test rows with classes that training rows have"
    with pytest.raises(DataError, match=told):
        kafeat.evaluate(data=table.set_column(2, "y", names).drop(["part"]), label="y", config=CONFIG)


def linear(X, Y):
    return X @ Y.T


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize(
    "more", [{"kernel": linear}, {"landmarks": {"given": np.random.default_rng(1).normal(size=(8, 2))}}]
)
def test_recipes_that_only_python_can_give_are_evaluated(rings, more, inner):
    step = {"kind": "nystroem", "n_components": 8, **more}
    step = {"kind": "union", "maps": [{"steps": [step]}]} if inner else step
    table = rings[0].select(["a", "b"])
    for config in ({"steps": [step]}, kafeat.config.load_config({"steps": [step]})):
        found = kafeat.evaluate(data=table, config=config, rows=50)
        assert found["n_components"] == 8
        both = kafeat.evaluate(data=table, config=config, rows=50, sweep={"n_components": [2, 4]})
        assert [record["n_components"] for record in both["records"]] == [2, 4]
        # the exact kernel does not depend on the number of features
        assert both["records"][0]["kernel_mean"] == found["kernel_mean"]


@pytest.mark.sampled
@pytest.mark.parametrize("learner", ["ridge", "linear_svc", "sgd"])
@pytest.mark.parametrize("size", [1e25, 1e-200, 1e-25, 1e140])
def test_figures_at_any_scale(rings, size, learner):
    """Maps that do not mind the scale score as they do elsewhere; nothing in the JSON is no number."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (200, 2))
    table = pa.table({"a": X[:, 0] * size, "b": X[:, 1] * size, "y": (np.hypot(*X.T) > 1.5).astype(int)})
    steps = [{"kind": "minmax"}, {**STEP, "gamma": 2.0}]
    config = {"steps": steps, "dtype": "float64"}
    report = kafeat.evaluate(data=table, label="y", config=config, learner=learner, **FEW)
    json.dumps(report, allow_nan=False)
    assert report["score_map"] > 0.8  # the larger class has 0.56
    assert report["score_raw"] is not None


@pytest.mark.parametrize("learner", ["linear_svc", "logistic"])
def test_features_that_a_learner_cannot_hold_are_an_error_of_the_data(rings, learner):
    X = np.random.default_rng(0).standard_normal((100, 3)) * 1e60
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": (X[:, 0] > 0).astype(int)})
    config = {"steps": [{"kind": "projection", "n_components": 2}], "dtype": "float64"}
    with pytest.raises(DataError, match="learner: expected features that float32 can hold.*scale the input"):
        kafeat.evaluate(data=table, label="y", config=config, learner=learner)


def test_the_setting_that_the_data_do_not_go_with_is_named(rings):
    told = r"gamma=1e\+200 seed=0: .*fourier: expected a state that float32 can hold"
    with pytest.raises(DataError, match=told):
        kafeat.evaluate(data=rings[1], label="y", config=OF_RINGS, sweep=["gamma=0.5,1e200"], **FEW)


@pytest.mark.parametrize("option", ["label", "split"])
def test_a_label_is_the_name_of_a_column(option) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    for data in (X, pa.table({"a": X[:, 0], "b": X[:, 1]})):
        told = f"^{option}: expected the name of a column of the data, got ndarray"
        with pytest.raises(UsageError, match=told):
            kafeat.evaluate(config=CONFIG, data=data, **{option: X[:, 0]})


def test_a_recipe_is_no_model() -> None:
    told = "expected a fitted map or its path, got dict; a recipe is given as config="
    with pytest.raises(UsageError, match=told):
        kafeat.evaluate(CONFIG, np.eye(60))


def test_the_recommendation_is_chosen_on_other_rows_than_those_reported():
    """Other labels of the test rows change the scores that are reported, and not the choice."""
    rng = np.random.default_rng(0)
    X, part = rng.normal(size=(400, 2)), np.where(np.arange(400) % 4 == 0, "test", "train")
    y = np.sin(2.0 * X[:, 0])
    noise = np.where(part == "test", rng.normal(size=400), y)
    steps = [{"kind": "fourier", "n_components": 64}]
    true, wrong = (
        kafeat.evaluate(
            data=pa.table({"a": X[:, 0], "b": X[:, 1], "y": labels, "part": part}), label="y", split="part",
            config={"steps": steps}, sweep={"gamma": [0.01, 1.0, 100.0]}, **FEW,
        )
        for labels in (y, noise)
    )  # fmt: skip
    for result in (true, wrong):
        assert choose(result.report.summaries).about["setting"] == {"gamma": 1.0}
        assert "on 75 rows kept to choose by" in result["recommendation"]
    kept, other = (result["records"][1] for result in (true, wrong))
    # Labels are scaled by the spread of all of them, which changes the rounding.
    assert kept["score_map_validation"] == pytest.approx(other["score_map_validation"], rel=1e-9)
    assert kept["score_map"] > 0.9 > 0.1 > other["score_map"]
    assert kept["rows_validation"] == kept["rows_train"] // 4
    told = f"on the 100 test rows, which had no part in this, {kept['score_map']:.4f}"
    assert told in true["recommendation"]


def test_recipes_are_not_fitted_on_the_rows_to_choose_by(monkeypatch):
    """A map that learns from the label would be preferred for having seen their labels."""
    from kafeat.study import candidates

    X = np.random.default_rng(0).normal(size=(200, 2))
    table, held = pa.table({"a": X[:, 0], "b": X[:, 1], "y": X[:, 0]}), []
    inner = candidates.read_job

    def watched(config, rows, *others):
        held.append(~rows.chosen(np.arange(200), None))
        return inner(config, rows, *others)

    monkeypatch.setattr(candidates, "read_job", watched)
    config = {"steps": [{"kind": "fourier", "frequencies": "iid", "n_components": 4}]}
    several = kafeat.evaluate(data=table, label="y", config=config, sweep={"n_components": [4, 8]}, **FEW)
    one = kafeat.evaluate(data=table, label="y", config=config, **FEW)
    record = several["records"][0]
    assert [int(rows.sum()) for rows in held] == [record["rows_test"] + record["rows_validation"]] * 2 + [40]
    assert "rows_validation" not in one


def test_scores_to_choose_by_are_those_of_all_labels_at_the_given_penalty():
    X = np.random.default_rng(0).normal(size=(200, 2))
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": X[:, 0], "z": 5.0 * X[:, 1]})
    record = kafeat.evaluate(
        data=table, label=["y", "z"], config={"steps": [{"kind": "fourier"}]}, sweep={"n_components": [16, 32]},
        rows=20, exact_rows=40, jobs=1, penalty=1e9,
    )["records"][0]  # fmt: skip
    assert record["label"] == ["y", "z"]
    for which in ("raw", "map"):  # with the penalty of a search they are above 0.5
        assert record[f"score_{which}_validation"] < 0.1


@pytest.fixture(scope="module")
def over_splits(rings):
    return kafeat.evaluate(
        data=rings[1], label="y", config=OF_RINGS, sweep={"n_components": [2, 32]}, splits=3, **FEW,
        scoring=["auc", "error_rate"],
    )  # fmt: skip


def test_each_split_is_an_evaluation_of_its_own(rings, over_splits):
    """It is that of the recipe with the seed of the split, where no randomness of the map is left."""
    seeds = [record["split_seed"] for record in over_splits["records"]]
    assert seeds == [0, 0, 1, 1, 2, 2]
    config = {"columns": {"include": ["a", "b"]}, "steps": [{"kind": "polynomial_features", "degree": 2}]}
    asked = {"data": rings[1], "label": "y", **FEW}
    several = kafeat.evaluate(config=config, splits=2, **asked)
    for record, seed in zip(several["records"], (0, 1), strict=True):
        alone = kafeat.evaluate(config={**config, "seed": seed}, **asked)
        for key in ("score_raw", "score_map", "score_exact", "relative_frobenius", "kernel_mean"):
            assert record[key] == alone[key], key
    scores = [record["score_map"] for record in several["records"]]
    assert len(set(scores)) > 1
    (entry,) = several["summary"]
    assert (entry["seeds"], entry["splits"]) == (1, 2)
    assert entry["score_map"]["mean"] == pytest.approx(np.mean(scores))
    assert entry["score_map"]["deviation"] == pytest.approx(np.std(scores, ddof=1))
    # Nadeau & Bengio 2003, with 180 test rows for 720 training rows
    error = np.std(scores, ddof=1) * np.sqrt(1 / 2 + 180 / 720)
    assert entry["score_map"]["standard_error"] == pytest.approx(error)
    assert several["score_of_choice"] is None


def test_the_score_of_the_choice_is_that_of_choices_made_in_each_split(over_splits):
    chosen = []
    for seed in (0, 1, 2):
        records = [one for one in over_splits.report.records if one.about["split_seed"] == seed]
        best = choose(summarize(records)).about["setting"]
        chosen.append(next(one.flat()["score_map"] for one in records if one.about["setting"] == best))
    assert over_splits["score_of_choice"]["mean"] == pytest.approx(np.mean(chosen))
    assert "if each of 3 splits chooses its own map, the test rows give" in over_splits["recommendation"]


def test_scores_by_name_decide_and_stand_beside_the_others(over_splits):
    for record in over_splits["records"]:
        assert record["scoring"] == "auc"
        for which in ("raw", "map", "exact"):
            assert record[f"score_{which}"] == record[f"auc_{which}"]
            assert record[f"error_rate_{which}"] == pytest.approx(1.0 - record[f"accuracy_{which}"])
            assert record[f"log_loss_{which}"] is None
        assert 0 < record["score_uncertainty_map_validation"] < 0.2


@pytest.mark.parametrize("learner", ["ridge", "linear_svc"])
def test_errors_of_numbers_are_in_the_unit_of_the_label_and_rank_as_negative(wave, learner):
    wide = wave.set_column(2, "y", pa.array(wave["y"].to_numpy() * 100.0))
    config = {"fit_rows": "all", "steps": [{**STEP, "n_components": 64}]}
    asked = {"config": config, "label": "y", "learner": learner, **FEW}
    one = kafeat.evaluate(data=wave, scoring="mse", **asked)
    other = kafeat.evaluate(data=wide, scoring="mse", **asked)
    # the same test rows: 1 − R² is the mean squared error over the variance of their labels
    assert other["mse_map"] == pytest.approx(1e4 * one["mse_map"], rel=0.01)
    assert one["score_map"] == -one["mse_map"]
    assert one["mse_map"] / (1 - one["r2_map"]) == pytest.approx(one["mse_raw"] / (1 - one["r2_raw"]))
    assert one["mae_map"] <= np.sqrt(one["mse_map"])


def test_values_of_validate_are_scored_with_the_learner_that_is_asked_for(rings, monkeypatch):
    from kafeat.study.learners import Learner

    table, seen = rings[0].drop(["part"]), []
    inner = Learner.learn

    def watched(self, *rows, penalty=None):
        seen.append((self.name, penalty))
        return inner(self, *rows, penalty)

    monkeypatch.setattr(Learner, "learn", watched)
    config = {"steps": [{**STEP, "gamma": {"validate": [0.1, 1.0]}}]}
    kafeat.evaluate(data=table, label="y", config=config, learner="linear_svc", penalty=0.5, **FEW)
    assert set(seen) == {("linear_svc", 0.5)}
    seen.clear()
    kafeat.fit(config, table, label="y")
    assert not seen  # ridge


def test_each_part_of_a_union_has_the_score_without_it(rings):
    """Ridge of scikit-learn on the features of the other parts is an oracle."""
    linear = pytest.importorskip("sklearn.linear_model")
    from kafeat.study.tables import part_table

    maps = [{"steps": [{**STEP, "n_components": n}]} for n in (16, 4)]
    scales = {"columns": ["b"], "steps": ["standardize"]}
    config = {"fit_rows": "all", "dtype": "float64", "steps": [{"kind": "union", "maps": [*maps, scales]}]}
    found = kafeat.evaluate(config=config, data=rings[0], label="y", split="part", penalty=0.5, **FEW)
    test = np.asarray(rings[0]["part"]) == "test"
    fm = kafeat.fit(config, rings[0].filter(pa.array(~test)).drop_columns(["part"]), "y")
    Z, y = np.asarray(fm.transform(rings[0].select(["a", "b"]))), np.asarray(rings[0]["y"])
    places = [np.arange(16), np.arange(16, 20), np.arange(20, 21)]
    assert [(part["part"], part["columns"]) for part in found["parts"]] == [
        ("fourier", 16), ("fourier", 4), ("standardize", 1),
    ]  # fmt: skip
    for part, columns in zip(found["parts"], places, strict=True):
        rest = np.delete(Z, columns, axis=1)
        ridge = linear.Ridge(alpha=0.5).fit(rest[~test], y[~test])
        right = (ridge.predict(rest[test]) > 0.5) == y[test]
        assert part["score_without"] == pytest.approx(right.mean())
    (_, of_part, _, score) = part_table(found.report.summaries)
    assert of_part.cells == ["fourier", "fourier", "standardize"]
    assert score.head == "accuracy without it"
    assert score.cells == [f"{part['score_without']:.4f}" for part in found["parts"]]


def test_columns_of_a_map_in_a_union_are_no_raw_columns():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200, 3))
    y = x[:, 0] + 0.1 * rng.normal(size=200)
    x[::7, 1] = np.nan
    shop = np.array(["a", "b"])[rng.integers(0, 2, 200)]
    table = pa.table({**{f"x{j}": x[:, j] for j in range(3)}, "shop": shop, "y": y})
    fill = ["missing_indicator", {"kind": "one_hot", "columns": ["shop"]}, "impute", "standardize"]
    nystroem = [{"kind": "nystroem", "n_components": n} for n in (30, 5)]
    maps = [{"steps": [*fill, nystroem[0]]}, {"columns": ["x*"], "steps": ["impute", nystroem[1]]}]
    found = kafeat.evaluate(data=table, label="y", config={"steps": [{"kind": "union", "maps": maps}]}, **FEW)
    # three numbers, an indicator of gaps and two shops
    assert found["columns_raw"] == 6
    assert found["n_components"] == 35
