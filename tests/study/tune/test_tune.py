"""The config that is chosen: repeatable, valid, and simple where more parts gain nothing."""

import datetime
import json
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest

import kafeat
from kafeat.config import load_config
from kafeat.errors import DataError, UsageError, counted
from kafeat.jobs.fit.looks import with_columns
from kafeat.jobs.fit.messages import SILENT, Listener
from kafeat.maths.scoring import SCORES
from kafeat.study.tune.journal import TrialJournal
from kafeat.study.tune.space import Candidate, SearchSpace, seconds_of
from kafeat.study.tune.trials import Size

X = np.random.default_rng(0).normal(size=(300, 3)) * [1.0, 100.0, 0.01]
Y = np.sin(2.0 * X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=300)


@pytest.fixture
def whole_last_trials(monkeypatch):
    """The splits of the last trials are those that users get, and kernels are told apart."""
    monkeypatch.setattr("kafeat.study.tune.rungs._SCORED", 3000)
    monkeypatch.setattr("kafeat.study.tune.screen.EXACT_ROWS", 100)


def quick(data, label, **options):
    """Few trials of few columns in one thread."""
    return kafeat.tune(data, label, **{"columns": 16, "trials": 3, "jobs": 1, **options})


def mixed(n=300):
    """A table with text, times, gaps, an identifier and the column of train and test."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=n)
    town = rng.choice(["a", "b", "c"], n)
    gaps = np.where(rng.random(n) < 0.2, None, rng.normal(size=n))
    return pa.table({
        "x": x, "gaps": pa.array(gaps.tolist(), pa.float64()), "town": town,
        "time": [datetime.datetime(2024, 1 + i % 12, 3) for i in range(n)],
        "id": [f"row {i}" for i in range(n)], "y": np.sin(x) + (town == "a"),
        "split": np.where(np.arange(n) % 4 == 0, "test", "train"),
    })  # fmt: skip


def test_the_same_data_and_trials_give_the_same_file_whatever_the_jobs():
    pytest.importorskip("lightgbm")
    first, second = quick(X, Y, trials=6), quick(X, Y, trials=6, jobs=2)
    assert first.yaml == second.yaml
    assert first.trials == 6
    assert "--trials 6" in first.yaml
    assert any("trees" in row["map"] for row in first.table)


def test_the_yaml_is_the_config_and_fits(tmp_path):
    tuning = quick(X, Y)
    (tmp_path / "best.yaml").write_text(tuning.yaml)
    assert load_config(tmp_path / "best.yaml") == tuning.config
    assert tuning.fit().n_components == 16
    assert pa.table(tuning).num_rows == len(tuning.to_pandas()) == len(tuning.table)
    assert "<table>" in tuning._repr_html_()
    assert json.loads(json.dumps(tuning.to_plain()))["score"] == tuning.score


def test_a_table_as_it_comes_gets_a_config_for_text_times_and_gaps(tmp_path):
    tuning = quick(mixed(), "y", split="split", trials=2)
    kinds = [step.kind for step in tuning.config.steps]
    assert kinds[:4] == ["missing_indicator", "date_parts", "one_hot", "impute"]
    assert tuning.config.columns.exclude == ("id",)
    assert any("id (" in note for note in tuning.notes)
    assert tuning.test_score.rows == 75
    assert tuning.test_score.value > 0.5
    pc.write_csv(mixed(), tmp_path / "x.csv")
    assert quick(str(tmp_path / "x.csv"), "y", split="split", trials=2).config == tuning.config


def _table_of(table, split="split"):
    from kafeat.config import Config
    from kafeat.jobs.fit.messages import SILENT
    from kafeat.jobs.fit.reread import rereadable
    from kafeat.study.tune.input import read_table

    with rereadable(table, None) as data:
        return read_table(data, Config(steps=[{"kind": "standardize"}]), "y", split, SILENT)


@pytest.mark.parametrize("classes", [0, 2, 4])
def test_a_label_of_noise_is_told(classes):
    rng = np.random.default_rng(5)
    shares = [0.7, *[0.3 / (classes - 1)] * (classes - 1)] if classes else None
    labels = rng.choice(classes, 300, p=shares) if classes else rng.normal(size=300)
    tuning = quick(X, labels, trials=5, rows=20)
    (said,) = [note for note in tuning.notes if "no better than a constant prediction" in note]
    assert f"by more than noise (two standard errors, {2.0 * tuning.error:.4f})." in said


@pytest.mark.parametrize(("leak", "label"), [
    (X[:, 0], 0.9 * X[:, 0] + 3.0), (np.round(X[:, 0], 4), X[:, 0]),
    (np.where(X[:, 0] > 0.0, "paid", "open"), X[:, 0] > 0.0)
])  # fmt: skip
def test_a_column_that_predicts_the_label_without_error_is_told(leak, label):
    table = pa.table({"a": X[:, 1], "b": X[:, 2], "leak": leak, "y": label.astype(float)})
    told = "One column is enough to predict the label without error: leak. What follows from the label must not be a "
    assert f"{told}feature; --exclude leak leaves this column out." in quick(table, "y", trials=1).notes
    noisy = table.set_column(2, "leak", pa.array(X[:, 0] + 0.01 * X[:, 1] * (label != label[0])))
    assert not any("without error" in note for note in quick(noisy, "y", trials=1).notes)


def test_three_hundred_classes():
    labels = np.repeat([f"c{i}" for i in range(300)], 4)
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.normal(size=(300, 4)), 4, axis=0)
    tuning = quick(rows + 0.01 * rng.normal(size=rows.shape), labels, columns=64, trials=2)
    assert tuning.score > 0.5 * tuning.constant_score == pytest.approx(-0.5 * math.log(300))
    assert tuning.score_name == "log_loss"


def test_constant_columns_do_no_harm_and_all_constant_ones_are_refused():
    constant = np.column_stack([X, np.ones(300)])
    assert quick(constant, Y, columns=64, trials=6).score > 0.3
    told = "expected a feature column with different values, got only constant ones"
    with pytest.raises(DataError, match=told):
        quick(np.ones((300, 2)), Y)


def test_an_id_is_left_out_with_the_rows_that_were_looked_at():
    ids = [f"n{i % 149}" for i in range(300)]
    for name, rows in (
        (ids, 300),
        ([f"n{i}" for i in range(300)], 300),
        ([f"n{i}" for i in range(3000)], 3000),
    ):
        x = np.resize(X[:, 0], rows)
        tuning = quick(pa.table({"x": x, "name": name, "y": np.resize(Y, rows)}), "y", trials=1)
        left_out = [note for note in tuning.notes if note.startswith("Left out")]
        of = "300 rows" if rows == 300 else "the first 2,000 rows"
        expected = f"Left out: name ({min(rows, 2000):,} different values in {of}, few words: names of rows)."
        assert left_out == ([] if name is ids else [expected])


def test_a_list_of_columns_to_include_is_kept_without_those_that_are_left_out():
    base = {"columns": {"include": ["x", "id", "town"]}, "steps": [{"kind": "fourier", "n_components": 8}]}
    tuning = quick(mixed(), "y", split="split", trials=1, base=base)
    assert tuning.config.columns.include == ("x", "town")


def test_thirty_rows():
    x = np.linspace(-3.0, 3.0, 30)[:, None]
    tuning = quick(x, np.sin(3.0 * x[:, 0]), columns=512, trials=2)
    assert tuning.fit().n_components == 30
    assert any("at most as many columns as there are training rows: 30" in note for note in tuning.notes)
    with pytest.raises(DataError, match="expected at least 20 rows to choose on, got 19"):
        quick(X[:19], Y[:19])


def test_a_config_to_start_from_is_a_candidate_and_keeps_its_seed():
    base = {"seed": 7, "dtype": "float64", "steps": [{"kind": "fourier", "n_components": 32, "gamma": 1e-9}]}
    tuning = quick(X, Y, base=base)
    assert (tuning.config.seed, tuning.config.dtype) == (7, "float64")
    assert "the config to start from" in [row["map"] for row in tuning.table]
    search = {"steps": [{"kind": "fourier", "gamma": {"validate": [1.0, 2.0]}}]}
    with pytest.raises(UsageError, match="--from: expected a config without `validate`"):
        quick(X, Y, base=search)


def test_a_config_of_columns_alone_has_no_candidate_of_its_own():
    tuning = quick(mixed(), "y", split="split", trials=2, base={"columns": {"exclude": ["id"]}, "seed": 3})
    assert tuning.config.seed == 3
    assert "the config to start from" not in [row["map"] for row in tuning.table]


@pytest.mark.parametrize(("scoring", "name"), [("mae", "mae"), ("r2", "R²")])
def test_other_scores(scoring, name):
    tuning = quick(X, Y, scoring=scoring)
    assert tuning.score_name == name
    with pytest.raises(DataError, match="scoring: expected accuracy or .* for a label of classes, got mae"):
        quick(X, Y > 0.0, scoring="mae")


def test_arguments_out_of_bounds_are_refused():
    for wrong in ({"columns": 1}, {"trials": 0}, {"seeds": 0}, {"seeds": 10**8}, {"time": 0.0}):
        with pytest.raises(UsageError, match=f"{next(iter(wrong))}: expected"):
            quick(X, Y, **wrong)


def _stop_after_three(search, _trial):
    if len(search.trials) == 3:
        raise KeyboardInterrupt


def test_a_journal_gives_the_trials_of_an_interrupted_search_back(tmp_path):
    path = str(tmp_path / "j")
    stopped = kafeat.tune(X, Y, columns=16, jobs=1, journal=path, progress=_stop_after_three)
    assert (stopped.interrupted, stopped.trials) == (True, 3)
    lines = (tmp_path / "j").read_text().splitlines()
    assert len(lines) == 1 + 3
    with open(path, "a") as file:
        file.write('{"trial": "torn')
    made = []
    again = quick(X, Y, trials=5, journal=path, resume=True, progress=lambda _s, trial: made.append(trial))
    assert [trial.outcome.seconds for trial in made[:3]] == [
        json.loads(line)["seconds"] for line in lines[1:]
    ]
    assert again.yaml == quick(X, Y, trials=5).yaml
    assert not (tmp_path / "j").exists()


@pytest.mark.usefixtures("whole_last_trials")
def test_a_table_in_memory_has_its_last_candidates_scored_on_every_row():
    X = np.random.default_rng(0).normal(size=(500, 3))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * np.random.default_rng(1).normal(size=500)
    trials = []
    tuning = quick(X, y, trials=4, progress=lambda _, trial: trials.append(trial))
    final = [trial for trial in trials if not trial.later and trial.size.held == 0.1]
    assert [trial.number for trial in final] == [4]
    assert final[0].size == Size(500, 16, 10, 0.1)
    assert "(10 times 10% of 500 rows)" in tuning.yaml.replace("\n#  ", "")
    assert tuning.score == max(trial.outcome.score for trial in final)
    # The models have seen 450 rows, not 375, so that the score is that of the model of all rows.
    fresh = np.random.default_rng(2).normal(size=(4000, 3))
    truth = np.sin(2.0 * fresh[:, 0]) + 0.3 * np.random.default_rng(3).normal(size=4000)
    steps = [*tuning.config.to_plain()["steps"], {"kind": "ridge"}]
    predicted = kafeat.fit({**tuning.config.to_plain(), "steps": steps}, X, y).predict(fresh)
    r2 = 1.0 - np.mean((predicted - truth) ** 2) / np.var(truth)
    assert abs(r2 - tuning.score) < 2.0 * tuning.error


def test_splits_that_share_training_rows_say_less_than_their_rows():
    """Nadeau & Bengio 2003: s·√(1/n + overlap), where s/√n is the error of the rows."""
    draws = np.random.default_rng(0).normal(size=40)
    errors = [
        size.error(draws) / np.std(draws) for size in (Size(100, 8, 10, held=0.1), Size(100, 8, 1, held=0.1))
    ]
    assert errors == [pytest.approx(math.sqrt(10.0 * (1.0 / 10.0 + 10.0 / 90.0))), 1.0]


def test_rows_that_are_held_out_more_than_once_count_once_for_the_error():
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = X[:, 0] + np.random.default_rng(1).normal(size=200)
    once, often = (quick(X, y, trials=2, seeds=seeds) for seeds in (4, 60))
    assert often.error > 0.8 * once.error


def test_an_interrupt_while_the_test_rows_are_scored_keeps_the_choice(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    whole = quick(mixed(), "y", split="split")
    monkeypatch.setattr("kafeat.study.tune.all_rows.AllRows.test_score", interrupt)
    tuning = quick(mixed(), "y", split="split")
    assert tuning.interrupted
    assert tuning.test_score is None
    assert tuning.yaml == whole.yaml


@pytest.mark.parametrize(("labels", "task", "line"), [
    (25.0 * (np.arange(306) % 51), "auto", "numbers (51 {}); --task classification"),
    (np.arange(306) % 3, "auto", "classes (3 {}, in steps of 1, each common); --task r"),
    (25 * (np.arange(306) % 3), "auto", "numbers (3 {}, not in steps of 1); --task c"),
    (np.arange(306) % 3, "regression", "numbers (3 {}, in steps of 1, each common, "
     "--task regression); --task classification predicts classes"),
    (np.arange(306) / 7, "auto", "numbers (306 different numbers in 306 rows); --task classification"),
])  # fmt: skip
def test_a_line_says_what_the_label_is_taken_for_and_the_other_way(labels, task, line):
    rows, said = np.random.default_rng(0).normal(size=(306, 2)), []
    tuning = quick(rows, labels, trials=1, task=task, listener=Listener(inform=said.append))
    assert [one for one in said if one.startswith("label: ")] == [tuning.notes[0]]
    assert tuning.notes[0].startswith(f"label: {line.format('different whole numbers in 306 rows')}")
    assert f"# {tuning.notes[0]}"[:60] in tuning.yaml


def test_the_other_way_is_taken():
    rows, labels = np.random.default_rng(0).normal(size=(306, 2)), 25.0 * (np.arange(306) % 51)
    assert "log_loss" in quick(rows, labels, trials=1, task="classification").score_name
    assert quick(rows, labels, trials=1).score_name == "R²"


def test_a_column_of_train_and_test_is_no_feature():
    tuning = quick(mixed(), "y", trials=1)
    assert tuning.config.columns.exclude == ("id", "split")
    assert "Left out: split (train and test, for which there is --split)." in tuning.notes


def test_a_label_that_tells_the_rows_apart_is_refused():
    table = mixed().append_column("name", pa.array([f"person {i}" for i in range(300)]))
    told = r"expected classes that several rows have, got 300 different texts such as person 0 in 300 rows"
    with pytest.raises(DataError, match=told):
        quick(table, "name")
    told = r"300 different numbers such as 0 in 300 rows: --task regression predicts"
    with pytest.raises(DataError, match=told):
        quick(mixed().append_column("number", pa.array(range(300))), "number", task="classification")
    assert quick(mixed().append_column("number", pa.array(range(300))), "number", trials=1).score_name == "R²"


@pytest.mark.parametrize("time", ["8x", "", "s", "nan", "1e999", "-1m", 0, math.nan, math.inf, b"3s", [1]])
def test_a_time_that_is_none_is_refused(time):
    with pytest.raises(UsageError, match="time: expected a duration above 0, such as 90 .* or 1h, got "):
        quick(mixed(), "y", time=time)


def test_durations_are_those_of_the_command():
    assert [seconds_of(time) for time in ("90", "3s", "1.5m", "2h", 4, 0.5, None)] == [
        90, 3, 90, 7200, 4, 0.5, None,
    ]  # fmt: skip
    assert quick(mixed(), "y", time="1h").config == quick(mixed(), "y").config


def test_a_search_that_ended_early_says_so():
    early = "The search ended before all maps of its plan were tried"
    X = np.random.default_rng(0).normal(size=(30, 2))
    assert any(note.startswith(early) for note in quick(X, X[:, 0], trials=5).notes)
    assert not any(note.startswith(early) for note in quick(X, X[:, 0], trials=None, seeds=1).notes)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """The lines of the journal of a search that ended after three trials."""
    path = tmp_path_factory.mktemp("journal") / "j"
    kafeat.tune(X, Y, columns=16, jobs=1, journal=str(path), progress=_stop_after_three)
    return path.read_bytes().splitlines()


GOOD = (
    '{"trial": "t", "score": 0.5, "resampled": [], "seconds": 1.0, "columns": 4, "failure": null, "figures": {}, '
    '"row_seconds": 0.0, "model_bytes": 8}'
)


@pytest.mark.parametrize("line", [
    b"null", b"7", b"[]", b"{}", b'"text"', b"\xff\xfe", b"[" * 100_000, b'{"a":' * 100_000, b"NaN", b"", b"\0",
    GOOD.encode(), GOOD.replace("null", "7").encode(), GOOD.replace("0.5", "NaN").encode(),
    GOOD.replace("1.0", '"x"').encode(), GOOD.replace("[]", "[null]").encode(), GOOD.replace("4", "1e999").encode(),
    GOOD.replace("[]", str([0.5] * 40)).replace("1.0", "Infinity").encode(),
    GOOD.replace("[]", str([0.5] * 40)).replace("0.5,", "-Infinity,", 1).encode(),
], ids=range(19))  # fmt: skip
@pytest.mark.parametrize("place", [1, 2, 4])
def test_a_damaged_line_ends_the_journal(tmp_path, interrupted, line, place):
    path, said, good = tmp_path / "j", [], interrupted[:place]
    path.write_bytes(b"\n".join([*good, line, *interrupted[place + 1 :], b""]))
    with TrialJournal(str(path), json.loads(good[0])["key"], True, said.append):
        assert path.read_bytes() == b"\n".join([*good, b""])
    before = counted(place - 1, "trial")
    assert said == [f"{path}: a line is damaged; the search goes on from {before} before it"]


def test_a_journal_of_other_options_is_told(tmp_path):
    path, said = str(tmp_path / "j"), []
    kafeat.tune(X, Y, columns=16, jobs=1, journal=path, progress=_stop_after_three)
    with pytest.raises(UsageError, match="expected no trials of an earlier search, got 3"):
        quick(X, Y, columns=8, journal=path)
    quick(X, Y, columns=8, journal=path, resume=True, listener=replace(SILENT, warn=said.append))
    assert said == [f"{path}: has trials of other data or options; the search starts from scratch"]


def imbalanced(n=600):
    """Rows with a label of which 80 % are of one class, and that depends on the columns by a curve."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(n, 3))
    wave = np.sin(2.0 * rows[:, 0]) + np.sin(2.0 * rows[:, 1]) + 0.2 * rng.normal(size=n)
    return rows, np.where(wave < -1.5, "rare", np.where(wave > 1.3, "rarer", "usual"))


