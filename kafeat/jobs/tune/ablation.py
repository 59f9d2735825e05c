"""The worth of each choice: the best score with it, and the best one with another in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kafeat.jobs.tune.search import Trial
from kafeat.jobs.tune.space import Candidate, metric_name

_PARTS: dict[str, Callable[[Candidate], str]] = {
    "scaler": lambda one: f"{one.scaler} (numbers only)" if one.union else one.scaler,
    "metric": lambda one: metric_name(one.metric),
    "map": lambda one: "fourier, supervised" if one.map == "supervised" else one.map,
}


@dataclass(frozen=True)
class Worth:
    """The worth of a choice: `gain` over the best other one, which may be below 0, and its standard error.

    `scores` holds the best score of each value, in trials of `rows` rows and `columns` columns, the best first.
    """

    part: str
    chosen: str
    other: str
    scores: dict[str, float]
    gain: float
    error: float
    rows: int
    columns: int


def worth_of_choices(trials: Sequence[Trial], chosen: Candidate) -> list[Worth]:
    """Return the worth of each part of the chosen map, by maps that differ in this part and perhaps in γ alone.

    They are of the largest size at which there are any. A part without such maps is left out: other maps would not tell
    which of their differences counts.
    """
    scored = [trial for trial in trials if trial.outcome.failure is None and trial.candidate.map != "base"]
    sizes = sorted({trial.size for trial in scored}, reverse=True)
    found = []
    for part, value in _PARTS.items():
        alike = [one for one in scored if _differ_in(one.candidate, chosen) in ([], [part])]
        best_of = [_best_of_each([one for one in alike if one.size == size], value) for size in sizes]
        best = next((best for best in best_of if value(chosen) in best and len(best) > 1), None)
        if best is not None:
            found.append(_worth(part, value(chosen), best))
    return found


def _differ_in(one: Candidate, other: Candidate) -> list[str]:
    """Return the parts in which two maps differ."""
    return [part for part, value in _PARTS.items() if value(one) != value(other)]


def _best_of_each(trials: Sequence[Trial], value: Callable[[Candidate], str]) -> dict[str, Trial]:
    """Return the best trial for each value, best first."""
    best: dict[str, Trial] = {}
    for trial in sorted(trials, key=lambda one: -one.outcome.score):
        best.setdefault(value(trial.candidate), trial)
    return best


def _worth(part: str, chosen: str, best: dict[str, Trial]) -> Worth:
    other = next(name for name in best if name != chosen)
    one, two = best[chosen].outcome, best[other].outcome
    size, scores = best[chosen].size, {name: trial.outcome.score for name, trial in best.items()}
    return Worth(part, chosen, other, scores, one.score - two.score, one.noise(two), size.rows, size.width)
