"""Fit the predictor of a config on all rows, in a second pass over the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.chain.fitted_step import FittedStep
from kafeat.contract.predictor import Learned, Predictor, Targets, TrainingRows
from kafeat.errors import DataError, UsageError
from kafeat.io.columns.selection import match
from kafeat.io.readers.base import Reader
from kafeat.jobs.fit.label_summary import LabelSummary
from kafeat.jobs.fit.labels import LabelArgument, LabelColumns, label_names, label_values
from kafeat.jobs.fit.messages import Listener
from kafeat.jobs.fit.sample import held_out_rows
from kafeat.maths.linear_system import FOLDS
from kafeat.maths.row_sample import RowSample, row_hashes
from kafeat.maths.task import PredictionTask
from kafeat.model.feature_map import WITH_PREDICTOR, FeatureMap
from kafeat.model.predictor import FittedPredictor
from kafeat.model.provenance import Search, printable
from kafeat.runtime.environment import count_jobs
from kafeat.runtime.threads import RowPolicy, Transformed
from kafeat.types import Array, Floats, Mask

# Numbers of a block of rows, which are in float64 while they are added.
_MOST_NUMBERS = 1 << 22


def check_rereadable(source: Reader, step: Predictor) -> None:
    """Refuse a pipe, as a predictor needs a second pass."""
    if not source.rereadable:
        raise UsageError(
            f"{source.location}: expected a file, as {step.kind} is fitted in a second pass over all rows, got a pipe, "
            "which can be read only once: save it to a file first"
        )


def fit_predictor(
    fm: FeatureMap,
    source: Reader,
    label: LabelArgument,
    summary: LabelSummary,
    *,
    split: str | None,
    held_out: Array | None,
    jobs: int | None,
    listener: Listener,
) -> FeatureMap:
    """Return the map with the predictor of its config, fitted on all rows that the map may be fitted on.

    `summary` is that of their labels. The other arguments are those of `read_sample`.
    """
    step = fm.config.predictor
    if step is None:
        raise TypeError("the config has no predictor")
    jobs = count_jobs(jobs)
    try:
        task = summary.task(step.task)
    except DataError as error:
        raise DataError(f"{source.location}: {error}") from None
    listener.phase(f"fitting {step.kind} on {summary.rows:,} rows")
    training = _Training.begin(fm, step, task, summary, jobs)
    with one_blas_thread(linalg=True):
        for rows in _RowsWithLabels(fm, source, label, split, held_out, jobs):
            training.add(rows)
            listener.rows(rows.done.chunk.rows)
        learned = training.learned()
    source.check_unchanged()
    rows = summary.rows if learned.rows is None else learned.rows
    if rows < summary.rows:
        listener.warn(
            f"{source.location}: {step.kind} was fitted on a random sample of {rows:,} of {summary.rows:,} rows, as it "
            "keeps their features in memory; ridge takes all of them"
        )
    names = label_names(label)
    fitted = FittedStep(learned.step, learned.state, fm.n_components)
    predictor = FittedPredictor(fitted, summary.labels(task, tuple(map(printable, names))))
    return replace(fm, predictor=predictor, format=WITH_PREDICTOR, provenance=_provenance(fm, learned, rows))


def _provenance(fm: FeatureMap, learned: Learned, rows: int) -> Any:
    searches = list(fm.provenance.searches)
    if learned.scores:
        place = f"steps[{len(fm.config.steps) - 1}].penalty"
        chosen = learned.step.recipe()["penalty"]
        searches.append(
            Search(
                parameter=place, chosen=chosen, values=list(learned.penalties), scores=list(learned.scores)
            )
        )
    return fm.provenance.model_copy(update={"searches": searches, "rows_learned": rows})


@dataclass(frozen=True)
class _LabelledRows:
    """A chunk with its features, the rows to learn from, and the labels of all of its rows."""

    done: Transformed
    train: Mask
    labels: Array


class _RowsWithLabels:
    """An iterator over all chunks, in order."""

    def __init__(
        self,
        fm: FeatureMap,
        source: Reader,
        label: LabelArgument,
        split: str | None,
        held_out: Array | None,
        jobs: int,
    ) -> None:
        self._fm, self._jobs, self._split, self._held_out = fm, jobs, split, held_out
        self._given = label_values(label)
        self._columns = LabelColumns(label_names(label))
        keep = [*label_names(label), *([] if split is None or held_out is not None else [split])]
        self._chunks = source.chunks(match(source, fm.columns, keep), keep, fm.chunk_rows)

    def __iter__(self) -> Any:
        # A test row that the map refuses is not learned from, so it does no harm.
        for done in self._fm.run(self._chunks, _NewArrays(self._fm), self._jobs, RowPolicy(set_aside=True)):
            chunk = done.chunk
            train = ~held_out_rows(chunk, self._held_out, self._split)
            bad = next((refused for refused in done.bad_rows if train[refused.row]), None)
            if bad is not None:
                raise chunk.located(bad)
            labels = (
                self._columns.read(chunk)
                if self._given is None
                else self._given[chunk.start : chunk.start + chunk.rows]
            )
            yield _LabelledRows(done, train, labels)


@dataclass(frozen=True)
class _NewArrays:
    """A target of features: new memory for every chunk."""

    fm: FeatureMap

    def buffer(self, start: int, rows: int) -> Floats:
        del start
        return np.empty((rows, self.fm.n_components), self.fm.dtype)

    def filled(self, start: int, block: Floats) -> None:
        return


class _Training:
    """A predictor that is being fitted, and the rows that are kept."""

    def __init__(
        self, seed: int, step: Predictor, task: PredictionTask, learning: Any, kept: RowSample
    ) -> None:
        self._seed, self._step, self._task, self._learning, self._kept = seed, step, task, learning, kept
        self._class_weights: Floats | None = None

    @classmethod
    def begin(
        cls, fm: FeatureMap, step: Predictor, task: PredictionTask, summary: LabelSummary, jobs: int
    ) -> _Training:
        classes = task.classes is not None
        n = summary.columns if task.classes is None else len(task.classes)
        centre, unit = (np.zeros(n), np.ones(n)) if classes else map(np.atleast_1d, (task.centre, task.unit))
        seed = fm.config.seed
        # The largest hashes: a fit of the map takes the smallest, and steps that learn from labels know those rows.
        kept = RowSample(seed, step.most_kept(fm.n_components) if classes else 1, largest=True)
        learning = step.begin(fm.n_components, Targets(n, classes, centre, unit), jobs)
        made = cls(seed, step, task, learning, kept)
        if classes and step.class_weight == "balanced":
            made._class_weights = summary.rows / (n * summary.counts)
        elif step.class_weight == "balanced":
            raise DataError(f"{step.kind}: class_weight: balanced: expected a label of classes, got numbers")
        return made

    def add(self, rows: _LabelledRows) -> None:
        """Add the rows of a chunk, some at a time."""
        chunk, Z = rows.done.chunk, rows.done.features
        folds = _folds(self._seed, chunk.start, chunk.rows)
        train = np.flatnonzero(rows.train)
        height = max(1, _MOST_NUMBERS // Z.shape[1])
        for start in range(0, len(train), height):
            self._learning.add(self._rows(Z, rows.labels, folds, train[start : start + height]))
        offsets = self._kept.choose(chunk.start, chunk.rows)
        offsets = offsets[rows.train[offsets]]
        targets = self._task.targets(rows.labels[offsets])
        self._kept.add(chunk.start, chunk.rows, offsets, Z[offsets], targets)

    def _rows(self, Z: Floats, labels: Array, folds: Array, chosen: Array) -> TrainingRows:
        if len(chosen) == len(Z):
            return TrainingRows(Z, self._targets(labels), folds, self._weights(labels))
        labels = labels[chosen]
        return TrainingRows(Z[chosen], self._targets(labels), folds[chosen], self._weights(labels))

    def _targets(self, labels: Array) -> Floats:
        return self._task.targets(labels)

    def _weights(self, labels: Array) -> Floats | None:
        return None if self._class_weights is None else self._class_weights[self._task.numbers(labels)]

    def learned(self) -> Learned:
        """Return the result."""
        rows, Z, targets = self._kept.result()
        if targets is None:
            raise TypeError("all rows have targets")
        folds = np.concatenate([_folds(self._seed, int(row), 1) for row in rows])
        weights = None if self._class_weights is None else targets @ self._class_weights
        kept = TrainingRows(Z, targets, folds, weights)
        learned: Learned = self._learning.learned(kept)
        return learned


def _folds(seed: int, start: int, rows: int) -> Array:
    return (row_hashes(seed, start, rows) % np.uint64(FOLDS)).astype(np.intp)
