"""Fit on the rows that a rule names, and predict those that it holds out."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.config import load_config
from kafeat.contract.folds import Folds
from kafeat.io.readers.memory import reader_of
from kafeat.jobs.fit.fit import read_sample
from kafeat.jobs.fit.held_out import RowRule, map_of_rows, predicted, rows_in
from kafeat.jobs.fit.label_summary import LabelSummary
from kafeat.jobs.fit.predictor import PredictorJob
from kafeat.jobs.fit.sample import TrainingData

N = 300
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
GROUPS = RNG.integers(0, 20, N)
TEST = RNG.random(N) < 0.3
TABLE = pa.table({
    "a": X[:, 0], "b": X[:, 1], "who": [f"p{i}" for i in GROUPS], "part": np.where(TEST, "test", "train"),
    "w": RNG.integers(1, 4, N).astype(float), "y": np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.1 * GROUPS,
})  # fmt: skip
# A step that learns from labels of all rows, one that is fitted on the sample, and a small chunk.
CONFIG = {
    "columns": {"include": ["a", "b", "who"]},
    "chunk_rows": 64,
    "steps": [
        {"kind": "target", "columns": ["who"]},
        "standardize",
        {"kind": "fourier", "n_components": 16},
        "ridge",
    ],
}


def started(config=CONFIG, table=TABLE, split=None):
    """Return the sample and the job of a fit on all rows, or on those of train."""
    summary, data = LabelSummary(), TrainingData(reader_of(table), ("y",), split, weight="w")
    sampled = read_sample(load_config(config), data, summary=summary)
    return sampled, PredictorJob(data, summary, Folds.by(sampled.keys), 1)


def test_a_rule_of_row_numbers_gives_what_a_fit_with_test_rows_gives():
    sampled, job = started()
    _, of_train = started(split="part")
    rule = RowRule(lambda numbers, _: ~TEST[numbers], lambda numbers, _: TEST[numbers])
    # The unit of the labels is that of all rows that are read.
    job = replace(job, summary=of_train.summary)
    fm, rows = predicted(sampled.of_rows(rule.learned), job, rule)
    known = kafeat.fit(CONFIG, TABLE, "y", split="part", weight="w", intervals=False)
    np.testing.assert_array_equal(rows.results[:, 0], known.predict(TABLE)[TEST])
    np.testing.assert_array_equal(rows.labels, TABLE["y"].to_numpy()[TEST])
    np.testing.assert_array_equal(rows.weights, TABLE["w"].to_numpy()[TEST])
    np.testing.assert_array_equal(rows.taken, TEST)
    np.testing.assert_array_equal(fm.transform(TABLE), known.transform(TABLE))


def test_labels_of_other_rows_have_no_part_in_what_is_predicted():
    """Neither those of the rows to score on, nor of those that the rule leaves out."""
    neither = np.arange(N) % 5 == 0
    rule = RowRule(
        lambda numbers, _: (~TEST & ~neither)[numbers], lambda numbers, _: (TEST & ~neither)[numbers]
    )
    labels = TABLE["y"].to_numpy()
    other = np.where(neither | TEST, labels + 100.0, labels)
    _, of_labels = started()
    found = []
    for y in (labels, other):
        sampled, job = started(table=TABLE.set_column(TABLE.column_names.index("y"), "y", pa.array(y)))
        job = replace(job, summary=of_labels.summary)
        found.append(predicted(sampled.of_rows(rule.learned), job, rule)[1])
    first, second = found
    np.testing.assert_array_equal(first.results, second.results)
    np.testing.assert_array_equal(first.labels, labels[TEST & ~neither])
    np.testing.assert_array_equal(second.labels, other[TEST & ~neither])


@pytest.mark.parametrize("split_by", [None, "group:who"])
def test_the_rules_of_the_cuts_hold_out_every_row_once_and_whole_groups(split_by):
    config = {
        **CONFIG, "split_by": split_by, "columns": {"include": ["a", "b"]}, "steps": CONFIG["steps"][1:],
    }  # fmt: skip
    sampled, job = started({name: value for name, value in config.items() if value})
    folds, held = Folds.by(sampled.keys, 4) if split_by else Folds(random=5), np.zeros(N, int)
    for cut in folds.cuts:
        rule = RowRule.of_cut(cut, folds, 0)
        _, rows = predicted(sampled.of_rows(rule.learned), job, rule)
        held += rows.taken
        learned = sampled.of_rows(rule.learned).chosen.result()[0]
        assert sorted([*learned, *np.flatnonzero(rows.taken)]) == list(range(N))
        if split_by:
            assert not set(GROUPS[learned]) & set(GROUPS[rows.taken])
    assert (held == 1).all()
    assert len(folds.cuts) == folds.count > 3


def test_rows_are_chosen_once():
    sampled, job = started()
    chosen = rows_in([0], job.folds, 0)
    _, own = map_of_rows(sampled.of_rows(chosen), job, chosen)
    with pytest.raises(TypeError, match="rows were already selected"):
        own.data.of_rows(chosen)
