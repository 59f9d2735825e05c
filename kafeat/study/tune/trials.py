"""Trials, which score a candidate at a size, and their ranking within the budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field, FiniteFloat

from kafeat.errors import DataError, UsageError
from kafeat.maths import PROPER, Score
from kafeat.study.tune.space import DEFAULT, FIXED, NO_TREES, RAW, Candidate

RESAMPLES = 40
MOST_MAP_ROWS = 40_000
"""The most rows to fit a map on, so that memory has a bound that does not depend on the sample."""


class Size(NamedTuple):
    """The rows, the columns (`width`) and the splits of a trial, and the share `held` of rows that a split holds out.

    `share` is the share of the training rows to learn from. With `one_pass`, all rows of the data are read.
    """

    rows: int
    width: int
    splits: int
    held: float = 0.25
    share: float = 1.0
    one_pass: bool = False

    @property
    def parts(self) -> int:
        """The number of splits that together hold out every row once."""
        return round(1.0 / self.held)

    @property
    def learned(self) -> int:
        """The number of rows that a split does not hold out."""
        return self.rows - int(self.held * self.rows)

    @property
    def scored(self) -> float:
        """The number of rows that all splits hold out."""
        return self.splits * self.held * self.rows

    @property
    def work(self) -> float:
        """The number of rows that all splits learn from. The time of a trial grows with this number."""
        return self.splits * self.share * self.learned

    def smaller(self) -> Size:
        """Return the size with fewer splits, or with one split of fewer rows."""
        if self.splits > 1:
            return self._replace(splits=self.splits - 1)
        return self._replace(rows=self.rows * 3 // 4)

    def error(self, resampled: Sequence[float]) -> float:
        """Return the standard error of a score from its values on bootstrap samples of the rows.

        It is enlarged, because scores of splits that share training rows vary too little (Nadeau & Bengio 2003).
        """
        n = min(self.splits, self.parts)
        overlap = self.held / (self.share * (1.0 - self.held)) if n > 1 else 0.0
        return float(np.std(resampled) * np.sqrt(1.0 + n * overlap))


@dataclass(frozen=True)
class Outcome:
    """The score of a trial, and its values on bootstrap samples of the test rows. Trials of a size share the samples.

    `columns` is the number of output columns, which may be below the width of the size. `failure` is the reason if
    there is no score. `figures` holds the other scores of classes by their names, `row_seconds` the seconds per row,
    and `model_bytes` the size of what the map has learned.
    """

    score: Annotated[float, Field(lt=float("inf"))]
    resampled: tuple[FiniteFloat, ...]
    seconds: Annotated[FiniteFloat, Field(ge=0.0)] = 0.0
    columns: Annotated[int, Field(ge=0, lt=1 << 31)] = 0
    failure: str | None = None
    figures: dict[str, FiniteFloat] = field(default_factory=dict)
    row_seconds: Annotated[FiniteFloat, Field(ge=0.0)] = 0.0
    model_bytes: Annotated[int, Field(ge=0)] = 0

    def noise(self, other: Outcome) -> float:
        """Return the standard error of the score's difference from that of another trial of the same size."""
        return float(np.std(np.subtract(self.resampled, other.resampled)))


@dataclass(frozen=True)
class Trial:
    """A candidate that was scored at a size. `number` counts from 1. A `later` trial came after the rungs."""

    number: int
    candidate: Candidate
    size: Size
    outcome: Outcome
    later: bool = False
    rung: str = ""

    @property
    def error(self) -> float:
        """The standard error of the score."""
        return self.size.error(self.outcome.resampled)

    @property
    def columns(self) -> int:
        """The number of output columns of the map or, if the trial failed, the planned number."""
        return self.outcome.columns or self.size.width


class TestScore(NamedTuple):
    """A score on `rows` test rows, and its standard error by resampling. Both are None if the score is undefined."""

    value: float | None
    error: float | None
    rows: int


# The number of columns during a search, if none is given. The best map is also tried with fewer and with twice as many.
_SEARCHED = 512
_LEAST = 16


