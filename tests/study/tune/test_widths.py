"""The number of columns: the knee of the curve, the bound of the bytes, and what is said at an edge."""

import numpy as np
import pytest

import kafeat
from kafeat.errors import UsageError
from kafeat.study.tune.choice import Choice
from kafeat.study.tune.choice import choose as choose_by
from kafeat.study.tune.rungs import RUNGS, Search
from kafeat.study.tune.space import RAW, Candidate
from kafeat.study.tune.trials import Budget, Outcome, Size

PLAIN = Candidate("standardize", "none", "laplacian")


def choose(budget, score, *, rows=8000, noise=0.0, predicts=False, raw=None):
    """The choice of a search with one map, where `score` of a map and a width is the score."""
    draws = np.random.default_rng(0)

    def run(candidate, size, _):
        value = raw if candidate == RAW else score(candidate, size.width)
        resampled = tuple(value + noise * draws.normal(size=40))
        return Outcome(value, resampled, 0.0, min(size.width, rows))

    size = Size(rows, budget.searched, 2)
    search = Search(
        space=None, rungs=[(RUNGS[0], size)], run=run, budget=budget, screened=lambda *_: [], most_trials=2
    )
    search._make_all((PLAIN,) if raw is None else (PLAIN, RAW), 0, size)
    choice = Choice.of(search)
    choose_by(search, choice, predicts, with_curve=False)
    return choice


def loss_of(losses):
    return lambda _candidate, width: 1.0 - losses[width]


def test_the_knee_is_where_doubling_takes_little_of_the_error():
    losses = {32: 0.4, 64: 0.2, 128: 0.1, 256: 0.098, 512: 0.097, 1024: 0.096}
    choice = choose(Budget(), loss_of(losses))
    assert [point.outcome.columns for point in choice.points] == list(losses)
    assert choice.chosen.outcome.columns == 128
    assert choice.reasons == [
        "128 columns are recommended: with more, every doubling takes away less than 3 % of the error, or no more than "
        "noise. 1,024 columns score best of those that were tried: by 0.004, 4 % of the error."
    ]
    assert choice.leaders[0].size.width == 512


def test_a_slow_gain_that_goes_on_counts_as_a_whole():
    """Each of three doublings takes 6 % of the error, and the last edge is told."""
    losses = {32: 0.9, 64: 0.7, 128: 0.5, 256: 0.47, 512: 0.44, 1024: 0.41}
    choice = choose(Budget(), loss_of(losses))
    assert choice.chosen.outcome.columns == 1024
    assert choice.reasons == ["1,024 columns score best of those that were tried; they are the most."]


def test_a_gain_within_the_noise_is_not_worth_its_columns():
    losses = {32: 0.4, 64: 0.2, 128: 0.1, 256: 0.09, 512: 0.09, 1024: 0.085}
    assert choose(Budget(), loss_of(losses), noise=0.05).chosen.outcome.columns == 128
    assert choose(Budget(), loss_of(losses)).chosen.outcome.columns == 256


def test_with_a_predictor_the_most_columns_within_noise_of_the_best_score_are_taken():
    losses = {32: 0.4, 64: 0.2, 128: 0.1, 256: 0.098, 512: 0.096, 1024: 0.097}
    assert choose(Budget(), loss_of(losses), predicts=True).chosen.outcome.columns == 512
    choice = choose(Budget(), loss_of(losses), noise=0.05, predicts=True)
    assert choice.chosen.outcome.columns == 1024
    assert choice.reasons == [
        "Of the widths that were tried, 1,024 columns are the most with a score within noise of the best, "
        "that of 512 columns: wider maps usually err less."
    ]
    # No worse than raw columns.
    assert (
        choose(Budget(), loss_of(losses), noise=0.05, predicts=True, raw=1.0 - 0.0965).chosen.columns == 512
    )


def test_no_knee_is_worse_than_raw_columns():
    losses = {32: 0.4, 64: 0.2, 128: 0.1, 256: 0.098, 512: 0.096, 1024: 0.095}
    assert choose(Budget(), loss_of(losses), raw=1.0 - 0.099).chosen.outcome.columns == 256
    assert choose(Budget(), loss_of(losses), raw=1.0 - 0.11).chosen.outcome.columns == 128
    assert choose(Budget(), loss_of(losses), raw=1.0 - 0.09).chosen.candidate == RAW


def test_the_fewest_columns_are_told_as_an_edge():
    choice = choose(Budget(), lambda _candidate, _width: 0.5)
    assert choice.chosen.outcome.columns == 32
    assert choice.reasons == ["32 columns score best of those that were tried."]


@pytest.mark.parametrize(
    ("most", "widths"), [(1024, [16, 32, 64, 128, 256]), (2800, [32, 64, 128, 256, 512, 700])]
)
def test_bytes_bound_the_columns_that_are_tried(most, widths):
    choice = choose(Budget(bytes_per_row=most), lambda _candidate, width: 1.0 - 1.0 / width)
    assert [point.outcome.columns for point in choice.points] == widths
    assert choice.chosen.outcome.columns == most // 4
    assert choice.reasons == [
        f"{most // 4} columns score best of those that were tried within the bounds; they are the most."
    ]


def test_bounds_that_no_map_can_keep_are_refused():
    X = np.random.default_rng(0).normal(size=(60, 2))
    told = "max_bytes_per_row: expected at least 8 for 2 columns of float32, got 4"
    with pytest.raises(UsageError, match=told):
        kafeat.tune(X, X[:, 0], jobs=1, max_bytes_per_row=4)


def test_the_config_has_the_columns_that_were_recommended():
    X = np.random.default_rng(0).normal(size=(300, 2))
    tuning = kafeat.tune(X, np.sin(X[:, 0]), trials=2, max_bytes_per_row=512, jobs=1)
    assert [row["columns"] for row in tuning.curve] == [16, 32, 64, 128]
    assert tuning.config.steps[-1].n_components == tuning.columns
    assert [row["columns"] for row in tuning.curve if row["chosen"]] == [tuning.columns]
    assert [row["bytes_per_row"] for row in tuning.curve] == [64, 128, 256, 512]
    assert "R² over columns, of the chosen map:" in tuning.yaml
    assert "--max-bytes-per-row 512 --seeds 2 --trials 2" in tuning.yaml
    assert tuning.fit().n_components == tuning.columns


@pytest.mark.parametrize(("width", "told"), [(40, True), (6, False)])
def test_raw_columns_that_are_too_many_and_score_better_are_named(width, told):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, width))
    found = kafeat.tune(X, X @ rng.normal(size=width), columns=8, trials=3)
    assert found.columns == min(width, 8)  # and so they are not chosen
    assert any(f"The {width} raw columns scored 1.0000" in note for note in found.notes) is told
