"""`split_by`: groups and times by which rows are held out wherever a fit chooses, the same from every format."""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import kafeat
from kafeat.errors import ConfigError, DataError, UsageError
from tests.recipes import words

RNG = np.random.default_rng(0)
GROUPS, EACH = 40, 20
N = GROUPS * EACH
OF = RNG.permutation(np.repeat(np.arange(GROUPS), EACH))
CENTRES = RNG.normal(size=(GROUPS, 4))
X = CENTRES[OF] + 0.2 * RNG.normal(size=(N, 4))
# A property of the groups, which rows of other groups say nothing about.
Y = RNG.normal(size=GROUPS)[OF]
DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=i) for i in range(N)]
TABLE = pa.table([*X.T, [f"p{i}" for i in OF], OF, DAYS, Y], names=words("x0 x1 x2 x3 who number day y"))
STEPS = [{"kind": "standardize"}, {"kind": "nystroem", "n_components": 64}, {"kind": "ridge"}]
CONFIG = {"columns": {"include": ["x*"]}, "steps": STEPS}


def scores(data, config=CONFIG, **options):
    return kafeat.fit(config, data, "y", jobs=1, **options).provenance.searches[-1].scores


def test_the_penalty_is_chosen_on_other_groups():
    random, grouped = scores(TABLE), scores(TABLE, split_by="group:who")
    assert max(random) > 0.5
    assert max(grouped) < 0.15
    assert scores(TABLE, {**CONFIG, "split_by": "group:who"}) == grouped


def test_numbers_and_text_name_the_same_rows():
    """The parts differ, as the values do, but both see that nothing is learned."""
    assert max(scores(TABLE, split_by="group:number")) < 0.15


@pytest.mark.sampled
@pytest.mark.parametrize("split_by", ["group:who", "group:number", "group:day", "time:day", "time:number"])
def test_all_formats_give_the_same_model(tmp_path, split_by):
    pa_csv.write_csv(TABLE, tmp_path / "t.csv")
    pq.write_table(TABLE, tmp_path / "t.parquet", row_group_size=90)
    feather.write_feather(TABLE, tmp_path / "t.arrow")
    floats = TABLE.set_column(5, "number", TABLE["number"].cast(pa.float64()))
    found = [
        scores(str(tmp_path / name), split_by=split_by) for name in ("t.csv", "t.parquet", "t.arrow")
    ] + [scores(TABLE, split_by=split_by), scores(floats, split_by=split_by)]
    assert all(one == found[0] for one in found)


def test_a_group_is_no_feature_and_a_time_may_be_one():
    config = {**CONFIG, "columns": {"exclude": ["x1", "x2", "x3"]}}
    grouped = kafeat.fit(config, TABLE, "y", jobs=1, split_by="group:number")
    timed = kafeat.fit(config, TABLE, "y", jobs=1, split_by="time:number")
    assert grouped.columns.names == ("x0",)
    assert timed.columns.names == ("x0", "number")


def test_later_rows_are_judged_by_earlier_ones():
    """The label turns with time: rows between say what a row is, and earlier ones do not."""
    t = np.sort(RNG.uniform(0.0, 20.0, N))
    table = pa.table({"x": t, "t": t, "y": np.sin(t) + 0.1 * RNG.normal(size=N)})
    config = {"columns": {"include": ["x"]}, "steps": [*STEPS[:1], {**STEPS[1], "gamma": 30.0}, STEPS[2]]}
    assert max(scores(table, config)) > 0.9
    assert max(scores(table, config, split_by="time:t")) < 0.3


def test_steps_that_see_the_label_hold_whole_groups_out():
    config = {**CONFIG, "steps": [STEPS[0], {"kind": "metric"}, *STEPS[1:]]}
    errors = [
        kafeat.fit(config, TABLE, "y", jobs=1, split_by=way).chain.steps[1].state["error_kept"]
        for way in (None, "group:who")
    ]
    assert errors[0] < 0.5 < 0.9 < errors[1]


def test_values_of_validate_are_judged_on_other_groups():
    steps = [STEPS[0], {**STEPS[1], "gamma": {"validate": [0.1, 1.0]}}]
    for folds in (None, 3):
        config = {**CONFIG, "steps": steps, "search": {"folds": folds}}
        found = kafeat.fit({**config, "split_by": "group:who"}, TABLE, "y").provenance.searches[0].scores
        assert max(found) < 0.3 < max(kafeat.fit(config, TABLE, "y").provenance.searches[0].scores)


def test_logistic_chooses_on_other_groups():
    labels = pa.array(np.where(RNG.normal(size=GROUPS) > 0, "a", "b")[OF])
    table = TABLE.set_column(7, "y", labels)
    config = {**CONFIG, "steps": [*STEPS[:2], {"kind": "logistic"}]}
    assert max(scores(table, config)) > 0.3
    assert max(scores(table, config, split_by="group:who")) < 0.1


@pytest.mark.parametrize(("split_by", "error", "message"), [
    ("grop:who", UsageError, "split_by: expected group:COL or time:COL, got 'grop:who'"),
    ("group:whom", DataError, "--split-by: expected the column 'whom' .did you mean 'who'"),
    ("group:y", UsageError, "--split-by: expected another column than those of the label and the split"),
    ("time:who", DataError, "row 1 .*column 'who': expected a time such as .*, got 'p"),
])  # fmt: skip
def test_what_cannot_be_is_refused(split_by, error, message):
    with pytest.raises(error, match=message):
        kafeat.fit(CONFIG, TABLE, "y", split_by=split_by)
    with pytest.raises(ConfigError, match="split_by: expected group:COL or time:COL, got 'who'"):
        kafeat.fit({**CONFIG, "split_by": "who"}, TABLE, "y")


def test_missing_groups_are_a_group_and_missing_times_are_refused():
    missing = pa.array([None if i % 7 == 0 else f"p{g}" for i, g in enumerate(OF)])
    assert max(scores(TABLE.set_column(4, "who", missing), split_by="group:who")) < 0.6
    days = pa.array([None if i == 3 else i for i in range(N)], pa.float64())
    with pytest.raises(DataError, match="row 4 .*column 'day': expected a time .*got null"):
        kafeat.fit(CONFIG, TABLE.set_column(6, "day", days), "y", split_by="time:day")