def test_maps_for_classes_are_chosen_by_log_loss_with_other_scores_beside():
    tuning = quick(*imbalanced(300))
    assert tuning.score_name == "log_loss"
    assert set(tuning.figures) == {"accuracy", "balanced_accuracy", "auc", "log_loss"}
    assert tuning.figures["log_loss"] == pytest.approx(-tuning.score)
    assert [row["log_loss"] for row in tuning.table] == sorted(row["log_loss"] for row in tuning.table)
    assert tuning.answer()[1].startswith(f"log loss {-tuning.score:.4f} ± ")
    assert tuning.answer()[2].startswith("accuracy 0.")
    assert all(row["model_bytes"] > 0 and row["microseconds_per_row"] > 0.0 for row in tuning.table)


def test_one_common_class_does_not_make_the_map_narrow():
    """By accuracy every width is as good as a constant; by log loss wider maps are better."""
    rows, labels = imbalanced(1200)
    tuning = kafeat.tune(rows, labels, trials=4, max_bytes_per_row=1024, predictor="ridge", jobs=1)
    assert tuning.columns > 32
    assert tuning.score > tuning.constant_score + 2.0 * tuning.error
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    (note,) = [note for note in tuning.notes if "of the rows have the label" in note]
    assert f"accuracy {shares.max():.4f} and balanced accuracy 0.3333" in note
    assert f"log loss {-(shares @ np.log(shares)):.4f}" in note


