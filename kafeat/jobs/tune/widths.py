"""Choose the map, and its number of columns by the score over columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import log2

from kafeat.errors import UsageError
from kafeat.jobs.tune.budget import Budget
from kafeat.jobs.tune.search import Search, Trial
from kafeat.jobs.tune.space import Candidate
from kafeat.jobs.tune.trials import Size

# A doubling of the columns is worth it if it takes away more than this share of the error.
_WORTH = 0.03
# Maps that are tried with several numbers of columns if their speed is bounded.
_MOST_MAPS = 3

Price = Callable[[Candidate, Size], float]


@dataclass(frozen=True)
class Point:
    """A trial of one number of columns, and the seconds for a million rows, None if they were not measured."""

    trial: Trial
    seconds: float | None

    @property
    def columns(self) -> int:
        """The number of columns."""
        return self.trial.outcome.columns


@dataclass
class Choice:
    """The trials of the searched width, the chosen map first; the chosen trial; and its map with other widths."""

    leaders: list[Trial]
    chosen: Trial
    points: list[Point] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


class Chooser:
    """Chooses among the maps of a search within a budget.

    `loss` turns a score into an error of at least 0, and `price` measures the speed of a map.
    """

    def __init__(self, search: Search, budget: Budget, dtype: str, price: Price, highest: float) -> None:
        self._search, self._budget, self._dtype = search, budget, dtype
        self._price, self._highest = price, highest

    def first(self) -> Choice:
        """Return the best map of the search, whatever time it takes."""
        leaders, most = self._search.leaderboard(), self._budget.most_columns(self._dtype)
        leaders = [trial for trial in leaders if most is None or trial.outcome.columns <= most]
        return Choice(leaders, leaders[0])

    def choose(self, with_curve: bool) -> Choice:
        """Return the best map within the budget. `with_curve` tries it with fewer columns even if they are fixed."""
        choice, budget = self.first(), self._budget
        if budget.columns is None:
            return self._of_any_width(choice)
        if budget.seconds_per_million_rows is not None:
            choice = self._fast_enough(choice)
        if with_curve:
            choice.points = self._points(choice.chosen.candidate)
        return choice

    def _fast_enough(self, choice: Choice) -> Choice:
        """Return the best map of the wanted width that is fast enough."""
        fastest = float("inf")
        for trial in choice.leaders:
            seconds = self._price(trial.candidate, trial.size)
            if seconds <= self._most_seconds:
                return Choice(_with_first(choice.leaders, trial), trial)
            fastest = min(fastest, seconds)
        raise self._too_slow(fastest)

    def _of_any_width(self, choice: Choice) -> Choice:
        """Return the best map with the number of columns at the knee of its curve."""
        maps = [choice.chosen]
        if self._budget.seconds_per_million_rows is not None:
            others = {trial.candidate.map: trial for trial in reversed(choice.leaders)}
            maps += [trial for trial in others.values() if trial.candidate.map != choice.chosen.candidate.map]
            maps = [choice.chosen, *sorted(maps[1:], key=lambda trial: -trial.outcome.score)][:_MOST_MAPS]
        curves = [self._points(trial.candidate) for trial in maps]
        cheap = [
            [point for point in points if (point.seconds or 0.0) <= self._most_seconds] for points in curves
        ]
        if not any(cheap):
            raise self._too_slow(min(point.seconds or 0.0 for points in curves for point in points))
        best = max((i for i in range(len(maps)) if cheap[i]), key=lambda i: _best(cheap[i]))
        chosen = self._knee(cheap[best])
        return Choice(
            _with_first(choice.leaders, maps[best]),
            chosen.trial,
            curves[best],
            self._said(chosen, cheap[best]),
        )

    @property
    def _most_seconds(self) -> float:
        most = self._budget.seconds_per_million_rows
        return float("inf") if most is None else most

    def _too_slow(self, fastest: float) -> UsageError:
        return UsageError(
            f"max_seconds_per_million_rows: expected at least {fastest:.3g}, the seconds that the fastest map takes "
            f"here on one core, got {self._most_seconds:g}: take fewer columns, or allow more time"
        )

    def _points(self, candidate: Candidate) -> list[Point]:
        """Return the trials of a map with several numbers of columns, ascending."""
        last, points = self._search.sizes[-1], dict[int, Point]()
        rows = last.rows - last.rows // 4
        widths = [last.width] if candidate.map == "base" else self._budget.widths(self._dtype, rows)
        for width in widths:
            trial = self._search.try_width(candidate, width)
            if trial is None:
                self._search.ended_early = True
                continue
            n = trial.outcome.columns
            if trial.outcome.failure is None and n not in points and (n <= width or len(widths) == 1):
                timed = self._budget.seconds_per_million_rows is not None
                points[n] = Point(trial, self._price(candidate, trial.size) if timed else None)
        return [points[n] for n in sorted(points)]

    def _knee(self, points: Sequence[Point]) -> Point:
        """Return the point with the fewest columns from which no other is worth its columns."""
        for i, point in enumerate(points):
            if not any(self._worth(point, wider) for wider in points[i + 1 :]):
                return point
        return points[-1]

    def _worth(self, point: Point, wider: Point) -> bool:
        """Return true if the score of more columns is better by more than noise, and by enough for their number."""
        one, other = point.trial.outcome, wider.trial.outcome
        gain, loss = other.score - one.score, self._highest - one.score
        share = 1.0 - (1.0 - _WORTH) ** log2(wider.columns / point.columns)
        return gain > one.noise(other) and gain > share * loss

    def _said(self, chosen: Point, points: Sequence[Point]) -> list[str]:
        """Return sentences with the reason, and the edge if the choice is at one."""
        bounded = self._budget.bytes_per_row is not None or self._budget.seconds_per_million_rows is not None
        tried = "tried within the bounds" if bounded else "tried"
        if len(points) < 2:
            return []
        if chosen is points[-1]:
            before = points[-2]
            gain = chosen.trial.outcome.score - before.trial.outcome.score
            step = (
                "the last doubling"
                if chosen.columns == 2 * before.columns
                else f"the step from {before.columns:,}"
            )
            return [f"{chosen.columns:,} columns are the most that were {tried}; {step} gave {gain:+.2g}."]
        said = [
            f"{chosen.columns:,} columns are recommended: with more, every doubling takes away less than "
            f"{100.0 * _WORTH:g} % of the error, or no more than noise."
        ]
        if chosen is points[0]:
            said.append(f"They are the fewest that were {tried}.")
        return said


def _best(points: Sequence[Point]) -> float:
    return max(point.trial.outcome.score for point in points)


def _with_first(leaders: Sequence[Trial], first: Trial) -> list[Trial]:
    return [first, *(trial for trial in leaders if trial is not first)]
