"""A trial: a candidate at a size, and its outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field, FiniteFloat

from kafeat.errors import DataError
from kafeat.maths import PROPER, SCORES, PredictionTask, Score
from kafeat.study.learners import Tested
from kafeat.study.scores import resampled_scores
from kafeat.study.tune.space import Candidate
from kafeat.types import Array, Floats

RESAMPLES = 40
MOST_MAP_ROWS = 40_000
"""The most rows to fit a map on, so that memory has a bound that does not depend on the sample."""


class Size(NamedTuple):
    """The rows, the width and the number of splits of a trial, and the share of the rows that a split holds out.

    `share` is the share of the training rows to learn from. With `in_one_pass`, all rows of the data are read.
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
        """The number of rows that all splits learn from. The time of a trial grows with it."""
        return self.splits * self.share * self.learned

    def smaller(self) -> Size:
        """Return the size with fewer splits, or with one split of fewer rows."""
        if self.splits > 1:
            return self._replace(splits=self.splits - 1)
        return self._replace(rows=self.rows * 3 // 4)

    def error(self, resampled: Sequence[float]) -> float:
        """Return the standard error of a score from its values for resampled rows.

        Splits share training rows, so their scores vary less than on new data (Nadeau & Bengio 2003).
        """
        n = min(self.splits, self.parts)
        overlap = self.held / (self.share * (1.0 - self.held)) if n > 1 else 0.0
        return float(np.std(resampled) * np.sqrt(1.0 + n * overlap))


# The last trials hold out a tenth, so that a scored model has seen nearly as many rows as the final one. Rows in memory
# are split as often as it takes to score this many rows, or every row once. With more rows there is one split, in which
# a tenth may be few.
_SCORED, _SCORED_ONCE = 3_000, 2_000


def in_parts(size: Size) -> Size:
    """Return the size with as many splits as it takes to score enough rows, or every row once."""
    wanted = min(ceil(_SCORED / (size.held * size.rows)), size.parts)
    return size._replace(splits=max(wanted, size.splits))


def in_one_pass(rows: int, width: int, held: float) -> Size:
    """Return the size of trials on all rows. At least this share of them, or enough, is scored."""
    share = min(max(_SCORED_ONCE / rows, held), 0.25)
    return Size(rows, width, 1, share, one_pass=True)


@dataclass(frozen=True)
class Outcome:
    """The score of a trial, and its values for resampled test rows, which are the same for all trials of a size.

    `columns` is the number of output columns, which may be smaller than that of the size. `failure` is the reason if
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
        """Return the standard error of the difference to another trial of the same size."""
        return float(np.std(np.subtract(self.resampled, other.resampled)))


IDLE = "left out, as its metric changes nothing"
"""The failure of a trial without a score of its own."""


@dataclass(frozen=True)
class Trial:
    """A candidate that was scored at a size. Numbers count from 1. A `later` trial tries the chosen map again."""

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
        """The number of columns that it has or, if it failed, was planned to have."""
        return self.outcome.columns or self.size.width


# Scores of classes that are shown with the deciding one.
_BESIDE = (SCORES["accuracy"], SCORES["balanced_accuracy"], SCORES["auc"], PROPER["classification"])


def outcome_of(
    task: PredictionTask,
    scoring: Score,
    tested: Tested,
    probabilities: Floats | None,
    rng: np.random.Generator,
    **costs: Any,
) -> Outcome:
    """Return the outcome of predictions, with the other scores of classes if there are probabilities."""
    predicted, labels, groups, _ = tested
    first = probabilities if scoring.needs_probabilities and probabilities is not None else predicted
    score = scoring.of(task, first, labels)
    if not np.isfinite(score):
        raise DataError(
            f"label: expected labels that differ among the {len(labels):,} rows held out, got equal ones"
        )
    resampled = resampled_scores(scoring, task, first, labels, RESAMPLES, rng, groups)
    return Outcome(
        score=score,
        resampled=tuple(np.where(np.isfinite(resampled), resampled, score).tolist()),
        figures={} if probabilities is None else _figures_beside(task, predicted, probabilities, labels),
        **costs,
    )


def _figures_beside(
    task: PredictionTask, predicted: Floats, probabilities: Floats, labels: Array
) -> dict[str, float]:
    """Return the scores of classes by their names, if they are defined."""
    figures = {
        score.name: score.figure(task, probabilities if score.needs_probabilities else predicted, labels)
        for score in _BESIDE
    }
    return {name: value for name, value in figures.items() if np.isfinite(value)}


class TestScore(NamedTuple):
    """A score and its standard error from resampled rows, or None if the labels of the rows define none."""

    value: float | None
    error: float | None
    rows: int
