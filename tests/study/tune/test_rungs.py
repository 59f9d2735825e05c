"""Which trial comes next: the table of rungs, their numbers, and the one rule of time."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from kafeat.contract.folds import RowKeys
from kafeat.maths.scoring import SCORES
from kafeat.study.tune.choice import Choice, choose
from kafeat.study.tune.rungs import ENDED, RUNGS, Search, rungs_of
from kafeat.study.tune.space import DEFAULT, NO_TREES, RAW, Candidate, SearchSpace
from kafeat.study.tune.trials import Outcome, Size
from tests.study.tune.test_tune import _table_of, mixed

KERNELS = [Candidate("quantile", "none", kernel) for kernel in ("laplacian", "rbf", "matern 1/2")]


def _ended(scores):
    """A search whose trials have these scores and noises."""
    size, rng = Size(100, 16, 2), np.random.default_rng(0)
    outcomes = {
        candidate: Outcome(score, tuple(score + rng.normal(scale=noise, size=40)), 0.0)
        for candidate, score, noise in scores
    }
    search = Search(
        space=None, rungs=[(RUNGS[0], size)], run=lambda one, *_: outcomes[one], screened=lambda *_: []
    )
    search._make_all(outcomes, 0, size)
    return search


def test_the_highest_score_is_chosen_and_of_equal_ones_the_simpler_map():
    simple, trained = DEFAULT, Candidate("standardize", "none", "supervised", None)
    close = _ended([(simple, 0.90, 0.05), (trained, 0.91, 0.05)])
    assert close.leaderboard()[0].candidate == trained
    # Of 40 resampled values around 0.91, the standard error is 0.005, half of it more with the rows that splits share.
    kernel = KERNELS[0]
    for loss, best in ((0.0, kernel), (4e-5, kernel), (4e-4, trained)):
        ended = _ended([(trained, 0.91, 0.005), (kernel, 0.91 - loss, 0.005)])
        assert ended.leaderboard()[0].candidate == best
    # but it is not worse than the default map
    level = _ended([(trained, 0.91, 0.005), (kernel, 0.91 - 4e-5, 0.005), (simple, 0.91 - 2e-5, 0.005)])
    assert level.leaderboard()[0].candidate == simple


def test_of_maps_with_about_as_many_right_rows_the_one_with_the_lowest_log_loss_is_chosen():
    found = dict(zip(KERNELS, [(0.91, 0.50), (0.90, 0.30), (0.80, 0.10)], strict=True))
    for scoring, best in (("accuracy", KERNELS[1]), ("auc", KERNELS[0])):
        search = _ended([(one, score, 0.01) for one, (score, _) in found.items()])
        search.scoring, search.trials = SCORES[scoring], [
            replace(one, outcome=replace(one.outcome, figures={"log_loss": found[one.candidate][1]}))
            for one in search.trials
        ]  # fmt: skip
        assert search.leaderboard()[0].candidate == best
    # No worse than raw columns.
    raw = replace(search.trials[0], candidate=RAW, outcome=replace(search.trials[0].outcome, score=0.905))
    search.scoring, search.trials = SCORES["accuracy"], [*search.trials, raw]
    assert search.leaderboard()[0].candidate == KERNELS[0]


def test_a_simpler_map_within_the_noise_is_not_chosen_if_it_is_below_the_floor():
    metric, both = (Candidate("standardize", "metric", kernel) for kernel in ("rbf", "supervised"))
    ended = _ended([(metric, 0.85, 0.2), (both, 0.91, 0.005), (RAW, 0.88, 0.005)])
    assert ended.leaderboard()[0].candidate == both


def searched(most=None, seconds=np.inf, cost=lambda _: 0.1, rows=4000, clock=None):
    """A search on a real space and a clock of its own, whose scores are drawn at random."""
    space = SearchSpace(_table_of(mixed().drop_columns(["id"])))
    clock = [0.0] if clock is None else clock

    def run(candidate, size, limit):
        took = cost(candidate) * size.work / 4500.0
        clock[0] += min(took, limit)
        if took > limit:
            raise TimeoutError
        score = np.random.default_rng([*str(candidate).encode()]).random()
        return Outcome(score, tuple(score + np.arange(40) * 1e-6), took, size.width)

    search = Search(
        space=space, rungs=rungs_of(min(rows, 10_000), rows, 64, 2, None), run=run, most_trials=most,
        seconds=seconds, screened=lambda *_: KERNELS, started=0.0,
    )  # fmt: skip
    search.search()
    return search


@pytest.mark.parametrize("most", [1, 2, 3, 4, 5, 8, 20, 30])
@pytest.mark.parametrize("rows", [300, 4000, 50_000])
def test_a_number_of_trials_is_that_number(most, rows):
    search = searched(most, rows=rows)
    assert [trial.number for trial in search.trials] == list(range(1, most + 1))
    assert (most < 4) == (search.trials[-1].size.rows <= 3000 and search.trials[-1].size.held == 0.25)


def test_the_first_candidates_are_the_default_raw_columns_the_screened_kernels_and_trees():
    pytest.importorskip("lightgbm")
    made = [trial.candidate for trial in searched().trials]
    assert made[:3] == [DEFAULT, RAW, KERNELS[0]]
    assert any(one.trees != NO_TREES for one in made[:10])
    assert [one for one in made if one in KERNELS[1:]][:2] == KERNELS[1:]


def test_the_best_of_a_rung_goes_on_first_with_trees_and_without():
    search = searched(rows=50_000)
    sizes = [size for _, size in search.rungs]
    assert [(size.rows, size.splits, size.held) for size in sizes] == [
        (3000, 2, 0.25), (6000, 2, 0.25), (50_000, 1, 0.1)
    ]  # fmt: skip
    for before, size in pairwise(sizes):
        ranked = [trial.candidate for trial in search._ranked(before)]
        entered = [trial.candidate for trial in search.trials if trial.size == size]
        assert len(entered) == 5
        assert entered[0] == ranked[0]
        assert {RAW, DEFAULT} & set(ranked) <= set(entered)
        assert len({one.trees == NO_TREES for one in entered}) == len(
            {one.trees == NO_TREES for one in ranked}
        )


@pytest.mark.sampled
@pytest.mark.parametrize("seconds", [10.0, 40.0, 100.0, 300.0])
@pytest.mark.parametrize("slow", [1.0, 3.0, 30.0])
@pytest.mark.parametrize("rows", [300, 4000, 50_000])
def test_a_search_keeps_its_time_and_its_leader_goes_on(monkeypatch, seconds, slow, rows):
    clock = [0.0]
    monkeypatch.setattr("kafeat.study.tune.rungs.time.monotonic", lambda: clock[0])
    search = searched(
        seconds=seconds, cost=lambda one: slow if one.complexity else 1.0, rows=rows, clock=clock
    )
    leaders = [search._ranked(size)[0] for size in dict.fromkeys(one.size for one in search.trials)]
    assert clock[0] <= 0.9 * seconds
    # The leader is fitted on more rows if half of the time that is left is enough for a tenth of them.
    assert len(leaders) > 1 or leaders[0].outcome.seconds > 0.05 * seconds
    assert search.cut_by_time or not any(one.outcome.failure for one in search.trials)
    choose(search, Choice.of(search), predicts=True, with_curve=True)
    assert clock[0] <= seconds
    assert search.complete or not search.later


def test_a_trial_that_is_ended_and_a_rung_that_is_cut_are_told():
    clock = [0.0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kafeat.study.tune.rungs.time.monotonic", lambda: clock[0])
        search = searched(seconds=60.0, cost=lambda one: 1e9 if one.map == "supervised" else 0.1, clock=clock)
    ended = [one for one in search.trials if one.outcome.failure == ENDED]
    assert [(one.candidate.map, one.candidate.metric) for one in ended] == [
        ("supervised", "metric"), ("supervised", "none")
    ]  # fmt: skip
    assert (search.ended_early, search.cut_by_time) == (True, True)
    assert search.best_score.size.held == 0.1  # the others went on


def test_a_rung_that_became_smaller_is_what_the_next_one_is_planned_by(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("kafeat.study.tune.rungs.time.monotonic", lambda: clock[0])
    search = searched(seconds=60.0, cost=lambda _: 3.0, rows=50_000, clock=clock)
    made = list(dict.fromkeys(trial.size for trial in search.trials))
    # 3 s for 4,500 rows learned from: 6 s do not fit into half of 9 s, nor 30 s for 45,000 rows.
    assert [(size.splits, size.one_pass) for size in made] == [(2, False), (1, False), (1, True)]
    assert 6000 < made[-1].rows < 50_000


@pytest.mark.parametrize(("rows", "ordered", "wanted"), [
    (500, None, (500, 10, 0.1)),
    (500, False, (500, 10, 0.1)),
    (500, True, (500, 2, 0.25)),  # the first tenths of times would be learned from few rows
    (5000, True, (5000, 2, 0.25)),
    (4000, None, (4000, 8, 0.1)),
    (6800, None, (6000, 5, 0.1)),
    (8000, None, (8000, 1, 0.25)),
    (12_500, None, (12_500, 1, 0.16)),
    (10**6, None, (10**6, 1, 0.1)),
    (10**6, False, (10**6, 1, 0.25)),
])  # fmt: skip
def test_the_last_rung_has_models_of_nearly_all_rows(monkeypatch, rows, ordered, wanted):
    monkeypatch.setattr("kafeat.study.tune.rungs._SCORED", 3000)
    keys = None if ordered is None else RowKeys(np.arange(float(rows)), ordered)
    size = rungs_of(min(rows, 10_000), rows, 64, 2, keys)[-1][1]
    assert (size.rows, size.splits, size.held) == wanted
    assert rungs_of(min(rows, 10_000), rows, 64, 40, None)[-1][1].splits in (1, 40)


def test_fewer_rows_that_are_asked_for_have_no_last_rung():
    assert rungs_of(500, 300, 64, 2, None) == [(RUNGS[0], Size(500, 64, 2))]
