"""The choice among the trials of a search: the map, its number of columns, and the benefit of more rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log2
from typing import Literal, NamedTuple

import numpy as np

from kafeat.maths import Score
from kafeat.study.importance import Losses
from kafeat.study.records import Table
from kafeat.study.tune.rungs import Search
from kafeat.study.tune.space import FIXED, Candidate
from kafeat.study.tune.trials import Outcome, TestScore, Trial
from kafeat.types import Floats

# A doubling of the columns is worth it if it reduces the error by more than this share.
_WORTH = 0.03


@dataclass(kw_only=True, eq=False)
class Choice:
    """The trial that a search has chosen, and the others that it is compared with.

    Attributes:
        leaders: A trial of each map, at the searched number of columns: first the chosen map, then the others by score.
        chosen: The chosen trial.
        points: The trials of the chosen map with several numbers of columns.
        reasons: Sentences on why the chosen map has this number of columns.
        learning: The trials of the chosen map with fewer rows to learn from, and with all.
        boosted: Gradient boosting on the same rows; None if boosting was not requested or failed. `without_boosting`
            has the reason.
        test_score: The score on the test rows, which had no part in the choice; None without test rows.
        untested_seconds: Estimated seconds of the fit for `test_score` if time was too short, else None.
        losses: How much the score falls when a column is shuffled, with the standard error, largest first; None if it
            was not requested.
        parts: The score with all parts of a union, then each part with the score without it; empty if it was not
            requested.
        interrupted: True if the search was interrupted.
    """

    leaders: list[Trial]
    chosen: Trial
    points: list[Trial] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    learning: list[Trial] = field(default_factory=list)
    boosted: Outcome | None = None
    without_boosting: str = ""
    test_score: TestScore | None = None
    untested_seconds: float | None = None
    losses: Losses | None = None
    parts: Table = field(default_factory=Table)
    interrupted: bool = False

    @classmethod
    def of(cls, search: Search) -> Choice:
        """Return the choice of the best map, with the number of columns that the search used."""
        leaders = search.leaderboard()
        return Choice(leaders=leaders, chosen=leaders[0])


class Compared(NamedTuple):
    """The score of gradient boosting, and whether it is better than the chosen map, level with it, or worse."""

    score: float
    error: float
    verdict: Literal["better beyond noise", "level", "worse"]


def compared(chosen: Trial, boosted: Outcome) -> Compared:
    """Compare boosting with the chosen map. Both are level within two standard errors of their difference."""
    gain, noise = boosted.score - chosen.outcome.score, 2.0 * chosen.outcome.noise(boosted)
    verdict = "level" if abs(gain) <= noise else "better beyond noise" if gain > 0.0 else "worse"
    return Compared(boosted.score, chosen.size.error(boosted.resampled), verdict)  # type: ignore[arg-type]


def choose(search: Search, choice: Choice, predicts: bool, with_curve: bool) -> None:
    """Choose the number of columns, as `_recommended` does, and fill the fields of `choice` that explain it.

    A fixed number of columns does not change. With `with_curve`, other numbers are still scored, for a plot.
    """
    budget = search.budget
    if with_curve or budget.columns is None:
        choice.points = _points(search, choice.chosen.candidate)
    if budget.columns is None:
        choice.chosen = _recommended(choice.points, search, predicts)
        tried = "tried" if budget.bytes_per_row is None else "tried within the bounds"
        choice.reasons = _reasons(choice, search.scoring.best, tried)
    choice.learning = _learning(search, choice.chosen)


# The shares of the rows in a learning curve, and the fewest rows for its first point.
_SHARES, _LEAST_LEARNED = (1 / 16, 1 / 8, 1 / 4, 1 / 2), 80
# The fewest points of a learning curve. This many of its last points predict the score with twice the rows.
_LEAST_POINTS = 3
# The range of scores with twice the rows uses the slopes of bootstrap samples between these quantiles.
_POSSIBLE = (0.05, 0.95)


def _learning(search: Search, chosen: Trial) -> list[Trial]:
    """Try the chosen map on fewer training rows. Return the trials by ascending rows; the last one has all rows."""
    if not search.complete:
        return []
    shares = [share for share in _SHARES if share * chosen.size.rows >= _LEAST_LEARNED]
    if len(shares) < _LEAST_POINTS - 1:
        return []
    fewer = [
        search.afterwards("fewer rows", chosen.candidate, chosen.size._replace(share=share))
        for share in shares
    ]
    made = [trial for trial in fewer if trial is not None and trial.outcome.failure is None]
    return [*made, chosen]


def with_twice_the_rows(learning: Sequence[Trial], highest: float) -> tuple[float, float] | None:
    """Return the lowest and highest score to expect with twice the rows, or None without a learning curve.

    The last points are extrapolated: the error falls as a power of the number of rows. The power is uncertain, because
    it depends on the test rows, and because it decreases with the number of rows.
    """
    errors = highest - np.array([trial.outcome.resampled for trial in learning[-_LEAST_POINTS:]])
    if len(errors) < _LEAST_POINTS or not (errors > 0.0).all():
        return None
    logs = np.log2(errors)
    # Each point has twice the rows of the one before, so differences of log2(error) are slopes.
    slopes = np.concatenate([(logs[2] - logs[0]) / 2.0, logs[2] - logs[1]])
    powers: Floats = np.minimum(np.quantile(slopes, _POSSIBLE), 0.0)
    best, worst = highest - (highest - learning[-1].outcome.score) * 2.0**powers
    return float(worst), float(best)


def of_rows(scoring: Score, learning: Sequence[Trial]) -> list[str]:
    """Return a sentence on the score with half and with twice the rows, or nothing without a learning curve."""
    expected = with_twice_the_rows(learning, scoring.best)
    if expected is None:
        return []
    low, high = sorted(scoring.stated(score) for score in expected)
    half = scoring.stated(learning[-2].outcome.score)
    return [
        f"With half of the rows to learn from, the {scoring} is {half:z.4f}; with twice as many it may be "
        f"from {low:z.4f} to {high:z.4f}."
    ]


def _points(search: Search, candidate: Candidate) -> list[Trial]:
    """Try a map with several numbers of columns, and return the trials in ascending order of columns."""
    last, points = search.best_score.size, dict[int, Trial]()
    fixed = candidate.map in FIXED or not search.complete
    widths = [last.width] if fixed else search.budget.widths(last.learned)
    for width in reversed(widths):  # the widest are probably the best, and time may run out
        trial = search.afterwards("other widths", candidate, last._replace(width=width))
        if trial is None:
            search.ended_early = True
            continue
        n = trial.outcome.columns
        if trial.outcome.failure is None and n not in points and (n <= width or len(widths) == 1):
            points[n] = trial
    return [points[n] for n in sorted(points)]


def _recommended(points: Sequence[Trial], search: Search, predicts: bool) -> Trial:
    """Return the trial with the recommended number of columns. It is no worse than raw columns and the default map.

    If the map `predicts`, return the trial with the most columns within noise of the best score, because wider maps
    usually err less. If not, return the trial with the fewest columns such that no wider map is worth its columns.
    """
    best, floor = _best(points), search.floor
    good = [point for point in points if point.outcome.score >= floor]
    if predicts:
        gains = ((best.outcome.score - one.outcome.score, one) for one in reversed(good))
        return next((one for gain, one in gains if gain <= best.outcome.noise(one.outcome)), best)

    def ends(one: Trial) -> bool:
        wider = points[points.index(one) + 1 :]
        return not any(_worth(one.outcome, other.outcome, search.scoring.best) for other in wider)

    return next(filter(ends, good), best)


def _best(points: Sequence[Trial]) -> Trial:
    return max(points, key=lambda point: point.outcome.score)


def _worth(one: Outcome, wider: Outcome, highest: float) -> bool:
    """Return true if a wider map is better beyond noise, and reduces the error enough for each doubling of columns."""
    gain, loss = wider.score - one.score, highest - one.score
    share = 1.0 - (1.0 - _WORTH) ** log2(wider.columns / one.columns)
    return gain > one.noise(wider) and gain > share * loss


def _reasons(choice: Choice, highest: float, tried: str) -> list[str]:
    """Return sentences on why this number of columns was chosen, and how much better the best-scoring number is."""
    chosen, points = choice.chosen, choice.points
    if len(points) < 2:
        return []
    best = _best(points)
    columns = chosen.outcome.columns
    if chosen is best:
        said = f"{columns:,} columns score best of those that were {tried}"
        return [f"{said}; they are the most." if chosen is points[-1] else f"{said}."]
    if columns > best.outcome.columns:
        return [
            f"Of the widths that were {tried}, {columns:,} columns are the most with a score within noise of the best, "
            f"that of {best.outcome.columns:,} columns: wider maps usually err less."
        ]
    loss = best.outcome.score - chosen.outcome.score
    error = highest - chosen.outcome.score
    return [
        f"{columns:,} columns are recommended: with more, every doubling takes away less than {100.0 * _WORTH:g} % of "
        f"the error, or no more than noise. {best.outcome.columns:,} columns score best of those that were {tried}: by "
        f"{loss:.2g}, {100.0 * loss / error:.2g} % of the error."
    ]
