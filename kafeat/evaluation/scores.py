"""The scores of an evaluation: one that decides, and all that a task has by their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kafeat.errors import UsageError
from kafeat.maths.scoring import check_scoring, figure_names, figure_of, rates, score_of, usual_scoring
from kafeat.maths.task import PredictionTask
from kafeat.types import Array, Floats

_RESAMPLES = 100
_MOST_POINTS = 400
Curve = tuple[Floats, Floats]
"""Shares of false and of true positives at falling thresholds."""


@dataclass(frozen=True)
class Scoring:
    """The rule that scores predictions: the task, the score that decides, and true if predictions are probabilities."""

    task: PredictionTask
    first: str
    probabilities: bool

    @classmethod
    def of(cls, task: PredictionTask, names: Sequence[str], probabilities: bool, learner: str) -> Scoring:
        """Return the scoring by these names, or the usual one of the task."""
        for name in names:
            check_scoring(name, task.kind)
        if "log_loss" in names and not probabilities:
            raise UsageError(
                f"scoring: expected --learner logistic with log_loss, got {learner}, which predicts no probabilities"
            )
        return cls(task, names[0] if names else usual_scoring(task.kind), probabilities)

    def score(self, predicted: Floats, labels: Array) -> float:
        """Return the score that decides; a higher one is better, so an error counts as negative."""
        return score_of(self.first, self.task, predicted, labels)

    def figures(self, predicted: Floats, labels: Array) -> dict[str, float | None]:
        """Return every score and error of the task by its name; None without probabilities where it needs them."""
        return {
            name: None
            if name == "log_loss" and not self.probabilities
            else figure_of(name, self.task, predicted, labels)
            for name in figure_names(self.task.kind)
        }

    def uncertainty(self, predicted: Floats, labels: Array) -> float | None:
        """Return the standard error of the score, from resampled rows; None for scores that have a formula of it."""
        if self.first in ("accuracy", "error_rate", "r2"):
            return None
        rng = np.random.default_rng(0)
        draws = (rng.integers(len(labels), size=len(labels)) for _ in range(_RESAMPLES))
        scores = [score_of(self.first, self.task, predicted[rows], labels[rows]) for rows in draws]
        known = [one for one in scores if np.isfinite(one)]
        return float(np.std(known)) if len(known) > 1 else None

    def curve(self, predicted: Floats, labels: Array) -> Curve | None:
        """Return the receiver operating characteristic of two classes, at most 400 points of it."""
        classes = self.task.classes
        if classes is None or len(classes) != 2 or not np.isfinite(predicted).all():
            return None
        second = predicted[:, -1] - (predicted[:, 0] if predicted.shape[1] == 2 else 0.0)
        false, true = rates(second, self.task.numbers(labels) == 1)
        if len(false) > _MOST_POINTS:
            # evenly in both shares, so that steep parts keep their points
            way = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(false)) + np.abs(np.diff(true)))])
            some = np.unique(np.searchsorted(way, np.linspace(0.0, way[-1], _MOST_POINTS)))
            false, true = false[some], true[some]
        return false, true
