"""The order of trials, and the choice: many small ones, fewer of a middle size, and the best at the wanted size.

Then the number of columns is chosen by the score over columns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import log2

import numpy as np

from kafeat.errors import DataError, UsageError
from kafeat.maths.scoring import highest_score, stated
from kafeat.study.tune.space import BASE, DEFAULT, FIXED, RAW, STARTS, Candidate, SearchSpace
from kafeat.study.tune.trials import Outcome, Score, Size, deciding

# Candidates that go on to the middle size, of kernels and with trained frequencies, and from there to the wanted one.
_PLAIN, _TRAINED, _LAST = 6, 2, 5
_MOST_ROUNDS = 4
# Time of a map with learned parts of which there was none so far, as a multiple of that of a map without.
_UNKNOWN = 3.0
# With fewer trials than this, none is spent on screening.
_LEAST_TO_SCREEN = 4
# Of wider tables raw columns take more time and memory than any map.
_MOST_RAW = 2048
# Share of the time that is kept at most for other numbers of columns and the last fit.
_MOST_SHARE_KEPT = 0.4


@dataclass(frozen=True)
class Trial:
    """A candidate that was scored at a size; numbers count from 1."""

    number: int
    candidate: Candidate
    size: Size
    outcome: Outcome

    @property
    def columns(self) -> int:
        """The number of columns that it was made for, or that it has if nothing chooses it."""
        return self.outcome.columns if self.candidate.map in FIXED else self.size.width


# Columns to search with if their number is open; the best map is tried with fewer and with twice as many.
_SEARCHED = 512
_LEAST = 16


@dataclass(frozen=True)
class Budget:
    """The number of columns, or None to choose it, and a bound of the bytes of a row of `dtype`; None is no bound."""

    columns: int | None = None
    bytes_per_row: int | None = None
    dtype: str = "float32"

    def check(self) -> None:
        """Refuse numbers that no map can have."""
        least = self.columns or 2
        if self.most_columns is not None and self.most_columns < least:
            raise UsageError(
                f"max_bytes_per_row: expected at least {np.dtype(self.dtype).itemsize * least:,} for {least:,} "
                f"columns of {self.dtype}, got {self.bytes_per_row}"
            )

    @property
    def most_columns(self) -> int | None:
        """The number of columns whose bytes are within the bound, None without one."""
        return None if self.bytes_per_row is None else self.bytes_per_row // np.dtype(self.dtype).itemsize

    @property
    def searched(self) -> int:
        """The number of columns to search with."""
        return self.columns or min(_SEARCHED, self.most_columns or _SEARCHED)

    def widths(self, rows: int) -> list[int]:
        """Return the numbers of columns to try the best map with, ascending, as it is fitted on this many rows.

        A map of a kernel has no more columns than rows.
        """
        searched, wider = self.searched, 2 * self.searched
        fewer = [searched >> k for k in range(4, 0, -1) if searched >> k >= _LEAST]
        wider = wider if self.most_columns is None else min(wider, self.most_columns)
        more = [wider] if self.columns is None and wider > searched else []
        return [width for width in (*fewer, searched, *more) if width <= rows or width == searched]

    def allows(self, trial: Trial) -> bool:
        """Return true if a map is within the bounds; raw columns are the only ones that may be more than `columns`."""
        bounds = [self.most_columns, self.columns if trial.candidate.map == "raw" else None]
        return all(bound is None or trial.outcome.columns <= bound for bound in bounds)

    def later_trials(self, with_curve: bool) -> float:
        """Return about the time of the trials at other widths, as a multiple of that of a trial of the searched one."""
        if self.columns is not None:
            return 1.0 if with_curve else 0.0
        return 4.0

    def spelled(self) -> str:
        """Return the options of the command, as far as they are not the defaults."""
        options = (("--columns", self.columns), ("--max-bytes-per-row", self.bytes_per_row))
        return "".join(f"{name} {value:g} " for name, value in options if value is not None)


Run = Callable[[Candidate, Size], Outcome]


@dataclass(kw_only=True)
class Search:
    """Trials in a fixed order, which ends after a number of them or when the time is over.

    `sizes` are ascending; only trials of the last one are chosen from. `at_widths` holds the trials of the best maps
    with other numbers of columns, which are made after the search and do not count as its trials. Time for them is kept
    back: `reserved` is their time as a multiple of that of a trial of the last size, and `last_fit` that of the fit
    whose test rows are scored.
    """

    space: SearchSpace
    sizes: Sequence[Size]
    run: Run
    scoring: str = "r2"
    most_trials: int | None = None
    seconds: float | None = None
    reserved: float = 0.0
    last_fit: float = 0.0
    tell: Callable[[Trial], None] = lambda _trial: None
    trials: list[Trial] = field(default_factory=list)
    at_widths: list[Trial] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    budget: Budget = field(default_factory=Budget)
    ended_early: bool = False

    def search(self) -> None:
        """Make the trials. At least one has the wanted size, and never more than `most_trials` are made."""
        for candidate, size in self._plan():
            if self._over(candidate, size):
                self.ended_early = True
                break
            self._try(candidate, size)
        reached = [
            size for size in self.sizes if any(one.candidate not in STARTS for one in self._ranked(size))
        ]
        if reached and reached[-1] != self.sizes[-1]:  # what led at a smaller size when the search was over
            leaders = _promoted(self._ranked(reached[-1]))
            tried = {trial.candidate for trial in self.trials if trial.size == self.sizes[-1]}
            for candidate in [one for one in leaders if one not in tried][:1]:
                if not self._late(candidate, self.sizes[-1]):
                    self._try(candidate, self.sizes[-1])

    def try_width(self, candidate: Candidate, width: int) -> Trial | None:
        """Return the trial of a candidate with this number of columns on as many rows as the last size.

        None if there is no time for it.
        """
        size = self.sizes[-1]._replace(width=width)
        made = self._made(candidate, size)
        if made is None and not self._late(candidate, size, self._kept(self.last_fit)):
            made = self._make(candidate, size, self.at_widths)
        return made

    def _try(self, candidate: Candidate, size: Size) -> None:
        if self._made(candidate, size) is None:
            self._make(candidate, size, self.trials)

    def _made(self, candidate: Candidate, size: Size) -> Trial | None:
        same = (
            one for one in (*self.trials, *self.at_widths) if (one.candidate, one.size) == (candidate, size)
        )
        return next(same, None)

    def _make(self, candidate: Candidate, size: Size, trials: list[Trial]) -> Trial:
        number = len(self.trials) + len(self.at_widths) + 1
        trial = Trial(number, candidate, size, self.run(candidate, size))
        trials.append(trial)
        self.tell(trial)
        return trial

    def _over(self, candidate: Candidate, size: Size) -> bool:
        """Return true if this trial may not begin; after one that is not of the last size, one more is made."""
        last = self.sizes[-1]
        if self.most_trials is not None:
            more = 1 if size == last else 2
            if len(self.trials) + more > self.most_trials:
                return True
        more_seconds = 0.0 if size == last else self._expected(candidate, last)
        return self._late(candidate, size, more_seconds + self._kept(self.reserved + self.last_fit))

    def _late(self, candidate: Candidate, size: Size, kept: float = 0.0) -> bool:
        """Return true if this trial would end later than the time, of which so many seconds are kept for others.

        The default map and raw columns are always tried.
        """
        if self.seconds is None or (candidate in (DEFAULT, RAW) and size == self.sizes[-1]):
            return False
        return time.monotonic() - self.started + self._expected(candidate, size) + kept > self.seconds

    def _expected(self, candidate: Candidate, size: Size) -> float:
        """Return the seconds that a trial may take: those of the slowest one like it, or a multiple of those of others.

        The seconds of trials of another size are multiplied by the ratio of those of maps without learned parts.
        """
        plain = {one: self._slowest(one, (False, False)) for one in self.sizes}
        usual = plain.get(size) or max(plain.values()) * max(1.0, size.width / self.sizes[-1].width)
        alike = self._slowest(size, candidate.learned)
        if alike:
            return alike
        others = [
            self._slowest(one, candidate.learned) * usual / plain[one] for one in self.sizes if plain[one]
        ]
        return max(others, default=0.0) or _UNKNOWN * usual

    def _slowest(self, size: Size, learned: tuple[bool, bool]) -> float:
        """Return the most seconds of the trials of a size whose maps have the same learned parts, 0 without any."""
        made = (trial for trial in (*self.trials, *self.at_widths) if trial.size == size)
        return max((one.outcome.seconds for one in made if one.candidate.learned == learned), default=0.0)

    def _kept(self, trials: float) -> float:
        """Return the seconds to keep for this multiple of the slowest trial so far of the last size."""
        last = [trial.outcome.seconds for trial in self._ranked(self.sizes[-1])]
        return min(trials * max(last, default=0.0), _MOST_SHARE_KEPT * (self.seconds or 0.0))

    def _plan(self) -> Iterator[tuple[Candidate, Size]]:
        """Yield the trials in their order, which depends on the outcomes so far and on nothing else."""
        small, middle, last = self.sizes
        yield DEFAULT, last
        if self.space.table.width <= _MOST_RAW:
            yield RAW, last
        if self.space.base:
            yield BASE, last
        if self.most_trials is not None and self.most_trials < _LEAST_TO_SCREEN:
            for candidate in self.space.first(last.width):
                yield candidate, last
        for candidate in self.space.first(small.width):
            yield candidate, small
        ranked = [trial.candidate for trial in self._ranked(small)]
        trained = [candidate for candidate in ranked if candidate.map == "supervised"][:_TRAINED]
        plain = [candidate for candidate in ranked if candidate.map != "supervised"][:_PLAIN]
        more = self.space.with_metrics(plain[0], next(iter(trained), None)) if plain else ()
        for candidate in (*plain, *trained, *more):
            yield candidate, middle
        for candidate in _promoted(self._ranked(middle)):
            yield candidate, last
        for candidate in self._plain_neighbours():  # cheap, so first
            yield candidate, last
        for _ in range(_MOST_ROUNDS):
            before = self._best_map()
            if before is None:
                return
            for candidate in self.space.neighbours(before):
                yield candidate, last
            if self._best_map() == before:
                return

    def _best_map(self) -> Candidate | None:
        """Return the best map that has neighbours."""
        ranked = (trial.candidate for trial in self._ranked(self.sizes[-1]))
        return next((candidate for candidate in ranked if candidate.map not in FIXED), None)

    def _plain_neighbours(self) -> list[Candidate]:
        """Return the neighbours of the best map without learned parts that have none either."""
        plain = [
            t.candidate
            for t in self._ranked(self.sizes[-1])
            if not t.candidate.complexity and t.candidate.map not in FIXED
        ]
        near = self.space.neighbours(plain[0]) if plain else ()
        return [candidate for candidate in near if not candidate.complexity]

    def _ranked(self, size: Size) -> list[Trial]:
        """Return the trials of a size that have a score and are within the budget, best first."""
        of_size = [trial for trial in self.trials if trial.size == size and trial.outcome.failure is None]
        scored = filter(self.budget.allows, of_size)
        return sorted(scored, key=lambda trial: -trial.outcome.score)

    @property
    def best_score(self) -> Trial:
        """The trial with the highest score at the wanted size, or at the largest size with any."""
        for size in reversed(self.sizes):
            ranked = self._ranked(size)
            if ranked:
                return ranked[0]
        failures = [trial.outcome.failure for trial in self.trials if trial.outcome.failure]
        raise DataError(failures[0] if failures else "tune: expected at least one trial, got none")

    def leaderboard(self) -> list[Trial]:
        """Return the trials of the largest size with any: the chosen one, and the others by their scores.

        Among trials that are worse than the best by less than a standard error of the difference, the simplest is
        chosen, and of equally simple ones the best. It is no worse than raw columns and the default map.
        """
        ranked = self._ranked(self.best_score.size)
        best, floor = ranked[0].outcome, self.floor
        equals = [
            trial
            for trial in ranked
            if best.score - trial.outcome.score <= trial.outcome.noise(best) and trial.outcome.score >= floor
        ]
        chosen = min(equals, key=lambda trial: trial.candidate.complexity)
        return [chosen, *(trial for trial in ranked if trial is not chosen)]

    @property
    def floor(self) -> float:
        """The best score of the raw columns and the default map, below which nothing is recommended."""
        last = self._ranked(self.sizes[-1])
        plain = (one.outcome.score for one in last if one.candidate in (RAW, DEFAULT))
        return next(plain, float("-inf"))

    def stated(self, trial: Trial) -> str:
        """Return the score of a trial as it is usually stated, and its standard error."""
        score = stated(deciding(self.scoring, trial.size), trial.outcome.score)
        return f"{score:z.4f} ± {trial.outcome.error:.4f}"


def _promoted(ranked: Sequence[Trial]) -> list[Candidate]:
    """Return the best candidates: with and without trained frequencies, with and without a metric, and of all."""
    kinds: dict[object, Candidate] = {}
    for trial in ranked:
        kinds.setdefault(
            (trial.candidate.metric == "none", trial.candidate.map == "supervised"), trial.candidate
        )
    every = (trial.candidate for trial in ranked)
    order = {candidate: place for place, candidate in enumerate(every)}
    best = dict.fromkeys([*kinds.values(), *order])
    # Those without learned parts take little time, so that a search that ends soon has one of them.
    return sorted(list(best)[:_LAST], key=lambda one: (one.complexity > 0, order[one]))


# A doubling of the columns is worth it if it takes away more than this share of the error.
_WORTH = 0.03


@dataclass
class Choice:
    """The trials of the searched width, the chosen map first; the chosen trial; and its map with other widths."""

    leaders: list[Trial]
    chosen: Trial
    points: list[Trial] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    test: Score | None = None
    """The score on the test rows, if there are any."""
    interrupted: bool = False


def first_choice(search: Search) -> Choice:
    """Return the best map of the searched width."""
    leaders = search.leaderboard()
    return Choice(leaders, leaders[0])


def choose(search: Search, predicts: bool, with_curve: bool) -> Choice:
    """Return the best map within the budget, as wide as it scores best if it `predicts`, else at the knee.

    `with_curve` tries it with fewer columns even if they are fixed.
    """
    choice, budget = first_choice(search), search.budget
    if with_curve or budget.columns is None:
        choice.points = _points(search, choice.chosen.candidate)
    if budget.columns is None:
        best = max(choice.points, key=lambda point: point.outcome.score)
        choice.chosen = best if predicts else _knee(choice.points, search)
        tried = "tried" if budget.bytes_per_row is None else "tried within the bounds"
        choice.reasons = _reasons(choice, best, highest_score(search.scoring), tried)
    return choice


def _points(search: Search, candidate: Candidate) -> list[Trial]:
    """Return the trials of a map with several numbers of columns, ascending."""
    last, points = search.sizes[-1], dict[int, Trial]()
    widths = [last.width] if candidate.map in FIXED else search.budget.widths(last.rows - last.rows // 4)
    for width in widths:
        trial = search.try_width(candidate, width)
        if trial is None:
            search.ended_early = True
            continue
        n = trial.outcome.columns
        if trial.outcome.failure is None and n not in points and (n <= width or len(widths) == 1):
            points[n] = trial
    return [points[n] for n in sorted(points)]


def _knee(points: Sequence[Trial], search: Search) -> Trial:
    """Return the point with the fewest columns from which no other is worth its columns, and not below the floor."""
    highest, floor = highest_score(search.scoring), search.floor
    for i, point in enumerate(points):
        worth = any(_worth(point.outcome, wider.outcome, highest) for wider in points[i + 1 :])
        if point.outcome.score >= floor and not worth:
            return point
    return max(points, key=lambda point: point.outcome.score)


def _worth(one: Outcome, wider: Outcome, highest: float) -> bool:
    """Return true if the score of more columns is better by more than noise, and by enough for their number."""
    gain, loss = wider.score - one.score, highest - one.score
    share = 1.0 - (1.0 - _WORTH) ** log2(wider.columns / one.columns)
    return gain > one.noise(wider) and gain > share * loss


def _reasons(choice: Choice, best: Trial, highest: float, tried: str) -> list[str]:
    """Return sentences with the reason for the number of columns, and what it costs against the best of them."""
    chosen, points = choice.chosen, choice.points
    if len(points) < 2:
        return []
    columns = chosen.outcome.columns
    if chosen is best:
        said = f"{columns:,} columns score best of those that were {tried}"
        return [f"{said}; they are the most." if chosen is points[-1] else f"{said}."]
    loss = best.outcome.score - chosen.outcome.score
    error = highest - chosen.outcome.score
    return [
        f"{columns:,} columns are recommended: with more, every doubling takes away less than {100.0 * _WORTH:g} % of "
        f"the error, or no more than noise. {best.outcome.columns:,} columns score best of those that were {tried}: by "
        f"{loss:.2g}, {100.0 * loss / error:.2g} % of the error."
    ]