def test_the_choice_is_no_worse_than_raw_columns_and_the_default_map():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(240, 6))
    labels = rows[:, 0] > 1.0, np.sin(4.0 * rows[:, 1]), rows @ np.arange(6.0)
    for tuning in (quick(rows, one + 0.0, trials=5) for one in labels):
        plain = ("raw columns, standardize", "standardize, rbf, γ = median")
        assert tuning.score >= max(row["score"] for row in tuning.table if row["map"] in plain)
    # The last label is linear.
    assert tuning.table[0]["map"] == "raw columns, standardize"
    assert [step.kind for step in tuning.config.steps] == ["standardize"]


def test_raw_columns_are_tried_whatever_the_time():
    tuning = kafeat.tune(X, Y, columns=16, jobs=1, time=1e-6)
    maps = {row["map"] for row in tuning.table}
    assert maps == {"standardize, rbf, γ = median", "raw columns, standardize"}


@pytest.mark.sampled
@pytest.mark.parametrize("scoring", ["error_rate", "log_loss", "brier", "auc", "balanced_accuracy", "f1"])
def test_every_score_of_classes_decides(scoring):
    tuning = quick(*imbalanced(300), scoring=scoring)
    assert tuning.score_name == scoring
    assert tuning.score <= 1.0


def test_the_score_of_test_rows_is_that_of_the_model():
    """Probabilities of the fitted model, and not a fit of another learner, are scored."""
    from kafeat.maths.task import task_of

    rows, labels = imbalanced()
    split = np.where(np.arange(len(labels)) % 3 == 0, "test", "train")
    table = pa.table({"a": rows[:, 0], "b": rows[:, 1], "y": labels, "split": split})
    tuning = quick(table, "y", split="split", predictor="ridge")
    test = split == "test"
    p = tuning.fit().predict_proba(table.drop_columns(["y", "split"]).filter(pa.array(test)))
    task = task_of(labels.astype(object))
    expected = SCORES["log_loss"].of(task, p, labels[test].astype(object))
    assert tuning.test_score.value == pytest.approx(expected, rel=1e-6)
    assert tuning.test_score.rows == test.sum()


