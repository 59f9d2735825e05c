"""Gradient boosting beside the choice: the same rows, one line, and never a failure."""

import sys

import numpy as np
import pytest

import kafeat
from kafeat.study.tune.choice import compared
from kafeat.study.tune.rungs import RUNGS
from kafeat.study.tune.trials import Outcome, Size, Trial
from kafeat.study.tune.tune import Tuner

BOOST = Tuner._boost  # which is left out of all other searches
RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, (300, 3))
STEPS = (X[:, 0] > 0.1) + 2.0 * (X[:, 1] > -0.2) + 0.05 * RNG.normal(size=300)


@pytest.fixture(autouse=True)
def boosting(monkeypatch):
    monkeypatch.setattr(Tuner, "_boost", staticmethod(BOOST))


def tuned(labels, **options):
    return kafeat.tune(X, labels, 8, **{"trials": 2, "jobs": 1, **options})


@pytest.mark.parametrize("rows", [3000, 200])
def test_thresholds_are_learned_better_than_by_a_smooth_map(monkeypatch, rows):
    """Of a table in memory, and of one that is read in one pass."""
    pytest.importorskip("sklearn")
    few = (rung._replace(rows=min(rung.rows, rows)) for rung in RUNGS[:-1])
    monkeypatch.setattr("kafeat.study.tune.rungs.RUNGS", (*few, RUNGS[-1]))
    for labels in (STEPS, np.round(STEPS).astype(int)):
        tuning = tuned(labels, trials=4)
        assert tuning.table[0]["rows"] == 300
        assert tuning.boosting.score > (-0.4 if tuning.score_name == "log_loss" else 0.9)
        assert tuning.to_plain()["boosting"]["verdict"] == tuning.boosting.verdict
        said = f"gradient boosting {tuning.scoring.stated(tuning.boosting.score):z.4f} is {tuning.boosting.verdict}"
        assert said in tuning.answer()


def test_without_the_extra_or_the_wish_there_is_a_note_or_nothing(monkeypatch):
    assert tuned(STEPS, boosting=False).boosting is None
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    tuning = tuned(STEPS)
    assert tuning.boosting is None
    (note,) = [note for note in tuning.notes if "boosting" in note]
    assert note.startswith("Gradient boosting was not tried: ")
    assert "pip install 'kafeat[evaluate]'" in note
    assert (
        tuned(STEPS, boosting=False).yaml == tuning.yaml.replace(f"# {note}\n", "") or note not in tuning.yaml
    )


def test_the_verdict_is_by_two_standard_errors_of_the_difference():
    noise = np.random.default_rng(0).normal(size=40)

    def outcome(score, spread):
        return Outcome(score, tuple(score + spread * noise), 0.0)

    chosen = Trial(1, None, Size(100, 8, 1), outcome(0.5, 0.0))
    found = [compared(chosen, outcome(score, 0.1)).verdict for score in (0.8, 0.6, 0.4, 0.2)]
    assert found == ["better beyond noise", "level", "level", "worse"]
    # Errors of the same rows go together: a difference may be clear beside scores that are not.
    chosen = Trial(1, None, Size(100, 8, 1), outcome(0.5, 0.1))
    assert compared(chosen, outcome(0.51, 0.1)).verdict == "better beyond noise"
