"""Score maps on held-out rows of the whole data, in one more pass over the data for each map."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from kafeat.chain import Chain
from kafeat.config import Config
from kafeat.contract import Folded, Folds
from kafeat.errors import DataError, quoted
from kafeat.jobs.fit import (
    Inputs,
    LabelledRows,
    PredictorJob,
    Recipe,
    RowRule,
    SampledFit,
    SplitBy,
    TrainingData,
    map_of_rows,
    predicted,
    read_sample,
    results_of,
)
from kafeat.maths import PredictionTask, class_numbers, mixed
from kafeat.model import FeatureMap
from kafeat.study.boosting import MOST_ROWS, boost
from kafeat.study.learners import Tested, Truth
from kafeat.study.learners import split as split_rows
from kafeat.study.models import ModelScoring
from kafeat.study.scores import resampled_scores
from kafeat.study.tune.problem import Problem
from kafeat.study.tune.trials import MOST_MAP_ROWS, Size, TestScore
from kafeat.types import Array, Floats, Mask


class Predictions(NamedTuple):
    """Predictions for held-out rows, the chain that made the features, its seconds per row, and the task.

    The task also has the classes of the held-out rows, so it may have more classes than that of the training rows.
    """

    tested: Tested
    chain: Chain
    row_seconds: float
    task: PredictionTask


_TEST_RESAMPLES = 100
_TIMED_ROWS = 2048


def rule_of_share(seed: int, limit: float, folds: Folds, test_share: float, share: float) -> RowRule:
    """Return a rule that selects the rows to learn from and to score on. All maps are scored on the same rows.

    Only the share `limit` of all rows is used. The share `test_share` of the used rows is scored on. Maps learn from
    the share `share` of the other used rows. With keys, `folds` choose the rows to score on: whole groups, or the
    latest rows.
    """

    def places(numbers: Array, keys: Floats | None) -> tuple[Floats, Mask]:
        """Return a random number for each row, below 1 if the row is used, and a mask of the rows to score on."""
        # Hashed twice to be independent of the training sample, which consists of the rows with the smallest hashes.
        hashes = mixed(seed, mixed(seed, numbers.astype(np.uint64)))
        place: Floats = hashes / 2.0**64 / limit
        if keys is not None:
            return place, folds.parts(keys) == folds.cuts[-1].held
        test: Mask = place < test_share
        return np.where(test | (place >= 1.0), place, (place - test_share) / (1.0 - test_share)), test

    def learned(numbers: Array, keys: Floats | None) -> Mask:
        place, test = places(numbers, keys)
        return ~test & (place < share)

    def scored(numbers: Array, keys: Floats | None) -> Mask:
        place, test = places(numbers, keys)
        return test & (place < 1.0)

    return RowRule(learned, scored)


def _row_seconds(fm: FeatureMap, sampled: SampledFit) -> float:
    """Return the seconds that one thread needs to compute the features of a row."""
    X = sampled.chosen.result()[1][:_TIMED_ROWS]
    started = time.perf_counter()
    fm.chain.transform(X)
    return (time.perf_counter() - started) / len(X)


@dataclass(frozen=True)
class AllRows:
    """Scores maps on rows of the whole data. The maps are fitted on rows of the sample."""

    problem: Problem

    def tested(self, recipes: list[Recipe], size: Size, boosts: bool) -> Predictions:
        """Fit a map with ridge (or with boosting, if `boosts`) in a pass over all rows. Predict the held-out rows."""
        problem, table = self.problem, self.problem.table
        weight = "balanced" if problem.balanced else "none"
        ridge = {"kind": "ridge", "task": problem.predictor_task, "class_weight": weight}
        sampled = self._sample_for(problem.config(recipes if boosts else [*recipes, ridge]))
        limit, folds = min(1.0, size.rows / table.sampled.n_rows), Folds.by(sampled.keys, size.parts)
        with_share = partial(rule_of_share, problem.seed, limit, folds, size.held)
        share = min(
            size.share, MOST_ROWS / size.learned if boosts else 1.0
        )  # boosting keeps its rows in memory
        rule, for_map = (with_share(min(share, most)) for most in (1.0, MOST_MAP_ROWS / len(sampled.chosen)))
        sampled = sampled.of_rows(for_map.learned)
        with problem.data.open() as source:
            data = TrainingData(source, problem.label, problem.asked.split)
            job = PredictorJob(data, table.summary, folds, problem.jobs)
            if boosts:
                fm, _ = map_of_rows(sampled, job, rule.learned)
                known, held = (results_of(data.of_rows(one), fm, problem.jobs) for one in rule)
                model = boosted(problem.task, known.results, known.labels)
                task, tested = problem.task, Tested(model(held.results), held.labels, held.keys)
            else:
                fm, rows = predicted(sampled, job, rule)
                task, tested = self._of_model(fm, rows)
        return Predictions(tested, fm.chain, _row_seconds(fm, sampled), task)

    def _sample_for(self, config: Config) -> SampledFit:
        """Return the sample for a config, read again if the column that defines the folds is not a feature."""
        problem, split_by = self.problem, SplitBy.of(config)
        sampled, groups = problem.table.sampled, problem.table.groups
        coded = config.read.coded.keys()
        if split_by is None or split_by.column not in coded - set(sampled.columns.names):
            return replace(sampled, config=config)
        with problem.data.open() as source:
            data = TrainingData(source, problem.label, problem.asked.split, weight=problem.asked.weight)
            return replace(read_sample(config, data, left_out=groups.left_out), summary=sampled.summary)

    def test_score(self, fm: FeatureMap, split: str) -> TestScore:
        """Return the score of a fitted model on the test rows."""
        problem = self.problem
        with problem.data.open() as source:
            tests = TrainingData(source, problem.label, split, tested=True)
            rows = results_of(tests, fm, problem.jobs, "predictions")
        task, (predicted, labels, groups, _) = self._of_model(fm, rows)
        if not len(labels):
            raise DataError(
                f"{problem.data.name}: split {quoted(split)}: expected at least one row of test, got none"
            )
        score = problem.scoring.of(task, predicted, labels)
        if not np.isfinite(score):
            return TestScore(None, None, len(labels))
        resampled = resampled_scores(problem.scoring, task, predicted, labels, _TEST_RESAMPLES, groups=groups)
        return TestScore(score, float(np.nanstd(resampled)), len(labels))

    def _of_model(self, fm: FeatureMap, rows: LabelledRows) -> tuple[PredictionTask, Tested]:
        """Return the task with the classes of model and rows, and predictions and labels in the form of this task."""
        model, task = fm.needed_predictor().labels, self.problem.task
        if model.classes is not None and rows.labels.ndim == 1:
            task = replace(task, classes=class_numbers(rows.labels)[0])
        rule = ModelScoring.of(task, model)
        split_by = SplitBy.of(self.problem.start)
        keys = None if split_by is None or split_by.ordered else rows.keys
        return rule.task, Tested(rule.predicted(rows.results), rule.named(rows.labels), keys)


def boosted(task: PredictionTask, Z: Floats, labels: Array) -> Callable[[Floats], Floats]:
    """Fit boosting on columns Z (n, d) with labels (n,), and return its predictions of numbers or probabilities.

    Raise DataError if this is impossible or would take too long.
    """
    nothing = np.zeros(len(Z), dtype=bool)
    rows, truth = split_rows(len(Z), 0, nothing), Truth(task, labels, Folded.of(None, len(Z)))
    model = boost(Inputs.of(Z), rows, truth)
    if isinstance(model, str):
        raise DataError(model)
    return model
