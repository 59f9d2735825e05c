"""Fit steps and predictor again without some rows, for the errors of these rows where a step learns from the label."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.config import Config
from kafeat.contract.folds import Cut, Folds
from kafeat.contract.predictor import HeldOut, TrainingRows
from kafeat.io.readers.base import Chunk
from kafeat.jobs.fit.messages import SILENT
from kafeat.jobs.fit.predictor import (
    PredictorJob,
    fit_predictor,
    labelled_rows,
    learn_predictor,
    row_streams,
    targets_of,
)
from kafeat.jobs.fit.sample import SampledFit, TrainingData
from kafeat.jobs.fit.search import limit_landmarks
from kafeat.jobs.fit.split_by import KeyReader, SplitBy
from kafeat.maths.intervals import Intervals, fit_intervals
from kafeat.maths.ridge import NormalEquations
from kafeat.maths.row_sample import mixed, row_hashes
from kafeat.maths.task import PredictionTask
from kafeat.model.feature_map import FeatureMap
from kafeat.registry import build_step
from kafeat.runtime.environment import count_jobs
from kafeat.types import Array, Floats, Mask

# Folds of random rows, of which as many are fitted as have enough rows: a quantile at 90 % is then right to 0.4 points.
_FEWEST_FOLDS, _FEWEST_FITS, _ENOUGH_ROWS = 8, 3, 5_000


class _Parts(NamedTuple):
    """Division of all rows into parts, by their keys or at random, and the cuts that are fitted."""

    parts: int
    cuts: list[Cut]
    seed: int
    folds: Folds
    keys: KeyReader | None

    @classmethod
    def of(cls, config: Config, data: TrainingData, rows: int, folds: Folds, more: bool) -> Self:
        """Return the parts of so many rows: the folds that the penalty is chosen by, or `more` of random rows."""
        split_by = SplitBy.of(config)
        keys = split_by and KeyReader(split_by, data.source, config.seed)
        if keys is not None or not more:
            return cls(folds.count, folds.cuts, config.seed, folds, keys)
        parts = max(_FEWEST_FOLDS, _FEWEST_FITS * rows // _ENOUGH_ROWS)
        fitted = min(parts, -(-_ENOUGH_ROWS * parts // rows))
        every = range(parts)
        cuts = [Cut(tuple(part for part in every if part != held), held) for held in range(fitted)]
        return cls(parts, cuts, config.seed, folds, None)

    def of_rows(self, numbers: Array, keys: Array | None) -> Array:
        """Return the part of each row from its number (n,) in the data, or from its key (n,)."""
        if keys is not None:
            return self.folds.parts(keys)
        return (mixed(self.seed, numbers.astype(np.uint64)) % np.uint64(self.parts)).astype(np.intp)

    def of_chunk(self, chunk: Chunk) -> Array:
        """Return the part of each row of a chunk."""
        keys = None if self.keys is None else self.keys.keys(chunk).values
        return self.of_rows(np.arange(chunk.start, chunk.start + chunk.rows), keys)


@dataclass(frozen=True)
class Refit:
    """A model and its data, to fit models like it on parts of them: the folds, or `more` parts of random rows."""

    fm: FeatureMap
    sampled: SampledFit
    job: PredictorJob
    more: bool = False

    @property
    def jobs(self) -> int:
        """The number of threads."""
        return count_jobs(self.job.jobs)

    @cached_property
    def parts(self) -> _Parts:
        """The parts of the rows."""
        return _Parts.of(self.fm.config, self.job.data, self.job.summary.rows, self.job.folds, self.more)

    @cached_property
    def task(self) -> PredictionTask:
        """The task of the predictor that the config ends in."""
        step = self.fm.config.predictor
        if step is None:
            raise TypeError("the config has no predictor")
        return self.job.summary.task(step.task)

    def rows_of(self, kept: Iterable[int]) -> TrainingData:
        """Return the training rows of these parts."""
        before, kept = self.job.data.held_out, tuple(kept)

        def left_out(chunk: Chunk) -> Mask:
            rows: Mask = ~np.isin(self.parts.of_chunk(chunk), kept)
            return rows if before is None else rows | before(chunk)

        return replace(self.job.data, held_out=left_out)

    def sample_of(self, kept: Iterable[int]) -> SampledFit:
        """Return the rows of the sample in these parts."""
        parts = list(kept)
        return self.sampled.of_rows(lambda numbers, keys: np.isin(self.parts.of_rows(numbers, keys), parts))

    def mapped(self, cut: Cut) -> tuple[FeatureMap, Folds] | None:
        """Return a map that has seen only the rows to learn from, and their folds; None without any in the sample."""
        learned = self.sample_of(cut.train)
        if learned.chosen.empty:
            return None
        config = self._settled(len(learned.chosen))
        streams = row_streams(config, self.rows_of(cut.train))
        fm = replace(learned, config=config).learn(
            final=False, with_mean=False, all_rows=streams, jobs=self.jobs
        )
        return fm, Folds.by(learned.keys)

    def fitted(self, cut: Cut) -> FeatureMap | None:
        """Return a model that has seen only the rows to learn from; None if there are none in the sample."""
        made = self.mapped(cut)
        if made is None:
            return None
        fm, folds = made
        return fit_predictor(fm, PredictorJob(self.rows_of(cut.train), self.job.summary, folds, self.jobs))

    def _settled(self, rows: int) -> Config:
        """Return the config of the model with all that was chosen for it, for a fit on so many rows."""
        steps = [fitted.step for fitted in self.fm.chain.steps]
        recipes = [step.live_recipe() for step in steps]
        if limit_landmarks(recipes, rows) is not None:
            steps = [build_step(recipe) for recipe in recipes]
        model, last = self.fm.predictor, self.fm.config.steps[-1]
        return self.fm.config.model_copy(
            update={"steps": (*steps, last if model is None else model.fitted.step)}
        )

    def features(self, fm: FeatureMap) -> Floats:
        """Return the features of all rows that are held out by a cut."""
        scored = self.rows_of(cut.held for cut in self.parts.cuts)
        return np.concatenate([rows.results for rows in labelled_rows(scored, fm, self.jobs)])

    def scored(self) -> tuple[TrainingRows, Array]:
        """Return the rows that are held out by a cut, with the features of the model for numbers, and their parts."""
        held, parts = list[TrainingRows](), list[Array]()
        for rows in labelled_rows(self.rows_of(cut.held for cut in self.parts.cuts), self.fm, self.jobs):
            hashes = row_hashes(self.parts.seed, rows.chunk.start, rows.chunk.rows)[rows.taken]
            folds = self.parts.folds.parts(hashes if rows.keys is None else rows.keys)
            counts = np.ones(len(folds)) if rows.weights is None else rows.weights
            held.append(TrainingRows(rows.results, self.task.targets(rows.labels), folds, counts))
            parts.append(self.parts.of_chunk(rows.chunk)[rows.taken])
        Z, targets, of_folds, counts = (
            np.concatenate([getattr(one, name) for one in held])
            for name in ("features", "targets", "parts", "weights")
        )
        return TrainingRows(Z, targets, of_folds, counts, counts), np.concatenate(parts)

    def scores(self) -> list[tuple[float, ...]]:
        """Return scores of the penalties on each part, by maps and predictors that have not seen it."""
        step, scores = self.fm.config.predictor, list[tuple[float, ...]]()
        for cut in () if step is None or len(step.multiples) < 2 else self.parts.cuts:
            self.job.listener.phase(
                f"fitting without part {cut.held + 1} of {self.parts.parts} to choose a penalty"
            )
            made = self.mapped(cut)
            if made is not None and not self.sample_of([cut.held]).chosen.empty:
                rows = self.rows_of([*cut.train, cut.held])
                own = replace(
                    self.job, data=rows, folds=replace(self.job.folds, held=cut.held), listener=SILENT
                )
                scores.append(learn_predictor(made[0], own)[1].scores)
        return scores

    def intervals(self) -> Intervals | None:
        """Return intervals from errors of rows that neither steps nor predictor had seen; None without any."""
        task, (rows, parts) = self.task, self.scored()
        outputs, others = np.full(rows.targets.shape, np.nan), dict[Cut, FeatureMap]()
        for cut in self.parts.cuts:
            self.job.listener.phase(f"fitting without the rows of fold {cut.held + 1} of {self.parts.parts}")
            other = self.fitted(cut)
            if other is not None and (parts == cut.held).any():
                others[cut] = other
                own = labelled_rows(self.rows_of([cut.held]), other, self.jobs, "predictions")
                made = np.concatenate([one.results for one in own])
                outputs[parts == cut.held] = made if task.classes is not None else task.targets(made)
        outputs[rows.counts == 0.0] = np.nan

        def sizes(errors: Floats, multiple: float) -> Floats:
            """Return sizes in the features of each fold, whose model has not seen its rows, either."""
            known, found = np.isfinite(errors).all(axis=1), np.full(errors.shape, np.nan)
            for cut, other in others.items():
                Z, learned, own = self.features(other), known & np.isin(parts, cut.train), parts == cut.held
                if learned.any():
                    equations = NormalEquations(Z.shape[1], errors.shape[1], self.jobs, folds=self.job.folds)
                    some = rows.select(learned)
                    equations.add_blocks(Z[learned], errors[learned], some.parts, some.weights)
                    found[own] = equations.model_of(multiple)(Z[own].astype(np.float64))
            return found

        with one_blas_thread(linalg=True):
            targets = targets_of(task, self.job.summary, self.job.folds)
            return fit_intervals(HeldOut(rows, outputs), targets, self.jobs, sizes)
