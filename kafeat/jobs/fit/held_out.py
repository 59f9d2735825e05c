"""Fit on some rows of data that can be read again, and predict other rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kafeat.chain.program import What
from kafeat.contract.folds import Cut, Folds
from kafeat.jobs.fit.messages import SILENT
from kafeat.jobs.fit.predictor import (
    LabelledRows,
    PredictorJob,
    fit_predictor,
    labelled_rows,
    parts_of,
    row_streams,
)
from kafeat.jobs.fit.sample import RowChoice, SampledFit, TrainingData
from kafeat.maths.task import joined
from kafeat.model.feature_map import FeatureMap
from kafeat.runtime.environment import count_jobs
from kafeat.types import Mask


class RowRule(NamedTuple):
    """The rows to learn from, and the rows to score on. No row is in both, and some may be in neither."""

    learned: RowChoice
    scored: RowChoice

    @classmethod
    def of_cut(cls, cut: Cut, folds: Folds, seed: int) -> RowRule:
        """Return the rule that learns from the training folds of a cut, and scores on its held-out fold."""
        return cls(rows_in(cut.train, folds, seed), rows_in([cut.held], folds, seed))


def among(rows: Mask) -> RowChoice:
    """Return a function that selects rows by a mask (n,) of all rows of the data."""
    return lambda numbers, _: rows[numbers]


def rows_in(kept: Collection[int], folds: Folds, seed: int) -> RowChoice:
    """Return a function that selects the rows in these folds."""
    return lambda numbers, keys: np.isin(parts_of(folds, seed, numbers, keys), list(kept))


def map_of_rows(
    sampled: SampledFit, job: PredictorJob, learned: RowChoice
) -> tuple[FeatureMap, PredictorJob]:
    """Fit a map on sampled rows. Return the map, and the job to fit a predictor on all rows that `learned` selects.

    The sampled rows must also be rows that `learned` selects.
    """
    return learned_map(sampled, replace(job, data=job.data.of_rows(learned), listener=SILENT))


def learned_map(
    sampled: SampledFit, job: PredictorJob, *, with_mean: bool = False, **how: Any
) -> tuple[FeatureMap, PredictorJob]:
    """Fit a map on a sample of a job's rows. Return the map, and the job with folds by groups or times."""
    streams, jobs = row_streams(sampled.config, job.data, job.listener), count_jobs(job.jobs)
    fm = sampled.learn(job.listener, with_mean=with_mean, all_rows=streams, jobs=jobs, **how)
    return fm, replace(job, folds=Folds.by(sampled.keys))


def predicted(sampled: SampledFit, job: PredictorJob, rule: RowRule) -> tuple[FeatureMap, LabelledRows]:
    """Fit map and predictor on the rows to learn from. Return the map, and the predictions for the rows to score on."""
    fm = fit_predictor(*map_of_rows(sampled, job, rule.learned))
    return fm, results_of(job.data.of_rows(rule.scored), fm, job.jobs, "predictions")


def results_of(data: TrainingData, fm: FeatureMap, jobs: int | None, what: What = "features") -> LabelledRows:
    """Return features or predictions of all training rows as one `LabelledRows`, with labels, weights and keys."""
    starts, taken, results, labels, weights, keys = zip(
        *labelled_rows(data, fm, count_jobs(jobs), what), strict=True
    )
    return LabelledRows(
        starts[0],
        np.concatenate(taken),
        np.concatenate(results),
        joined(labels),
        None if data.weight is None else np.concatenate(weights),
        None if fm.config.split_by is None else np.concatenate(keys),
    )
