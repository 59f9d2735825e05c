"""The scores of an evaluation: one decides which map is better, and the others are only reported."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from kafeat.maths import Judged, PredictionTask, Score, score_for, scores_of
from kafeat.study.learners import Tested
from kafeat.study.request import EvaluationRequest
from kafeat.types import Array, Floats

_RESAMPLES = 100


def resampled_scores(
    scoring: Score,
    task: PredictionTask,
    predicted: Floats,
    labels: Array,
    n: int,
    rng: np.random.Generator | None = None,
    groups: Floats | None = None,
) -> list[float]:
    """Return the scores on `n` bootstrap samples of the rows or, with `groups` (n_rows,), of whole groups."""
    rng = rng or np.random.default_rng(0)
    if groups is None:
        draws = [rng.integers(len(labels), size=len(labels)) for _ in range(n)]
    else:
        names, own = np.unique(groups, return_inverse=True)
        counts = [
            np.bincount(rng.integers(len(names), size=len(names)), minlength=len(names)) for _ in range(n)
        ]
        draws = [np.repeat(np.arange(len(own)), count[own]) for count in counts]
    return [scoring.of(task, predicted[rows], labels[rows]) for rows in draws]


@dataclass(frozen=True)
class Scoring:
    """The rule that scores predictions: the task, the deciding score, and whether predictions are probabilities."""

    task: PredictionTask
    first: Score
    probabilities: bool

    @classmethod
    def of(
        cls, task: PredictionTask, asked: EvaluationRequest, who: str, predicts: Collection[Judged]
    ) -> Scoring:
        """Return the rule for the first requested or the default score. `who` is the name of the model in messages."""
        names = asked.scores or ("auto",)
        scores = [score_for(name, task.kind, who, predicts, asked.interval) for name in names]
        return cls(task, scores[0], "probabilities" in predicts)

    def _judged(self, score: Score, tested: Tested) -> Floats | None:
        """Return the numbers that a score judges, such as ends of intervals. Return None if the model lacks them."""
        if score.judges == "intervals":
            return tested.ends
        return None if score.judges == "probabilities" and not self.probabilities else tested.predicted

    def score(self, tested: Tested) -> float:
        """Return the deciding score. Higher is better, so errors count as negative."""
        judged = self._judged(self.first, tested)
        return float("nan") if judged is None else self.first.of(self.task, judged, tested.labels)

    @property
    def _scores(self) -> list[Score]:
        return [replace(score, level=self.first.level) for score in scores_of(self.task.kind)]

    def every(self, tested: Tested, known: Tested | None = None) -> dict[str, float | None]:
        """Return all scores of the test rows. A score that cannot judge the predictions is None.

        `score` is the deciding score, and `training_score` is the same on the `known` training rows.
        """
        judged = {score: self._judged(score, tested) for score in self._scores}
        return {
            **self.deciding(tested),
            **({} if known is None else {"training_score": self.score(known)}),
            **{
                score.name: None if one is None else score.figure(self.task, one, tested.labels)
                for score, one in judged.items()
            },
        }

    def deciding(self, tested: Tested) -> dict[str, float | None]:
        """Return the deciding score and, if no formula gives its standard error, a standard error by resampling."""
        uncertainty = self.uncertainty(tested)
        return {
            "score": self.score(tested),
            **({} if uncertainty is None else {"score_uncertainty": uncertainty}),
        }

    def of_constant(self, known: Array, labels: Array) -> dict[str, float]:
        """Return the scores of a constant prediction: the mean of the labels `known`, or the class shares in them."""
        figures = {
            score.name: score.stated(score.of_constant(self.task, known, labels)) for score in self._scores
        }
        return {"score": self.first.stated(figures[self.first.name]), **figures}

    def uncertainty(self, tested: Tested) -> float | None:
        """Return the standard error by resampling rows or groups; None if it is undefined, or if a formula gives it."""
        judged, groups = self._judged(self.first, tested), tested.groups
        if judged is None or (groups is None and self.first.noise is not None):
            return None
        scores = resampled_scores(self.first, self.task, judged, tested.labels, _RESAMPLES, groups=groups)
        known = [one for one in scores if np.isfinite(one)]
        return float(np.std(known)) if len(known) > 1 else None
