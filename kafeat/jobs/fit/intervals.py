"""Refit steps and predictor without some rows. The errors on these rows are unbiased, even if steps use the label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.config import Config
from kafeat.contract.folds import Cut, Folds
from kafeat.contract.predictor import HeldOut, TrainingRows
from kafeat.jobs.fit.held_out import RowRule, map_of_rows, predicted, results_of, rows_in
from kafeat.jobs.fit.messages import SILENT
from kafeat.jobs.fit.predictor import PredictorJob, learn_predictor, targets_of
from kafeat.jobs.fit.sample import SampledFit, TrainingData
from kafeat.jobs.fit.search import limit_landmarks
from kafeat.maths.intervals import Intervals, fit_intervals
from kafeat.maths.task import PredictionTask
from kafeat.model.feature_map import FeatureMap
from kafeat.registry import build_step
from kafeat.runtime.environment import count_jobs
from kafeat.types import Array

# Least number of rows: (number of folds, how many of these folds are held out in turn). With many rows, one fold of
# 5,000 rows is enough, because a coverage of 90 % then has a standard error of 0.4 points.
_FOLDS_FROM = {0: (8, 8), 1_000: (5, 2), 5_000: (5, 1)}
_ENOUGH_ROWS = 5_000


def random_folds(rows: int) -> tuple[int, int]:
    """Return the number of folds for intervals with this many rows, and how many folds are held out in turn."""
    folds, fitted = _FOLDS_FROM[max(start for start in _FOLDS_FROM if start <= rows)]
    return max(folds, rows // _ENOUGH_ROWS), fitted


@dataclass(frozen=True)
class Refit:
    """Fits `fm` again without each fold. The folds choose a penalty or, if `more` is true, are for intervals."""

    fm: FeatureMap
    sampled: SampledFit
    job: PredictorJob
    more: bool = False

    @property
    def at_random(self) -> bool:
        """True if the folds are those of `random_folds`: they are for intervals, and the config has no `split_by`."""
        return self.more and self.fm.config.split_by is None

    @cached_property
    def folds(self) -> Folds:
        """The rule that assigns rows to folds."""
        return Folds(random=random_folds(self.job.summary.rows)[0]) if self.at_random else self.job.folds

    @cached_property
    def cuts(self) -> list[Cut]:
        """The cuts into a held-out fold and training folds, for each of which the model is fitted again."""
        every = self.folds.cuts
        return every[: random_folds(self.job.summary.rows)[1]] if self.at_random else every

    @cached_property
    def held_out(self) -> TrainingData:
        """The rows that any of the cuts holds out."""
        return self.job.data.of_rows(
            rows_in([cut.held for cut in self.cuts], self.folds, self.fm.config.seed)
        )

    @cached_property
    def task(self) -> PredictionTask:
        """The task of the predictor that the config ends in."""
        step = self.fm.config.predictor
        if step is None:
            raise TypeError("the config has no predictor")
        return self.job.summary.task(step.task)

    def learned(self, rule: RowRule) -> SampledFit | None:
        """Return a fit on the sampled rows in `rule.learned`, with the model's parameters; None without such rows."""
        learned = self.sampled.of_rows(rule.learned)
        rows = len(learned.chosen)
        return replace(learned, config=self._settled(rows)) if rows else None

    def _settled(self, rows: int) -> Config:
        """Return the config with the parameters that the model has chosen, for a fit on this many rows."""
        steps = [fitted.step for fitted in self.fm.chain.steps]
        recipes = [step.recipe(live=True) for step in steps]
        if limit_landmarks(recipes, rows) is not None:
            steps = [build_step(recipe) for recipe in recipes]
        model, last = self.fm.predictor, self.fm.config.steps[-1]
        return self.fm.config.model_copy(
            update={"steps": (*steps, last if model is None else model.fitted.step)}
        )

    def scored(self) -> tuple[TrainingRows, Array]:
        """Return the held-out rows with the features that the model gives them, and the fold (n,) of each row."""
        rows = results_of(self.held_out, self.fm, self.job.jobs)
        counts = np.ones(len(rows.labels)) if rows.weights is None else rows.weights
        targets, folds = self.task.targets(rows.labels), rows.parts(self.job.folds, self.fm.config.seed)
        return TrainingRows(rows.results, targets, folds, counts, counts), rows.parts(
            self.folds, self.fm.config.seed
        )

    def _without_each(self, why: str) -> Iterator[tuple[Cut, RowRule, SampledFit]]:
        """Yield each cut with its rule and the sampled rows of its training folds. `why` is the message of progress."""
        for cut in self.cuts:
            self.job.listener.phase(why.format(cut.held + 1, self.folds.count))
            rule = RowRule.of_cut(cut, self.folds, self.fm.config.seed)
            learned = self.learned(rule)
            if learned is not None:
                yield cut, rule, learned

    def scores(self) -> list[tuple[float, ...]]:
        """Return the scores of all penalties on each fold, from maps and predictors that have not seen the fold."""
        step, scores = self.fm.config.predictor, list[tuple[float, ...]]()
        if step is None or len(step.multiples) < 2:
            return scores
        for cut, rule, learned in self._without_each("fitting without part {} of {} to choose a penalty"):
            if not self.sampled.of_rows(rule.scored).chosen.empty:
                fm, _ = map_of_rows(learned, self.job, rule.learned)
                rows = self.job.data.of_rows(rows_in([*cut.train, cut.held], self.folds, self.fm.config.seed))
                folds = replace(self.job.folds, held=cut.held)
                own = replace(self.job, data=rows, folds=folds, listener=SILENT)
                scores.append(learn_predictor(fm, own)[1].scores)
        return scores

    def intervals(self) -> Intervals | None:
        """Return intervals from errors of rows that neither steps nor predictor had seen; None without such rows."""
        task, (rows, parts) = self.task, self.scored()
        outputs = np.full(rows.targets.shape, np.nan)
        for cut, rule, learned in self._without_each("fitting without the rows of fold {} of {}"):
            own = parts == cut.held
            if own.any():
                _, made = predicted(learned, self.job, rule)
                outputs[own] = made.results if task.classes is not None else task.targets(made.results)
        outputs[rows.counts == 0.0] = np.nan

        with one_blas_thread(linalg=True):
            targets = targets_of(task, self.job.summary, self.job.folds)
            return fit_intervals(HeldOut(rows, outputs), targets, count_jobs(self.job.jobs))
