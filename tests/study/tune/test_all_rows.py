"""The last candidates are scored on all rows: on rows that neither the map nor ridge has learned from."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.contract.folds import Folds, RowKeys
from kafeat.study.tune.all_rows import rule_of_share
from kafeat.study.tune.choice import with_twice_the_rows
from kafeat.study.tune.rungs import RUNGS
from kafeat.study.tune.space import DEFAULT
from kafeat.study.tune.trials import Outcome, Size, Trial
from tests.sizes import size
from tests.study.tune.test_trees import thresholds
from tests.study.tune.test_tune import _shops, _texts

FEW = size(720, 1500)
"""The most rows of a trial here; all rows are more."""
N = size(960, 2000)
X = np.random.default_rng(0).normal(size=(N, 3))
Y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * np.random.default_rng(1).normal(size=N)
TABLE = pa.table({**{f"x{i}": X[:, i] for i in range(3)}, "y": Y})


def tune(data, label="y", **options):
    return kafeat.tune(data, label, **{"columns": 16, "trials": 6, "jobs": 1, **options})


@pytest.fixture(scope="module", autouse=True)
def trials_of_few_rows():
    with pytest.MonkeyPatch.context() as patch:
        few = (rung._replace(rows=min(rung.rows, FEW)) for rung in RUNGS[:-1])
        patch.setattr("kafeat.study.tune.rungs.RUNGS", (*few, RUNGS[-1]))
        yield


@pytest.fixture(scope="module")
def tuning(trials_of_few_rows):
    return tune(TABLE)


def test_the_last_candidates_are_scored_on_all_rows(tuning):
    rows = [row["rows"] for row in tuning.table]
    assert sorted(rows) == [FEW, FEW, N, N]  # two of four went on
    assert rows[0] == N
    maps = {row["map"] for row in tuning.table}
    assert {"standardize, rbf, γ = median", "raw columns, standardize"} <= maps
    assert f"25% of {N:,} rows" in tuning.yaml


def test_the_score_is_that_of_new_rows(tuning):
    fresh = np.random.default_rng(1).normal(size=(20_000, 3))
    truth = np.sin(2.0 * fresh[:, 0]) + fresh[:, 1] + 0.3 * np.random.default_rng(2).normal(size=20_000)
    plain = tuning.config.to_plain()
    config = {**plain, "steps": [*plain["steps"], {"kind": "ridge"}]}
    model = kafeat.fit(config, TABLE, "y", intervals=False)
    predicted = model.predict(pa.table({f"x{i}": fresh[:, i] for i in range(3)}))
    r2 = 1.0 - np.mean((predicted - truth) ** 2) / np.var(truth)
    assert abs(r2 - tuning.score) < 3.0 * tuning.error


def test_jobs_formats_and_arrays_give_the_same(tuning, tmp_path):
    pq.write_table(TABLE, tmp_path / "t.parquet", row_group_size=900)
    every = (tuning, tune(str(tmp_path / "t.parquet"), jobs=2), tune(X, Y))
    first, *others = [[(row["score"], row["rows"]) for row in one.table] for one in every]
    assert others == [first, first]


def test_rows_bound_them(tuning):
    assert {row["rows"] for row in tune(TABLE, rows=FEW, trials=2).table} == {FEW}
    bounded = tune(TABLE, rows=N - 100, trials=4)
    assert bounded.table[0]["rows"] == N - 100
    assert f"--rows {N - 100}" in bounded.notes[-1]
    assert "--rows" not in tuning.notes[-1]


def test_a_label_of_noise_scores_like_a_constant_on_rows_that_maps_have_not_seen():
    noise = np.random.default_rng(2).normal(size=N)
    found = tune(TABLE.set_column(3, "y", pa.array(noise)), trials=8)
    assert found.score < 2.0 * found.error + 0.005


def test_a_property_of_groups_is_chance_on_other_groups():
    groups, rng = np.repeat(np.arange(80), N // 80), np.random.default_rng(0)
    rows = rng.normal(size=(80, 3))[groups] + 0.1 * X
    table = pa.table({
        **{f"x{i}": rows[:, i] for i in range(3)}, "who": [f"p{i}" for i in groups],
        "y": rng.normal(size=80)[groups],
    })  # fmt: skip
    options = {"columns": 64, "trials": 4}
    random, grouped = tune(table, **options), tune(table, split_by="group:who", **options)
    assert random.score > 0.2
    assert grouped.score < 0.1 + 2.0 * grouped.error
    assert any("--split-by group:who" in note for note in random.notes)
    assert grouped.config.split_by == "group:who"
    assert "by group:who" in grouped.yaml
    assert grouped.error > 2.0 * random.error  # 80 groups say less than all rows


def test_classes_have_log_loss_and_labels_may_be_arrays():
    labels = np.array(["a", "b", "c"], dtype=object)[np.digitize(Y, [-0.5, 0.5])]
    found = tune(X, labels, trials=4)
    assert found.table[0]["rows"] == N
    assert 0.0 < -found.score < -0.8 * found.constant_score
    assert found.figures["log_loss"] == -found.score


def test_test_rows_have_no_part_in_it():
    split = pa.array(np.where(np.arange(N) % 9 == 0, "test", "train"))
    table = TABLE.append_column("part", split)
    spoiled = table.set_column(3, "y", pa.array(np.where(np.asarray(split) == "test", 1e6, Y)))
    first, second = (tune(one, split="part", trials=4) for one in (table, spoiled))
    assert first.table[0]["rows"] == N - N // 9 - 1
    assert (first.config, first.score) == (second.config, second.score)
    assert first.test_score.value != second.test_score.value


def test_more_rows_help_as_the_curve_says(tuning):
    curve = tuning.learning_curve
    assert [row["rows"] for row in curve] == [N // part for part in (16, 8, 4, 2, 1) if N // part >= 80]
    assert curve[0]["score"] < curve[-1]["score"] == tuning.score
    low, high = tuning.twice_rows
    assert tuning.score <= low <= high < 1.0
    assert any(note.startswith("With half of the rows to learn from, the R² is ") for note in tuning.notes)


@pytest.mark.parametrize("power", [0.0, 0.25, 1.0])
def test_the_range_for_twice_the_rows_holds_a_power_law(power):
    def trial(n):
        error = n**-power
        return Trial(1, DEFAULT, Size(n, 8, 1), Outcome(1.0 - error, (1.0 - error,) * 40, 0.0, 8))

    low, high = with_twice_the_rows([trial(n) for n in (2, 4, 8, 16)], 1.0)
    assert low == pytest.approx(high) == pytest.approx(1.0 - 32.0**-power)


def test_a_rule_divides_the_rows():
    numbers = np.arange(100_000)
    every = rule_of_share(0, 1.0, Folds(), 0.25, 1.0)
    learned, scored = every.learned(numbers, None), every.scored(numbers, None)
    assert (learned ^ scored).all()
    assert abs(scored.mean() - 0.25) < 0.01
    half, fewer = (rule_of_share(0, limit, Folds(), 0.25, share) for limit, share in ((1.0, 0.5), (0.2, 1.0)))
    assert (half.scored(numbers, None) == scored).all()
    assert (half.learned(numbers, None) <= learned).all()
    assert abs(half.learned(numbers, None).mean() - 0.375) < 0.01
    assert abs(fewer.learned(numbers, None).mean() - 0.15) < 0.01
    assert abs(fewer.scored(numbers, None).mean() - 0.05) < 0.01


def test_rules_by_keys_keep_groups_and_times_apart():
    values = np.floor(np.arange(10_000) / 7.0)
    numbers = np.arange(10_000)
    for ordered in (False, True):
        rule = rule_of_share(0, 1.0, Folds.by(RowKeys(values, ordered), 4), 0.25, 1.0)
        learned, scored = rule.learned(numbers, values), rule.scored(numbers, values)
        assert not set(values[learned]) & set(values[scored])
        assert values[scored].min() > values[learned].max() or not ordered


def test_words_take_part_in_it_and_in_a_split():
    table = _texts(N)
    table = table.append_column("split", pa.array(np.where(np.arange(N) % 8 == 0, "test", "train")))
    tuning = tune(table, columns=32, trials=4, split="split", seeds=1)
    assert tuning.table[0]["rows"] == tuning.test_score.rows * 7 == N * 7 // 8
    assert tuning.test_score.value > 0.5


def test_categories_of_many_values_take_part_in_it():
    """All rows have ten times as many of each value as the sample, so that the means tell more."""
    tuning = tune(_shops(10 * FEW).drop_columns(["noise"]), trials=4, seeds=1)
    assert tuning.table[0]["rows"] == 10 * FEW
    assert tuning.score > 0.8


def test_trees_with_folds_by_groups_take_part_in_it(monkeypatch):
    monkeypatch.setattr("kafeat.study.tune.space._TREES", 16)
    rows, labels = thresholds(N)
    table = pa.table({**{f"x{j}": x for j, x in enumerate(rows.T)}, "y": labels})
    table = table.append_column("who", [[f"p{i % 300}" for i in range(N)]])
    trials = []
    tuning = tune(
        table, columns=8, trials=10, seeds=1, split_by="group:who", progress=lambda _, one: trials.append(one)
    )
    on_all = [one for one in trials if one.size.rows == N and one.candidate.trees != "none"]
    assert on_all
    assert not [one.outcome.failure for one in on_all if one.outcome.failure]
    assert "group: who" in tuning.yaml
    assert tuning.table[0]["rows"] == N
    assert tuning.fit().columns.names[-1] == "who"


@pytest.mark.parametrize(("n", "learned"), [(5000, f"{3 * FEW // 4:,} of the 5,000"), (FEW, None)])
def test_scores_of_models_of_a_small_part_of_the_rows_are_told(n, learned):
    X = np.random.default_rng(0).normal(size=(n, 2))
    notes = tune(X, X[:, 0], trials=1, rows=FEW).notes
    said = [one for one in notes if "The scores come from models" in one]
    assert len(said) == (learned is not None)
    assert all(f"learned from {learned} rows. A model that is fitted" in one for one in said)
