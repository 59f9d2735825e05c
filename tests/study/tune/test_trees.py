"""Columns of trees beside a map: one budget of columns, the same choice for any jobs, and a search without LightGBM."""

import sys

import numpy as np
import pyarrow as pa
import pytest

import kafeat
from kafeat.chain.chain import Chain, FitCache
from kafeat.contract.step import Sample
from kafeat.registry import build_step
from kafeat.study.tune.input import load_start
from kafeat.study.tune.options import TuneOptions
from kafeat.study.tune.problem import Problem
from kafeat.study.tune.scorer import Scorer
from kafeat.study.tune.space import DEFAULT, GROWTHS, RAW, Candidate, SearchSpace
from kafeat.study.tune.trials import Budget
from tests.study.tune.test_tune import _table_of, _texts, mixed

pytest.importorskip("lightgbm")


def thresholds(n=600, classes=0):
    """Rows whose label is a sum of steps of single columns, or the class of that sum."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1.0, 1.0, (n, 6))
    steps = ((rows[:, :4] > [0.1, -0.3, 0.2, 0.5]) * [1.0, 2.0, 3.0, 4.0]).sum(axis=1)
    return rows, steps % classes if classes else steps + 0.1 * rng.normal(size=n)


def grown(like=DEFAULT, **fields):
    """A candidate with trees."""
    return Candidate(**{**vars(like), "trees": "6 folds", **fields})


def union_of(steps):
    (union,) = steps
    return union["maps"]


def test_thresholds_get_columns_of_trees():
    rows, labels = thresholds()
    first = kafeat.tune(rows, labels, 64, trials=10, seeds=1)
    assert "kind: trees" in first.yaml
    alone = max(row["score"] for row in first.table if "trees" not in row["map"])
    assert first.score > alone + 2.0 * first.error
    fm = first.fit()
    assert fm.n_components == first.columns <= 64
    test, truth = thresholds(5000)
    predicted = kafeat.fit({"steps": [*first.config.to_plain()["steps"], {"kind": "ridge"}]}, rows, labels)
    error = ((predicted.predict(test) - truth) ** 2).mean() / truth.var()
    assert 1.0 - error > alone


@pytest.mark.sampled
@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("width", [8, 32])
def test_the_columns_of_all_parts_are_those_that_were_asked_for(growth, width):
    """A union has as many columns as the map alone, and trees have no more than half of them."""
    rows, labels = thresholds()
    space = SearchSpace(_table_of(_as_table(rows, labels), split=None))
    for columns in (4, 64):
        steps = space.steps(grown(trees=growth, tree_columns=columns), width, 500)
        assert kafeat.fit({"steps": steps}, _as_table(rows, labels), "y").n_components == width
        trees = [part["steps"][-1] for part in union_of(steps)[1:]]
        assert sum(one["n_components"] for one in trees) == min(columns, width // 2)


def _as_table(rows, labels):
    return pa.table({**{f"x{j}": x for j, x in enumerate(rows.T)}, "y": labels})


def test_the_factor_is_the_size_of_the_columns_of_trees_to_that_of_a_kernel():
    """A kernel map of D columns with k(x, x) = 1 has the mean square 1/D, which trees have times factor²."""
    rows, labels = thresholds()
    table = _as_table(rows, labels)
    space, width = SearchSpace(_table_of(table, split=None)), 64
    for factor in (1.0, 3.0, 10.0):
        steps = space.steps(grown(factor=factor), width, len(rows))
        Z = np.asarray(kafeat.fit({"steps": steps, "dtype": "float64"}, table, "y").transform(table))
        size = np.sqrt((Z[:, -16:] ** 2).mean())
        # The scale is written with two digits, so it is off by at most a twentieth.
        assert size * np.sqrt(width) == pytest.approx(factor, rel=0.05)


def test_trees_read_categories_times_and_gaps_beside_every_map():
    table = mixed().drop_columns(["id"])
    space = SearchSpace(_table_of(table))
    maps = [RAW, Candidate("quantile", "none", "rbf"), Candidate("quantile", "none", "rbf", union=True)]
    for like in (*maps, Candidate("none", "none", "trees", None)):
        steps = space.steps(grown(like), 32, 200)
        fm = kafeat.fit({"steps": [*steps, {"kind": "ridge"}]}, table, "y", "split")
        assert np.isfinite(fm.predict(table)).all()
        assert "'categories': ['town']" in str(steps)
        assert "'cyclic': False" in str(steps)


def test_trees_stand_beside_words_and_read_none():
    table = _texts()
    space = SearchSpace(_table_of(table, split=None))
    parts = union_of(space.steps(grown(), 64, 300))
    assert [part["columns"] for part in parts] == [["x"], ["text"], ["x"]]
    alone = grown(Candidate("none", "none", "trees", None))
    for candidate, width in ((grown(), 64), (alone, 16)):
        steps = space.steps(candidate, 64, 300)
        assert kafeat.fit({"steps": steps}, table, "y").n_components == width


def test_two_columns_for_each_class_are_tried_and_one_for_each_sum_at_least():
    rows, labels = thresholds(classes=10)
    space = SearchSpace(_table_of(_as_table(rows, labels), split=None))
    first, raw, alone = space.with_trees(DEFAULT)
    assert (first.tree_columns, raw.map, alone.map) == (20, "raw", "trees")
    near = list(space.neighbours(first))
    assert {one.trees for one in near} == {"none", "4 folds", "6 folds"}
    assert {one.factor for one in near} == {1.0, 3.0, 10.0}
    assert DEFAULT in near
    assert first in space.neighbours(DEFAULT)


@pytest.mark.parametrize(("classes", "trees", "folds"), [(2, 300, 6), (4, 60, 4), (60, 60, 4)])
def test_many_classes_get_fewer_trees_each_and_very_many_are_mixed(monkeypatch, classes, trees, folds):
    monkeypatch.setattr("kafeat.study.tune.space._TREES", 300)
    monkeypatch.setattr("kafeat.study.tune.space._LEARNED", 15.0)
    monkeypatch.setattr("kafeat.study.tune.space.GROWTHS", GROWTHS)
    rows = np.random.default_rng(0).normal(size=(300, 3))
    table = _as_table(rows, [f"c{i % classes}" for i in range(300)])
    space = SearchSpace(_table_of(table, split=None))
    first = next(space.with_trees(DEFAULT))
    step = union_of(space.steps(first, 512, 300))[-1]["steps"][-1]
    assert (step["n_trees"], step["n_folds"]) == (trees, folds)
    fm = kafeat.fit({"steps": [{**step, "n_trees": 16, "n_folds": 2}]}, table, "y")
    outputs = fm.chain.steps[0].state["features"].shape[1]
    assert outputs == {2: 1, 4: 4, 60: 32}[classes]


def test_without_the_library_trees_are_left_out_and_a_note_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    rows, labels = thresholds(300)
    tuning = kafeat.tune(rows, labels, 16, trials=10, seeds=1, jobs=1, rows=20)
    assert not any("trees" in row["map"] for row in tuning.table)
    (note,) = [note for note in tuning.notes if "trees" in note]
    assert note.startswith("No columns of trees were tried: trees: expected ")
    assert "pip install 'kafeat[trees]'" in note


def test_parts_of_a_union_are_fitted_once_for_all_unions_that_share_them(monkeypatch):
    """A chain learns the same with the cache and without it."""
    rows, labels = thresholds(300)
    made = []
    step_class = type(build_step({"kind": "trees"}))
    fit = step_class.fit
    monkeypatch.setattr(step_class, "fit", lambda *given: made.append(1) or fit(*given))

    def steps(weight, gamma):
        kernel = [{"kind": "standardize"}, {"kind": "nystroem", "n_components": 8, "gamma": gamma}]
        trees = {"steps": [{"kind": "trees", "n_components": 4, "n_trees": 20}], "weight": weight}
        return [build_step({"kind": "union", "maps": [{"steps": kernel}, trees]})]

    sample, cache = Sample(rows, labels, len(rows)), FitCache()
    for given in ((1.0, 0.1), (9.0, 0.1), (9.0, 1.0)):
        shared, own = (
            Chain.fit(steps(*given), sample, np.random.default_rng(0), cache=one) for one in (cache, None)
        )
        assert np.array_equal(shared.transform(rows), own.transform(rows))
    assert len(made) == 4  # one for all chains with the cache


def test_a_report_says_what_each_part_of_a_union_is_worth(tmp_path):
    """Without trees there are the raw columns, and their trial has the same score."""
    pytest.importorskip("matplotlib")
    rows, labels = thresholds(200, classes=3)
    trials = []
    tuning = kafeat.tune(
        rows, labels, 32, trials=10, seeds=1, jobs=1, rows=20, report=str(tmp_path),
        progress=lambda _, trial: trials.append(trial),
    )  # fmt: skip
    both = next(one for one in trials if one.candidate.map == "raw" and one.candidate.trees != "none")
    raw = next(one for one in trials if one.candidate == RAW)
    table = _table_of(_as_table(rows, labels), split=None)
    asked, start = TuneOptions(None, "y", task="classification"), load_start(None)[0]
    scorer = Scorer(Problem(asked=asked, data=None, label="y", start=start, table=table, budget=Budget(32)))
    every, without_raw, without_trees = scorer.parts(both.candidate, both.size)
    # Products of matrices in another order of memory round in another way.
    assert every["score_without"] == pytest.approx(both.outcome.score, rel=1e-9)
    assert without_trees["score_without"] == pytest.approx(raw.outcome.score, rel=1e-9)
    parts = [(part["part"], part["columns"]) for part in (without_raw, without_trees)]
    assert parts == [("standardize", 6), ("trees", 16)]
    assert tuning.to_plain()["parts"] == list(tuning.parts)
    assert ("What each part is worth" in (tmp_path / "index.html").read_text()) == (len(tuning.parts) > 0)
