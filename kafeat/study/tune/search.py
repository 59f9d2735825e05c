"""The order of trials: many small ones, fewer of a middle size, the best at the wanted size, and few on all rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from kafeat.errors import DataError, UsageError
from kafeat.maths.scoring import PROPER, Score
from kafeat.study.tune.space import BASE, DEFAULT, FIXED, NO_TREES, RAW, STARTS, Candidate, SearchSpace
from kafeat.study.tune.trials import MOST_MAP_ROWS, Outcome, Size, deciding, final_size

# Candidates that go on to the middle size, of kernels and with trained frequencies, and from there to the wanted one.
_PLAIN, _TRAINED, _LAST = 6, 2, 5
# Maps whose neighbours are tried.
_ROUNDS = 6
# Time of a map with learned parts of which there was none so far, as a multiple of that of a map without.
_UNKNOWN = 3.0
# With fewer trials than this, none is spent on screening.
_LEAST_TO_SCREEN = 4
# Of wider tables raw columns take more time and memory than any map.
_MOST_RAW = 2048
# Number of the best candidates that are scored on all rows.
_FINALISTS = 3
# Time to learn from a row and score it, as a multiple of that to make its features; and that of the learning curve.
_ROW, _OF_LEARNING = 2.0, 2.0
# Time of the last fit and its score, as a multiple of that of a trial on all rows.
_LAST_FIT = 1.5
# Scores that count rows, of which each is right or wrong.
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
    def error(self) -> float:
        """The standard error of the score."""
        return self.size.error(self.outcome.resampled)

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

    `sizes` are ascending; the best trials of the last one are made again at the `final` size, if there is one, and are
    chosen from. `later` holds the trials that are made after the search and do not count as its trials: those of the
    final size, and those of the best map with other numbers of columns and fewer rows. Time for them is kept back:
    `reserved` is their time as a multiple of that of a trial of the last size, and `last_fit` that of the fit whose
    test rows are scored.
    """

    space: SearchSpace
    sizes: Sequence[Size]
    run: Run
    final: Size | None = None
    scoring: Score = PROPER["regression"]
    most_trials: int | None = None
    seconds: float | None = None
    reserved: float = 0.0
    last_fit: float = 0.0
    tell: Callable[[Trial], None] = lambda _trial: None
    trials: list[Trial] = field(default_factory=list)
    later: list[Trial] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    budget: Budget = field(default_factory=Budget)
    ended_early: bool = False
    left_out: bool = False
    """True if trials that would have taken too long were left out."""

    def search(self) -> None:
        """Make the trials. At least one has the wanted size, and never more than `most_trials` are made."""
        later_ones = False
        for candidate, size in self._plan():
            if self._has_enough(size):
                self.ended_early = True
                break
            if self._too_late(candidate, size):
                self.ended_early = True
                later_ones = True  # there may be time for one of them, which takes less
                continue
            self.left_out |= later_ones
            self._try(candidate, size)
        reached = [
            size
            for size in self.sizes
            if any(one.candidate.as_usual not in STARTS for one in self._ranked(size))
        ]
        if reached and reached[-1] != self.sizes[-1]:  # what led at a smaller size when the search was over
            leaders = _promoted(self._ranked(reached[-1]))
            tried = {trial.candidate for trial in self.trials if trial.size == self.sizes[-1]}
            for candidate in [one for one in leaders if one not in tried][:1]:
                if not self._late(candidate, self.sizes[-1]):
                    self._try(candidate, self.sizes[-1])

    def score_on_all_rows(self) -> None:
        """Score the best candidates, raw columns and the default map on all rows, or as many as there is time for.

        The best one is scored with and without trees, which gain more from more rows than a kernel does, but with fewer
        rows only if it has led with them.
        """
        last, size = self.sizes[-1], self.final
        ranked = self._different()
        if size is None or not ranked:
            return
        best, plain = self._best_map() or ranked[0], [one for one in ranked if one in (RAW, DEFAULT)]
        other = []
        if best.map != "trees" and best.trees != NO_TREES:
            other = [best.without_trees]
        elif best.map != "trees" and size.rows > last.rows:
            other = [*self.space.with_trees(best)][:1]
        finalists = list(dict.fromkeys([ranked[0], *other, *ranked[1:_FINALISTS], *plain]))
        while finalists and self._too_slow(finalists, size):
            smaller = self._smaller(size) if len(finalists) <= 2 else None
            if smaller is None:
                finalists.pop()
            else:
                size = smaller
        # Raw columns and the default map have no time limit, and alone they would be all that is chosen from.
        if not finalists or self.later_trial(finalists[0], size) is None:
            self.final = None
            self.search()  # there is no use for the time that was kept
            return
        for candidate in finalists[1:]:
            self.later_trial(candidate, size)

    def _smaller(self, size: Size) -> Size | None:
        """Return a size with fewer rows or splits, or None if it would score fewer rows than the search does."""
        last = self.sizes[-1]
        if size.rows > 2 * last.rows:
            return final_size(size.rows // 2, last, self.space.table.sample.keys)
        fewest = round(last.splits * last.held / size.held)
        return size._replace(splits=fewest) if size.splits > fewest else None

    def _too_slow(self, finalists: Sequence[Candidate], size: Size) -> bool:
        """Return true if there is no time for trials of these candidates, and for the last fit of one of them."""
        if self.seconds is None:
            return False
        each = [self._expected(one, size) for one in finalists]
        return time.monotonic() - self.started + sum(each) + self._of_last_fit(each[0], size) > self.seconds

    def _of_last_fit(self, seconds: float, size: Size) -> float:
        """Return the seconds of the fit whose test rows are scored, from those of a trial of the final size."""
        many = self.last_fit * self.sizes[-1].splits / size.splits
        return seconds * (many if size.splits > 1 else min(many, _LAST_FIT))

    @property
    def decided(self) -> Size:
        """The size of the trials that are chosen from: the largest one with any that has a score."""
        return self.best_score.size

    def later_trial(self, candidate: Candidate, size: Size) -> Trial | None:
        """Return the trial of a candidate at a size, made now if need be; None if there is no time for it."""
        made = self._made(candidate, size)
        if made is not None:
            return made
        slowest = max((one.outcome.seconds for one in self.later), default=self._expected(candidate, size))
        late = self._late(candidate, size, self._of_last_fit(slowest, size))
        return None if late else self._make(candidate, size, self.later)

    def _try(self, candidate: Candidate, size: Size) -> None:
        if self._made(candidate, size) is None:
            self._make(candidate, size, self.trials)

    def _made(self, candidate: Candidate, size: Size) -> Trial | None:
        same = (one for one in (*self.trials, *self.later) if (one.candidate, one.size) == (candidate, size))
        return next(same, None)

    def _make(self, candidate: Candidate, size: Size, trials: list[Trial]) -> Trial:
        number = len(self.trials) + len(self.later) + 1
        trial = Trial(number, candidate, size, self.run(candidate, size))
        trials.append(trial)
        self.tell(trial)
        return trial

    def _has_enough(self, size: Size) -> bool:
        """Return true if there are too many trials for one of this size, and one of the last size behind it."""
        more = 1 if size == self.sizes[-1] else 2
        return self.most_trials is not None and len(self.trials) + more > self.most_trials

    def _too_late(self, candidate: Candidate, size: Size) -> bool:
        """Return true if this trial would end too late, and one of the last size behind it."""
        last = self.sizes[-1]
        more_seconds = 0.0 if size == last else self._expected(candidate, last)
        later = self.reserved + self.last_fit + (_FINALISTS + _OF_LEARNING) * (self.final is not None)
        return self._late(candidate, size, more_seconds + self._kept(later))

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
        last = self.sizes[-1]
        known = [
            one.outcome.seconds * max(1.0, size.width / one.size.width) ** 1.5
            for one in self.later
            if (one.candidate, one.size.rows, one.size.splits) == (candidate, size.rows, size.splits)
            and one.size.share >= size.share
        ]
        # Of rows in memory, trees are grown once for all widths.
        if known and candidate.trees != NO_TREES and size.share == 1.0 and size.splits > 1:
            known.append(self._expected(candidate.without_trees, size))
        if known:
            return min(known)
        if size.rows <= last.rows and size.splits != last.splits and not size.draft:
            same = size._replace(splits=last.splits, held=last.held)
            return self._expected(candidate, same) * size.splits / last.splits
        own = self._made(candidate, last) or self._made(candidate.without_trees, last)
        if size.rows > last.rows and own is not None:
            rows = size.share * size.rows * (size.width / last.width) ** 1.5
            grown = self.space.tree_seconds(candidate, min(size.rows, MOST_MAP_ROWS))
            return own.outcome.seconds + _ROW * own.outcome.row_seconds * rows + grown
        plain = {one: self._slowest(one, (False, False, 0)) for one in self.sizes}
        usual = plain.get(size) or max(plain.values()) * max(1.0, size.width / self.sizes[-1].width)
        slowest = self._slowest(size, candidate.learned)
        if slowest:
            return slowest
        others = [
            self._slowest(one, candidate.learned) * usual / plain[one] for one in self.sizes if plain[one]
        ]
        grown = size.splits * self.space.tree_seconds(candidate, size.rows) if candidate.complexity else 0.0
        return max(others, default=0.0) or _UNKNOWN * usual + grown

    def _slowest(self, size: Size, learned: tuple[bool, bool, int]) -> float:
        """Return the most seconds of the trials of a size whose maps have the same learned parts, 0 without any."""
        made = (trial for trial in (*self.trials, *self.later) if trial.size == size)
        return max((one.outcome.seconds for one in made if one.candidate.learned == learned), default=0.0)

    def _kept(self, trials: float) -> float:
        """Return the seconds to keep for this multiple of the slowest trial so far of the last size."""
        last = [trial.outcome for trial in self._ranked(self.sizes[-1])]
        slowest = max((one.seconds for one in last), default=0.0)
        if self.final is not None and self.final.splits > 1:
            slowest *= self.final.splits / self.sizes[-1].splits
        elif self.final is not None:
            slowest += _ROW * max((one.row_seconds for one in last), default=0.0) * self.final.rows
        return min(trials * slowest, _MOST_SHARE_KEPT * (self.seconds or 0.0))

    def _plan(self) -> Iterator[tuple[Candidate, Size]]:
        """Yield the trials in their order, which depends on the outcomes so far and on nothing else."""
        small, middle, last = self.sizes
        yield DEFAULT, last
        if self.space.table.width <= _MOST_RAW:
            yield RAW, last
        if self.space.base:
            yield BASE, last
        for candidate in self.space.readings(DEFAULT):
            yield candidate, last
        like = self._best_map() or DEFAULT
        if self.most_trials is not None and self.most_trials < _LEAST_TO_SCREEN:
            for candidate in self.space.first(last.width, like):
                yield candidate, last
        for candidate in self.space.first(small.width, like):
            yield candidate, small
        ranked = [trial.candidate for trial in self._ranked(small)]
        trained = [candidate for candidate in ranked if candidate.map == "supervised"][:_TRAINED]
        plain = [candidate for candidate in ranked if candidate.map != "supervised"][:_PLAIN]
        more = self.space.with_metrics(plain[0], next(iter(trained), None)) if plain else ()
        for candidate in (*plain, *trained, *more):
            yield candidate, middle
        promoted = _promoted(self._ranked(middle))
        # Those without learned parts take the least time, and trees the most.
        for candidate in promoted:
            yield candidate, last
        best = self._best_map()
        for candidate in self.space.with_trees(best) if best is not None else ():
            yield candidate, last
        for candidate in self._cheap_neighbours():
            yield candidate, last
        seen = set[Candidate]()
        for _ in range(_ROUNDS):  # where nothing is better than the best map, from the next best one
            best = self._best_map(seen)
            if best is None:
                return
            seen.add(best)
            for candidate in self.space.neighbours(best):
                yield candidate, last

    def _best_map(self, apart_from: Container[Candidate] = ()) -> Candidate | None:
        """Return the best map that has neighbours."""
        maps = (one for one in self._different() if one.map not in FIXED or one.trees != NO_TREES)
        return next((one for one in maps if one not in apart_from), None)

    def _different(self) -> list[Candidate]:
        """Return the candidates of the last size, best first; of those with equal scores, the same maps, the first."""
        found: dict[object, Candidate] = {}
        for trial in self._ranked(self.sizes[-1]):  # a metric, say, may change nothing
            outcome = trial.outcome
            found.setdefault((outcome.resampled, *outcome.figures.values()), trial.candidate)
        return list(found.values())

    def _cheap_neighbours(self) -> list[Candidate]:
        """Return the neighbours of the best map with no part to learn anew, as trees are grown once for all maps."""
        best = self._best_map()
        near = () if best is None or any(best.learned[:2]) else self.space.neighbours(best)
        return [candidate for candidate in near if best is not None and candidate.learned == best.learned]

    def _ranked(self, size: Size) -> list[Trial]:
        """Return the trials of a size that have a score and are within the budget, best first.

        Of equal ones the simplest map is the best. The share of right rows is noisy, so of the maps whose share is
        within noise of the highest, and no worse than that of raw columns and the default map, the one with the lowest
        log loss is the best.
        """
        every = (*self.trials, *self.later)
        of_size = [trial for trial in every if trial.size == size and trial.outcome.failure is None]
        scored = filter(self.budget.allows, of_size)
        ranked = sorted(scored, key=lambda one: (-one.outcome.score, one.candidate.complexity))
        proper = PROPER["classification"].name
        if not self.scoring.is_noisy or not ranked or proper not in ranked[0].outcome.figures:
            return ranked
        top, floor = ranked[0].outcome, _floor(ranked)
        least = [max(floor, top.score - top.noise(one.outcome)) for one in ranked]
        level = [one for one, bound in zip(ranked, least, strict=True) if one.outcome.score >= bound]
        best = min(level, key=lambda one: one.outcome.figures[proper])
        return [best, *(one for one in ranked if one is not best)]

    @property
    def best_score(self) -> Trial:
        """The best trial on all rows, or at the wanted size, or at the largest size with any."""
        width = self.sizes[-1].width
        on_all = {one.size for one in self.later if one.size.width == width and one.size.share == 1.0}
        for size in reversed([*self.sizes, *(on_all - {*self.sizes})]):
            ranked = self._ranked(size)
            if ranked:
                return ranked[0]
        failures = [trial.outcome.failure for trial in self.trials if trial.outcome.failure]
        raise DataError(failures[0] if failures else "tune: expected at least one trial, got none")

    def leaderboard(self) -> list[Trial]:
        """Return the trials of the largest size with any, and of the wanted one: the chosen one first.

        The best is chosen. It is no worse than raw columns and the default map. To take a simpler one that is worse
        within noise cost up to a fifth of the log loss on test rows.
        """
        leaders = self._ranked(self.best_score.size)
        known = {trial.candidate for trial in leaders}
        others = self._ranked(self.sizes[-1]) if leaders[0].size not in self.sizes else []
        return [*leaders, *(trial for trial in others if trial.candidate not in known)]

    @property
    def floor(self) -> float:
        """The best score of the raw columns and the default map, below which nothing is recommended."""
        return _floor(self._ranked(self.decided))

    def stated(self, trial: Trial) -> str:
        """Return the score of a trial as it is usually stated, and its standard error."""
        score = deciding(self.scoring, trial.size).stated(trial.outcome.score)
        return f"{score:z.4f} ± {trial.error:.4f}"


def _floor(ranked: Sequence[Trial]) -> float:
    """Return the best score of raw columns and the default map among trials."""
    return max(
        (one.outcome.score for one in ranked if one.candidate in (RAW, DEFAULT)), default=float("-inf")
    )


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
    return sorted(list(best)[:_LAST], key=lambda one: (one.complexity, order[one]))
