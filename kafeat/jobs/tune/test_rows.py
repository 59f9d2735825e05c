"""The score of a fitted map on rows that the choice of its config has not seen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kafeat.errors import DataError, quoted
from kafeat.evaluation.learners import Ridge, predictions
from kafeat.evaluation.preparation import Truth
from kafeat.evaluation.preparation import split as divided
from kafeat.jobs.evaluate.inputs import EvaluatedMap, RereadableData
from kafeat.jobs.evaluate.request import EvaluationRequest
from kafeat.jobs.fit.labels import LabelArgument, joint_labels, label_names, label_values, parse_test_rows
from kafeat.maths.scoring import ScoringName, score_of
from kafeat.maths.task import PredictionTask, TaskKind, task_of
from kafeat.model.feature_map import FeatureMap
from kafeat.types import Array

_RESAMPLES = 100


class Score(NamedTuple):
    """A score and its standard error, from resampled rows."""

    value: float
    error: float
    rows: int


def score_test_rows(
    fm: FeatureMap,
    data: RereadableData,
    label: LabelArgument,
    split: str,
    kind: TaskKind,
    scoring: ScoringName,
    jobs: int,
) -> Score:
    """Train ridge on the features of the training rows, and score it on the test rows."""
    names, labels = label_names(label), label_values(label)
    n, read = data.label_columns({"--split": [split], "--label": names})
    if labels is None:
        labels = joint_labels({name: read[name] for name in names}, data.name)
    test, _ = parse_test_rows(read[split])
    if not test.any():
        raise DataError(f"{data.name}: split {quoted(split)}: expected at least one row of test, got none")
    # of all labels, as a class may have test rows only
    truth = Truth(task_of(labels, kind), labels, divided(n, fm.config.seed, test).folds)
    features = EvaluatedMap(fm, data, n, EvaluationRequest(names, split, jobs=jobs)).features
    rows, predicted = predictions(Ridge(jobs).linear(features, ~test, truth), features, test)
    return _score(scoring, truth.task, predicted, labels[rows])


def _score(scoring: ScoringName, task: PredictionTask, predicted: Array, labels: Array) -> Score:
    rng = np.random.default_rng(0)
    draws = [rng.integers(len(labels), size=len(labels)) for _ in range(_RESAMPLES)]
    resampled = [score_of(scoring, task, predicted[rows], labels[rows]) for rows in draws]
    return Score(score_of(scoring, task, predicted, labels), float(np.nanstd(resampled)), len(labels))
