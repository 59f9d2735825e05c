"""Rows that repeat: what is held out of a fit has not told its labels to the codes that it is judged by."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.contract.folds import Cut, Folds
from kafeat.contract.step import knows_own_labels
from kafeat.types import Array, Floats

ROWS, VALUES = 1600, 100


def town(rng: np.random.Generator, rows: int = ROWS) -> tuple[pa.Table, Array]:
    codes = rng.integers(0, VALUES, rows)
    table = pa.table({
        "town": [f"t{code:02}" for code in codes], "part": rng.integers(0, 40, rows), "weight": rng.uniform(1, 2, rows),
    })  # fmt: skip
    return table, codes


def fitted(table: pa.Table, y: Any, steps: list[Any], **options: Any) -> kafeat.FeatureMap:
    config = {"columns": {"include": ["town"]}, "steps": steps}
    return kafeat.fit(config, table, label=y, **options)


STEPS: list[Any] = [
    {"kind": "target", "columns": ["town"]},
    {"kind": "trees", "categories": ["town"], "n_trees": 20, "min_leaf_rows": 2, "n_components": 2},
]


@pytest.mark.sampled
@pytest.mark.parametrize("step", STEPS, ids=["target", "trees"])
@pytest.mark.parametrize(
    "options",
    [{}, {"weight": "weight"}, {"split_by": "time:part"}, {"class_weight": "balanced"}],
    ids=["plain", "weight", "time", "classes"],
)
def test_a_penalty_is_chosen_on_rows_that_the_codes_have_not_seen(step, options):
    """Of a label of noise, codes that know it explain 100/1067 of the rows of two parts, and as much of the third."""
    rng, best = np.random.default_rng(2), []
    for _ in range(3):
        table, _ = town(rng)
        y = rng.integers(0, 2, ROWS) if "class_weight" in options else rng.standard_normal(ROWS)
        fm = fitted(table, y, [step, "ridge"], intervals=False, **options)
        assert knows_own_labels(fm.chain.steps[0].state)
        [search] = fm.provenance.searches
        assert search.chosen == search.values[int(np.argmax(search.scores))]
        assert fm.needed_predictor().fitted.step.penalty == search.chosen
        best.append(max(search.scores))
    # the best of 21 penalties: three standard errors √(2/1600) each, and the mean of three
    assert np.mean(best) < 3 * np.sqrt(2 / ROWS / 3) < VALUES / ROWS


def predicted_r2(fm: kafeat.FeatureMap, table: pa.Table, y: Floats) -> float:
    return 1.0 - float(((y - fm.predict(table)) ** 2).mean() / y.var())


@pytest.mark.parametrize("step", STEPS, ids=["target", "trees"])
def test_predictions_of_noise_are_no_worse_than_the_mean(step):
    rng, found = np.random.default_rng(3), []
    for _ in range(3):
        (table, _), y = town(rng, 2 * ROWS), rng.standard_normal(2 * ROWS)
        fm = fitted(table.slice(0, ROWS), y[:ROWS], [step, "ridge"], intervals=False)
        found.append(predicted_r2(fm, table.slice(ROWS), y[ROWS:]))
    # codes of all rows with the least penalty would have −100/1600
    assert np.mean(found) > -0.5 * VALUES / ROWS


@pytest.mark.parametrize("step", STEPS, ids=["target", "trees"])
def test_a_chain_reaches_what_the_means_of_the_values_reach(step):
    rng = np.random.default_rng(4)
    (table, codes), effects = town(rng, 2 * ROWS), rng.standard_normal(VALUES)
    y = effects[codes] + 0.5 * rng.standard_normal(2 * ROWS)
    fm = fitted(table.slice(0, ROWS), y[:ROWS], [step, "ridge"], intervals=True)
    assert predicted_r2(fm, table.slice(ROWS), y[ROWS:]) > 1 - 0.25 / y.var() - 2 * VALUES / ROWS
    low, high = fm.predict_interval(table.slice(ROWS), 0.9).T
    # √(0.09/1600) for the rows to judge by, and as much for those that the interval comes from: three of both
    assert abs(np.mean((low <= y[ROWS:]) & (y[ROWS:] <= high)) - 0.9) < 3 * np.sqrt(2 * 0.09 / ROWS)
    two = fitted(table.slice(0, ROWS), y[:ROWS], [step, "ridge"], intervals=True, jobs=2)
    assert two.dumps() == fm.dumps()


@pytest.mark.parametrize("ordered", [False, True])
def test_folds_of_one_cut(ordered):
    folds = Folds(np.array([1.0, 2.0]), ordered)
    cuts = [Cut((0,), 1), Cut((0, 1), 2)] if ordered else [Cut((1, 2), 0), Cut((0, 2), 1), Cut((0, 1), 2)]
    assert folds.cuts == cuts
    for cut in cuts:
        assert Folds(folds.edges, ordered, cut.held).cuts == [cut]
