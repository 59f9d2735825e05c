"""`tune --split-by time:COL` says what was held out, and compares with a constant that knows no later row."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import r2_score

import kafeat

N = 400
RNG = np.random.default_rng(0)
A, NOISE = RNG.standard_normal((2, N))
TIME = np.arange(N)


def tuned(y, **options):
    order = np.random.default_rng(1).permutation(N)
    table = pa.table({"t": TIME, "a": A, "y": y}).take(order)
    return kafeat.tune(
        table, "y", split_by="time:t", trials=2, columns=8, jobs=1, task="regression", **options
    )


@pytest.mark.parametrize("seeds", [1, 2])
def test_a_map_of_a_season_that_goes_up_is_better_than_the_mean_of_the_rows_before(seeds):
    y = A + 0.3 * NOISE + np.where(TIME < 240, 0.0, 3.0)
    tuning = tuned(y, seeds=seeds)
    held = [(slice(0, 320), slice(320, 400)), (slice(0, 240), slice(240, 320))][:seeds]
    truth = np.concatenate([y[late] for _, late in held])
    constants = np.concatenate([np.full(80, y[early].mean()) for early, _ in held])
    # R² is that of both parts together, with a mean for each of the rows before it
    assert tuning.constant_score == pytest.approx(r2_score(truth, constants), rel=1e-9)
    assert tuning.constant_score < -0.5
    parts = "the latest of 5 parts" if seeds == 1 else "each of the 2 latest of 5 parts"
    told = f"Rows held out: {parts} of 400 rows, by time:t, learned from those before it."
    assert any(note.startswith(told) for note in tuning.notes)
    assert parts in " ".join(line.lstrip("# ") for line in tuning.yaml.splitlines())


def test_another_season_in_the_rows_held_out_is_not_said_of_all_times():
    y = np.where(TIME < 320, A, -A) + 0.3 * NOISE
    notes = tuned(y, seeds=1).notes
    [told] = [note for note in notes if note.startswith("Rows held out:")]
    assert "those before it. The score is no better than a constant prediction" in told
    assert any("only for the held-out times. If they are another season" in note for note in notes)


def test_a_map_that_is_better_is_not_doubted():
    notes = tuned(A + 0.3 * NOISE, seeds=1).notes
    assert any(note.startswith("Rows held out: the latest of 5 parts of 400 rows") for note in notes)
    assert not any("constant" in note or "another season" in note for note in notes)