@dataclass(frozen=True)
class Budget:
    """The number of columns (None: to be chosen), and the most bytes per row of features in `dtype` (None: any)."""

    columns: int | None = None
    bytes_per_row: int | None = None
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse a bound on bytes that is too low for the columns."""
        least = self.columns or 2
        if self.most_columns is not None and self.most_columns < least:
            raise UsageError(
                f"max_bytes_per_row: expected at least {np.dtype(self.dtype).itemsize * least:,} for {least:,} "
                f"columns of {self.dtype}, got {self.bytes_per_row}"
            )

    @property
    def most_columns(self) -> int | None:
        """The largest number of columns within the bound on bytes, or None without a bound."""
        return None if self.bytes_per_row is None else self.bytes_per_row // np.dtype(self.dtype).itemsize

    @property
    def searched(self) -> int:
        """The number of columns during the search."""
        return self.columns or min(_SEARCHED, self.most_columns or _SEARCHED)

    def widths(self, rows: int) -> list[int]:
        """Return the numbers of columns to try the best map with, ascending, for this many training rows.

        A kernel map has no more columns than rows.
        """
        searched, wider = self.searched, 2 * self.searched
        fewer = [searched >> k for k in range(4, 0, -1) if searched >> k >= _LEAST]
        wider = wider if self.most_columns is None else min(wider, self.most_columns)
        more = [wider] if self.columns is None and wider > searched else []
        return [width for width in (*fewer, searched, *more) if width <= rows or width == searched]

    def allows(self, trial: Trial) -> bool:
        """Return true if the map of this trial is within the bounds. Only raw columns may exceed `columns`."""
        bounds = [self.most_columns, self.columns if trial.candidate.map == "raw" else None]
        return all(bound is None or trial.outcome.columns <= bound for bound in bounds)


# Scores that differ by less than this share of the standard error count as equal.
_EQUAL = 0.01


@dataclass(kw_only=True)
class Trials:
    """Trials in their order. `later` holds those after the rungs: boosting, and the chosen map at other sizes."""

    scoring: Score = PROPER["regression"]
    budget: Budget = field(default_factory=Budget)
    trials: list[Trial] = field(default_factory=list)
    later: list[Trial] = field(default_factory=list)

    def _made(self, candidate: Candidate, size: Size) -> Trial | None:
        same = (one for one in (*self.trials, *self.later) if (one.candidate, one.size) == (candidate, size))
        return next(same, None)

    def best_map(
        self, apart_from: Sequence[Candidate] = (), with_trees: bool | None = None
    ) -> Candidate | None:
        """Return the best map that has neighbours and is not in `apart_from`, or None if there is no such map.

        The map has trees if `with_trees` is True, and no trees if it is False. None allows both.
        """
        maps = (one for one in self.different() if one.map not in FIXED or one.trees != NO_TREES)
        kind = (one for one in maps if with_trees in (None, one.trees != NO_TREES))
        return next((one for one in kind if one not in apart_from), None)

    def different(self) -> list[Candidate]:
        """Return the candidates of the current rung, best first. Of candidates with equal scores, return the first."""
        found: dict[object, Candidate] = {}
        for trial in self._ranked(self.trials[-1].size):  # equal if a metric, for example, changes nothing
            outcome = trial.outcome
            found.setdefault((outcome.resampled, *outcome.figures.values()), trial.candidate)
        return list(found.values())

    def _ranked(self, size: Size) -> list[Trial]:
        """Return the trials of a size that have a score and are within the budget, best first.

        The best is the simplest map whose score equals the highest up to a hundredth of the standard error, and is not
        below those of raw columns and the default map. Accuracy is noisier: with it, the best is the map with the
        lowest log loss whose score equals the highest up to noise.
        """
        of_size = (one for one in self.trials if one.size == size and one.outcome.failure is None)
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

    def leaderboard(self) -> list[Trial]:
        """Return the trials of the last rung, best first, then those of earlier rungs that were not continued.

        The first trial is chosen. It is no worse than raw columns and the default map. In experiments, a simpler map
        within noise of the best one increased the log loss on test rows by up to a fifth.
        """
        found: dict[Candidate, Trial] = {}
        for size in reversed(dict.fromkeys(trial.size for trial in self.trials)):
            for trial in self._ranked(size):
                found.setdefault(trial.candidate, trial)
        if not found:
            failures = [trial.outcome.failure for trial in self.trials if trial.outcome.failure]
            more = (
                f"no trial has a score: --trials {len(failures) + 2} tries more maps; the first failed with: "
            )
            raise DataError(more + failures[0] if failures else "tune: expected at least one trial, got none")
        return list(found.values())

    @property
    def best_score(self) -> Trial:
        """The best trial of the last rung with a scored trial."""
        return self.leaderboard()[0]

    @property
    def floor(self) -> float:
        """The best score of the raw columns and the default map, below which nothing is recommended."""
        return _floor(self._ranked(self.best_score.size))

    def stated(self, trial: Trial) -> str:
        """Return the score of a trial as text, with errors as positive numbers, and its standard error."""
        return f"{self.scoring.stated(trial.outcome.score):z.4f} ± {trial.error:.4f}"


def _floor(ranked: Sequence[Trial]) -> float:
    """Return the higher of the scores of raw columns and of the default map among these trials."""
    return max((one.outcome.score for one in ranked if one.candidate in (RAW, DEFAULT)), default=-inf)
