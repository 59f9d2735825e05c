"""The trials of a search so far, and which of them are the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from kafeat.errors import DataError
from kafeat.maths import PROPER, Score
from kafeat.study.tune.budget import Budget
from kafeat.study.tune.space import DEFAULT, FIXED, NO_TREES, RAW, Candidate
from kafeat.study.tune.trials import Size, Trial

# Scores that differ by less than this share of the standard error are equal.
_EQUAL = 0.01


@dataclass(kw_only=True)
class Trials:
    """Trials in their order. `later` holds those of the chosen map with other widths and fewer rows."""

    scoring: Score = PROPER["regression"]
    budget: Budget = field(default_factory=Budget)
    trials: list[Trial] = field(default_factory=list)
    later: list[Trial] = field(default_factory=list)

    def _made(self, candidate: Candidate, size: Size) -> Trial | None:
        same = (one for one in (*self.trials, *self.later) if (one.candidate, one.size) == (candidate, size))
        return next(same, None)

    def _best_map(self, apart_from: Sequence[Candidate] = ()) -> Candidate | None:
        """Return the best map that has neighbours."""
        maps = (one for one in self._different() if one.map not in FIXED or one.trees != NO_TREES)
        return next((one for one in maps if one not in apart_from), None)

    def _different(self) -> list[Candidate]:
        """Return the candidates of the last size so far, best first. Of those with equal scores, return the first."""
        found: dict[object, Candidate] = {}
        for trial in self._ranked(self.trials[-1].size):  # a metric, for example, may change nothing
            outcome = trial.outcome
            found.setdefault((outcome.resampled, *outcome.figures.values()), trial.candidate)
        return list(found.values())

    def _ranked(self, size: Size) -> list[Trial]:
        """Return the trials of a size that have a score and are within the budget, best first.

        Of those that are level with the highest score, and no worse than raw columns and the default map, the simplest
        map is the best. Level is what is within a hundredth of the standard error. The share of right rows is noisy,
        so there level is what is within noise, and the map with the lowest log loss is the best.
        """
        every = (*self.trials, *self.later)
        of_size = [trial for trial in every if trial.size == size and trial.outcome.failure is None]
        scored = filter(self.budget.allows, of_size)
        ranked = sorted(scored, key=lambda one: (-one.outcome.score, one.candidate.complexity))
        if not ranked:
            return ranked
        top, floor, proper = ranked[0], _floor(ranked), PROPER["classification"].name
        noisy = self.scoring.is_noisy and proper in top.outcome.figures

        def is_level(one: Trial) -> bool:
            within = top.outcome.noise(one.outcome) if noisy else _EQUAL * top.error
            return one.outcome.score >= max(floor, top.outcome.score - within)

        def cost(one: Trial) -> tuple[float, int]:
            first = one.outcome.figures[proper] if noisy else one.candidate.complexity
            return first, 0 if noisy else one.outcome.columns

        best = min(filter(is_level, ranked), key=cost)
        return [best, *(one for one in ranked if one is not best)]

    @property
    def best_score(self) -> Trial:
        """The best trial of the last rung that has any with a score."""
        for size in reversed(list(dict.fromkeys(trial.size for trial in self.trials))):
            ranked = self._ranked(size)
            if ranked:
                return ranked[0]
        failures = [trial.outcome.failure for trial in self.trials if trial.outcome.failure]
        raise DataError(failures[0] if failures else "tune: expected at least one trial, got none")

    def leaderboard(self) -> list[Trial]:
        """Return the trials of the last rung, best first, then those of the rung before that were not continued.

        The best is chosen. It is no worse than raw columns and the default map. Choosing a simpler one that is worse
        within noise cost up to a fifth of the log loss on test rows.
        """
        found: dict[Candidate, Trial] = {}
        reached = self.best_score.size
        for size in reversed(list(dict.fromkeys(trial.size for trial in self.trials))):
            for trial in self._ranked(size) if size.rows <= reached.rows else ():
                found.setdefault(trial.candidate, trial)
        return list(found.values())

    @property
    def floor(self) -> float:
        """The best score of the raw columns and the default map, below which nothing is recommended."""
        return _floor(self._ranked(self.best_score.size))

    def stated(self, trial: Trial) -> str:
        """Return the score of a trial as it is usually stated, and its standard error."""
        return f"{self.scoring.stated(trial.outcome.score):z.4f} ± {trial.error:.4f}"


def _floor(ranked: Sequence[Trial]) -> float:
    """Return the best score of raw columns and the default map among trials."""
    return max((one.outcome.score for one in ranked if one.candidate in (RAW, DEFAULT)), default=-inf)