def test_the_last_note_has_the_options_that_decide_what_is_tried():
    note = quick(X, Y, trials=2, columns=16, scoring="mae", task="regression", predictor="ridge").notes[-1]
    assert note == (
        "The same search again: --columns 16 --seeds 2 --trials 2 --task regression --scoring mae --predictor ridge"
    )


def _texts(n=400):
    """A table whose label is the sum of the effects of words and of a number, with gaps in both."""
    rng = np.random.default_rng(2)
    words = np.array(
        [f"{a}{b}" for a in ("ko", "ra", "mi", "sel") for b in ("tan", "bor", "lux", "vin", "dep")]
    )
    picked = rng.integers(len(words), size=(n, 3))
    x, effects = rng.normal(size=n), rng.normal(size=len(words))
    texts = pa.array([" ".join(words[one]) for one in picked], mask=rng.random(n) < 0.05)
    y = effects[picked].sum(axis=1) + np.sin(x)
    return pa.table({"x": pa.array(x, mask=rng.random(n) < 0.05), "text": texts, "y": y})


def test_words_stand_beside_the_map_within_its_columns():
    table = _texts(250)
    tuning = quick(table, "y", columns=32, trials=4, seeds=1)
    assert tuning.score > 0.5
    assert tuning.columns == tuning.fit().n_components <= 32
    (union,) = tuning.config.steps
    assert [part.columns for part in union.maps] == [("x",), ("text",)]


