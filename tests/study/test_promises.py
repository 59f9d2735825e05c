"""`evaluate --all-rows` of a model with intervals: do coverage, score and calibration still hold?"""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import GateError, UsageError
from kafeat.study.models import refuse_low_scores, score_predictions

STEPS = [{"kind": "standardize"}, {"kind": "fourier", "n_components": 64}, {"kind": "ridge"}]


def table(n, seed, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    y = 3.0 * np.sin(X[:, 0]) + noise * (0.3 + np.abs(X[:, 1])) * rng.standard_normal(n)
    names = np.array(["high", "low"])[(y < 0.0).astype(int)]
    return pa.table({"a": X[:, 0], "b": X[:, 1], "y": y, "z": -y, "c": names})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("promises")
    for name, noise in (("same", 1.0), ("worse", 2.0)):
        pq.write_table(table(3000, 1, noise), place / f"{name}.parquet")
    for label in ("y", "c", ["y", "z"]):
        config = {"columns": {"include": ["a", "b"]}, "steps": STEPS}
        fm = kafeat.fit(config, table(2000, 0), label=label, intervals=True)
        fm.save(place / f"{'_'.join(label)}.joblib")
    return place


def record(folder, model, data, label=()):
    [found] = score_predictions(
        [str(folder / f"{model}.joblib")], str(folder / f"{data}.parquet"), label, jobs=1
    )
    json.dumps(found.flat())
    return found


def promises(folder, model, data, label=()):
    return record(folder, model, data, label).scored.tested["model"]


@pytest.mark.parametrize("model", ["y", "c", "y_z"])
def test_rows_like_those_of_the_fit_hold_the_promise(folder, model):
    found = promises(folder, model, "same")
    for one in found["coverage"]:
        error = np.sqrt(one["level"] * (1.0 - one["level"]) * (1.0 / 3000 + 1.0 / 2000))
        assert one["coverage"] >= one["level"] - 4.0 * error
        assert one["p_value"] > 1e-4
    held = found["held_out"]
    assert held["p_value"] > 1e-4
    assert abs(held["score"] - held["score_here"]) < 0.05
    assert held["rows"] == 2000


@pytest.mark.parametrize("model", ["y", "c", "y_z"])
def test_rows_with_twice_the_noise_break_it(folder, model):
    found = record(folder, model, "worse")
    promised = found.scored.tested["model"]
    assert promised["coverage"][1]["p_value"] < 1e-4
    assert promised["held_out"]["p_value"] < 1e-4
    refuse_low_scores([found], None, 0.5)
    with pytest.raises(GateError, match=r"coverage of 0\.95: expected at least 0\.94, got 0\."):
        refuse_low_scores([found], None, 0.94, 0.95)


def test_coverage_and_width_are_those_of_predict_interval(folder):
    found, rows = promises(folder, "y", "worse"), pq.read_table(folder / "worse.parquet")
    low, high = kafeat.load(folder / "y.joblib").predict_interval(rows, 0.8).T
    truth = rows["y"].to_numpy()
    one = found["coverage"][0]
    assert one["coverage"] == ((low <= truth) & (truth <= high)).mean()
    assert one["size"] == pytest.approx((high - low).mean())


def test_intervals_have_a_pinball_loss_at_the_probability_asked_for(folder):
    metrics, rows = pytest.importorskip("sklearn.metrics"), pq.read_table(folder / "worse.parquet")
    model, truth = folder / "y.joblib", rows["y"].to_numpy()
    [found] = score_predictions(
        [str(model)], str(folder / "worse.parquet"), scoring="pinball", interval=0.6, jobs=1
    )
    ends = kafeat.load(model).predict_interval(rows, 0.6).T
    expected = [
        metrics.mean_pinball_loss(truth, end, alpha=q) for end, q in zip(ends, (0.2, 0.8), strict=True)
    ]
    found = found.scored.tested["model"]
    assert found["pinball"] == -found["score"] == pytest.approx(np.mean(expected))
    assert [one["level"] for one in found["coverage"]] == [0.6, 0.8, 0.9, 0.95]


def test_labels_in_another_order_are_those_of_the_model(folder):
    one, other = promises(folder, "y_z", "same", ("y", "z")), promises(folder, "y_z", "same", ("z", "y"))
    assert one["coverage"] == other["coverage"]
    assert one["held_out"]["score_here"] == pytest.approx(other["held_out"]["score_here"], rel=1e-12)


def test_a_class_that_the_model_does_not_know_is_not_covered(folder, tmp_path):
    rows = table(3000, 1)
    classes = rows["c"].to_pylist()
    spoiled = rows.set_column(4, "c", pa.array(["other" if i % 2 else one for i, one in enumerate(classes)]))
    pq.write_table(spoiled, tmp_path / "o.parquet")
    [found] = score_predictions([str(folder / "c.joblib")], str(tmp_path / "o.parquet"), jobs=1)
    found = found.scored.tested["model"]
    assert all(one["coverage"] <= 0.5 for one in found["coverage"])
    assert found["held_out"]["score_here"] == pytest.approx(found["score"])


def test_a_model_without_intervals_has_no_coverage(folder, tmp_path):
    config = {"columns": {"include": ["a", "b"]}, "steps": STEPS}
    kafeat.fit(config, table(500, 0), label="y", intervals=False).save(tmp_path / "m")
    [found] = score_predictions([str(tmp_path / "m")], str(folder / "same.parquet"), jobs=1)
    assert "coverage" not in found.scored.tested["model"]
    assert found.scored.tested["model"]["pinball"] is None
    with pytest.raises(UsageError, match="scoring: expected a score of what .*m predicts, got pinball"):
        score_predictions([str(tmp_path / "m")], str(folder / "same.parquet"), scoring="pinball", jobs=1)
    with pytest.raises(UsageError, match="--min-coverage: expected a model with intervals"):
        refuse_low_scores([found], None, 0.8)


def test_the_command_shows_it_and_gates(folder, in_process, run):
    words = ["evaluate", "--model", "c.joblib", "worse.parquet", "--all-rows", "--min-coverage"]
    done = run(*words, "0.5", cwd=folder)
    assert "does it still hold?" in done.stdout
    assert "coverage of 90%" in done.stdout
    assert in_process(*words, "0.99", cwd=folder).returncode == 6
    words.remove("--all-rows")
    done = in_process(*words, "0.9", cwd=folder)
    assert done.returncode == 2
    assert "--min-coverage: expected --all-rows" in done.stderr


def test_a_file_of_an_older_kafeat_has_the_error_alone_and_says_so(folder, tmp_path, in_process):
    fm = kafeat.load(folder / "c.joblib")
    intervals = fm.needed_intervals()
    old = replace(intervals, calibration=np.array(intervals.calibration_error))
    replace(fm, predictor=replace(fm.needed_predictor(), intervals=old)).save(tmp_path / "old.joblib")
    [found] = score_predictions([str(tmp_path / "old.joblib")], str(folder / "same.parquet"), jobs=1)
    new = promises(folder, "c", "same")["held_out"]
    assert new["calibration_p_value"] is not None
    assert found.scored.tested["model"]["held_out"] == {**new, "calibration_p_value": None}
    done = in_process(
        "evaluate", "--model", "old.joblib", folder / "same.parquet", "--all-rows", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "fitted by an older kafeat, which kept too little to tell if the calibration error" in done.stdout
