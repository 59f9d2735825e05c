"""Choose the map, and its number of columns by the score over columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log2

from kafeat.jobs.tune.budget import Budget
from kafeat.jobs.tune.search import Search, Trial
from kafeat.jobs.tune.space import Candidate

# A doubling of the columns is worth it if it takes away more than this share of the error.
_WORTH = 0.03


@dataclass
class Choice:
    """The trials of the searched width, the chosen map first; the chosen trial; and its map with other widths."""

    leaders: list[Trial]
    chosen: Trial
    points: list[Trial] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


class Chooser:
    """Chooses among the maps of a search within a budget; no score is above `highest`."""

    def __init__(self, search: Search, budget: Budget, dtype: str, highest: float) -> None:
        self._search, self._budget, self._dtype, self._highest = search, budget, dtype, highest

    def first(self) -> Choice:
        """Return the best map of the searched width."""
        leaders, most = self._search.leaderboard(), self._budget.most_columns(self._dtype)
        leaders = [trial for trial in leaders if most is None or trial.outcome.columns <= most]
        return Choice(leaders, leaders[0])

    def choose(self, with_curve: bool) -> Choice:
        """Return the best map within the budget. `with_curve` tries it with fewer columns even if they are fixed."""
        choice = self.first()
        if with_curve or self._budget.columns is None:
            choice.points = self._points(choice.chosen.candidate)
        if self._budget.columns is None:
            choice.chosen = self._knee(choice.points)
            choice.reasons = self._said(choice.chosen, choice.points)
        return choice

    def _points(self, candidate: Candidate) -> list[Trial]:
        """Return the trials of a map with several numbers of columns, ascending."""
        last, points = self._search.sizes[-1], dict[int, Trial]()
        rows = last.rows - last.rows // 4
        widths = [last.width] if candidate.map == "base" else self._budget.widths(self._dtype, rows)
        for width in widths:
            trial = self._search.try_width(candidate, width)
            if trial is None:
                self._search.ended_early = True
                continue
            n = trial.outcome.columns
            if trial.outcome.failure is None and n not in points and (n <= width or len(widths) == 1):
                points[n] = trial
        return [points[n] for n in sorted(points)]

    def _knee(self, points: Sequence[Trial]) -> Trial:
        """Return the point with the fewest columns from which no other is worth its columns."""
        for i, point in enumerate(points):
            if not any(self._worth(point, wider) for wider in points[i + 1 :]):
                return point
        return points[-1]

    def _worth(self, point: Trial, wider: Trial) -> bool:
        """Return true if the score of more columns is better by more than noise, and by enough for their number."""
        one, other = point.outcome, wider.outcome
        gain, loss = other.score - one.score, self._highest - one.score
        share = 1.0 - (1.0 - _WORTH) ** log2(other.columns / one.columns)
        return gain > one.noise(other) and gain > share * loss

    def _said(self, chosen: Trial, points: Sequence[Trial]) -> list[str]:
        """Return sentences with the reason, and the edge if the choice is at one."""
        tried = "tried" if self._budget.bytes_per_row is None else "tried within the bounds"
        if len(points) < 2:
            return []
        columns = chosen.outcome.columns
        if chosen is points[-1]:
            before = points[-2].outcome
            gain = chosen.outcome.score - before.score
            step = (
                "the last doubling" if columns == 2 * before.columns else f"the step from {before.columns:,}"
            )
            return [f"{columns:,} columns are the most that were {tried}; {step} gave {gain:+.2g}."]
        said = [
            f"{columns:,} columns are recommended: with more, every doubling takes away less than "
            f"{100.0 * _WORTH:g} % of the error, or no more than noise."
        ]
        if chosen is points[0]:
            said.append(f"They are the fewest that were {tried}.")
        return said