def test_words_alone_and_words_that_say_nothing():
    table = _texts(250)
    alone = quick(table.drop_columns(["x"]), "y", columns=32, trials=3, seeds=1)
    assert alone.config.steps[0].kind == "text"
    assert alone.score > 0.3
    noise = table.set_column(2, "y", pa.array(np.sin(np.nan_to_num(table["x"].to_numpy()))))
    trials = []
    tuning = quick(
        noise, "y", columns=32, trials=5, rows=20, seeds=1, progress=lambda _, trial: trials.append(trial)
    )
    without = [one for one in trials if one.candidate.words == 0.0 and one.outcome.failure is None]
    assert without
    assert all(one.outcome.columns == 32 for one in without)
    assert tuning.score > 0.8
    assert tuning.fit().n_components == 32
    space = SearchSpace(_table_of(noise, split=None))
    steps = space.steps(replace(without[0].candidate, union=True), 16, 200)
    base = load_config({"columns": {"include": ["x", "text"]}, "steps": ["standardize"]})
    config = with_columns(base, space.table.groups, steps)
    assert config.columns.include == ("x",)
    assert kafeat.fit(config, noise, "y").n_components == 16


def _shops(n=3000):
    """A table whose label is the effect of one of many shops and a number; some shops are missing."""
    rng = np.random.default_rng(3)
    shop, effects, x = rng.integers(300, size=n), rng.normal(size=300), rng.normal(size=n)
    names = pa.array([f"s{i}" for i in shop], mask=rng.random(n) < 0.05)
    noise = [f"n{i}" for i in rng.integers(500, size=n)]
    return pa.table({"x": x, "shop": names, "noise": noise, "y": effects[shop] + np.sin(x)})


def test_categories_of_many_values_are_encoded_by_their_labels():
    table = _shops(2000)
    tuning = quick(table, "y", columns=32, trials=6)
    assert tuning.score > 0.6
    assert "target" in tuning.yaml
    assert tuning.fit().n_components == 32
    without = quick(table.drop_columns(["noise"]), "y", columns=32, trials=6)
    assert without.score - tuning.score < 2.0 * tuning.error


@pytest.mark.parametrize("encoding", ["target", "fine target", "both", "one_hot"])
@pytest.mark.parametrize("union", [False, True])
def test_every_encoding_is_a_config_that_fits(encoding, union):
    table = _shops(600)
    space = SearchSpace(_table_of(table, split=None))
    assert space.table.groups.many == ("shop", "noise")
    candidate = Candidate("standardize", "none", "rbf", union=union, encoding=encoding)
    steps = [*space.steps(candidate, 16, 500), {"kind": "ridge"}]
    fm = kafeat.fit({"steps": steps}, table, "y")
    used = str(steps)
    assert ("target" in used, "one_hot" in used) == (encoding != "one_hot", encoding in ("both", "one_hot"))
    assert np.isfinite(fm.predict(table)).all()
