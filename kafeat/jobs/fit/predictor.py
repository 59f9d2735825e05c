"""Read all rows again for steps that learn from them, and fit the predictor with targets, folds and weights."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.chain.chain import FittedStep
from kafeat.chain.program import What
from kafeat.config import Config, load_config
from kafeat.contract.folds import Folds
from kafeat.contract.memory import blocks
from kafeat.contract.predictor import Learned, Predictor, Targets, TrainingRows
from kafeat.contract.step import DOUBLE, RowStream, Step
from kafeat.contract.tile import InputRows, TextRows, dense
from kafeat.errors import DataError, UsageError, quoted
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.selection import match
from kafeat.io.readers.base import Chunk, Reader
from kafeat.jobs.fit.label_summary import LabelSummary
from kafeat.jobs.fit.labels import label_names
from kafeat.jobs.fit.messages import SILENT, Listener
from kafeat.jobs.fit.sample import RowReader, TrainingData, matrices
from kafeat.jobs.fit.split_by import SplitBy, refuse_shared
from kafeat.jobs.options import ClassWeight
from kafeat.maths.intervals import MOST_SCORES, Intervals, fit_intervals
from kafeat.maths.ridge import MOST_NUMBERS
from kafeat.maths.row_sample import RowSample, mixed
from kafeat.maths.task import PredictionTask
from kafeat.model.feature_map import FeatureMap
from kafeat.model.predictor import FittedPredictor
from kafeat.model.provenance import ChosenParameter, Provenance, printable
from kafeat.model.serialize import WITH_INTERVALS, WITH_PREDICTOR
from kafeat.runtime.environment import count_jobs
from kafeat.runtime.run import NewArrays, run
from kafeat.types import Array, Floats, Mask


class LabelledRows(NamedTuple):
    """Rows of a chunk to learn from or to score: the n rows in the mask `taken`. The chunk begins at row `start`.

    `results` (n, width) are features or predictions of these rows. Labels, weights and keys have n entries or are None.
    """

    start: int
    taken: Mask
    results: Floats
    labels: Array
    weights: Floats | None
    keys: Floats | None

    def parts(self, folds: Folds, seed: int) -> Array:
        """Return the fold (n,) of each row."""
        return parts_of(folds, seed, self.start + np.flatnonzero(self.taken), self.keys)


def parts_of(folds: Folds, seed: int, numbers: Array, keys: Floats | None) -> Array:
    """Return the fold (n,) of each row by its key or, without keys, by the hash of its number in the data."""
    return folds.parts(mixed(seed, numbers.astype(np.uint64)) if keys is None else keys)


def labelled_rows(
    data: TrainingData, fm: FeatureMap, jobs: int, what: What = "features"
) -> Iterator[LabelledRows]:
    """Yield the training rows of all chunks in order, with features or predictions computed by `jobs` threads."""
    about: deque[LabelledRows] = deque()
    program = fm.program(what)
    target = NewArrays(program.width, program.dtype)
    for done in run(program, _chosen(data, fm.config, fm.columns, about), target, jobs):
        yield about.popleft()._replace(results=done.floats)


_NONE = np.empty((0, 0))


def _chosen(
    data: TrainingData, config: Config, columns: Columns, about: deque[LabelledRows]
) -> Iterator[Chunk]:
    """Yield the training rows of all chunks in order, and append their labels, weights and keys to `about`."""
    reader = RowReader(data, config)
    not_features = [name for name in reader.names if reader.split_by != SplitBy(True, name)]
    matched = match(data.source, columns, not_features)
    for chunk in reader.source.chunks(matched, reader.names, config.chunk_rows):
        taken, labels, weights, keys = reader.read(chunk)
        if labels is None:
            raise TypeError("rows without labels")
        own = None if keys is None else keys[taken]
        about.append(LabelledRows(chunk.start, taken, _NONE, labels[taken], weights, own))
        # Test rows that the map cannot transform do no harm, because they are skipped.
        yield chunk if taken.all() else chunk.selected(taken)


def row_streams(
    config: Config, data: TrainingData, listener: Listener = SILENT
) -> Callable[[Columns, Array], RowStream]:
    """Return a function that makes a stream of all training rows, from columns and from labels that imply the task."""

    def blocks(columns: Columns) -> Iterator[tuple[InputRows, Array]]:
        about: deque[LabelledRows] = deque()
        for _, X in matrices(_chosen(data, config, columns, about), DOUBLE):
            rows = about.popleft()
            yield X if isinstance(X, TextRows) else dense(X), rows.labels
            listener.rows(len(rows.taken))
        data.source.check_unchanged()

    return lambda columns, labels: RowStream(labels, lambda: blocks(columns))


def targets_of(task: PredictionTask, summary: LabelSummary, folds: Folds) -> Targets:
    """Return the targets of a task: one for each class, or one for each number that is predicted."""
    n = summary.columns if task.classes is None else len(task.classes)
    if task.classes is not None:
        return Targets(n, True, np.zeros(n), np.ones(n), folds)
    return Targets(n, False, np.atleast_1d(task.centre), np.atleast_1d(task.unit), folds)


@dataclass(frozen=True)
class PredictorJob:
    """The rows that a predictor is fitted on, the summary of all their labels, and the folds that choose a penalty."""

    data: TrainingData
    summary: LabelSummary
    folds: Folds
    jobs: int | None
    listener: Listener = SILENT


class Training:
    """A predictor that is being fitted, and a sample of its rows, which is kept in memory.

    Attributes:
        parts: The folds of the rows that the predictor has learned from so far.
        rows: The number of these rows.
        targets: What the predictor has to predict.
    """

    def __init__(
        self, step: Predictor, fm: FeatureMap, task: PredictionTask, job: PredictorJob, keep: bool
    ) -> None:
        """Begin a fit without rows. With `keep`, a sample of rows is kept for intervals."""
        self.parts, self.rows = set[int](), 0
        width, seed, summary = fm.n_components, fm.config.seed, job.summary
        self._seed, self._task, self._folds = seed, task, job.folds
        targets = targets_of(task, summary, job.folds)
        n, classes = targets.n, targets.classes
        # Keep the rows with the largest hashes. The map's sample has the smallest, and steps may have used its labels.
        most = step.most_kept(width) if classes else min(MOST_SCORES, step.most_kept(width)) if keep else 1
        self._kept = RowSample(seed, most, largest=True)
        self.targets = targets
        self._learning = step.begin(width, targets, count_jobs(job.jobs))
        balanced = step.class_weight == "balanced"
        if balanced and not classes:
            raise DataError(f"{step.kind}: class_weight: balanced: expected a label of classes, got numbers")
        self._class_weights: Floats | None = summary.total / (n * summary.counts) if balanced else None
        self._weighted = False

    def add(self, rows: LabelledRows) -> None:
        """Learn from the rows of a chunk, block by block, and keep a sample of them."""
        start, taken, Z, labels, given, _ = rows
        parts, weights = rows.parts(self._folds, self._seed), self._weights(labels, given)
        self._weighted = weights is not None
        # A row with weight 0 counts as absent, and a fold that has only such rows is not among `parts`.
        learned = np.ones(len(Z), dtype=bool) if given is None else given > 0.0
        train = np.flatnonzero(learned)
        self.parts |= set(parts[train].tolist())
        self.rows += len(train)
        for block in blocks(len(train), Z.shape[1], MOST_NUMBERS):
            chosen = train[block]
            some: Array | slice = slice(None) if len(chosen) == len(Z) else chosen
            targets = self._task.targets(labels[some])
            own = None if weights is None else weights[some]
            self._learning.add(TrainingRows(Z[some], targets, parts[some], own))
        places = np.full(len(taken), -1)  # index in Z of each row of the chunk, -1 if it is not learned from
        places[np.flatnonzero(taken)[learned]] = train
        offsets = self._kept.choose(start, len(taken))
        offsets = offsets[places[offsets] >= 0]
        kept = places[offsets]
        ones = np.ones(len(kept))
        own, counts = (ones if one is None else one[kept] for one in (weights, given))
        about = np.column_stack([self._task.targets(labels[kept]), counts, own, parts[kept]])
        self._kept.add(start, len(taken), offsets, Z[kept], about=about)

    def _weights(self, labels: Array, given: Floats | None) -> Floats | None:
        if self._class_weights is None:
            return given
        of_class = self._class_weights[self._task.numbers(labels)]
        return of_class if given is None else given * of_class

    def learned(self) -> Learned:
        """Finish the fit, and return what the predictor has learned."""
        _, Z, kept_about = self._kept.result()
        about = kept_about["about"]
        counts, weights = about[:, -3:-1].T if self._weighted else (None, None)
        kept = TrainingRows(Z, about[:, :-3], about[:, -1].astype(np.intp), weights, counts)
        return self._learning.learned(kept)


def with_class_weight(config: Config, class_weight: ClassWeight | None) -> Config:
    """Return the config with this class weight for its predictor. None leaves the config unchanged."""
    if class_weight is None:
        return config
    if config.predictor is None:
        raise UsageError(
            "class_weight: expected a config that ends in a predictor, such as ridge, got a map without a predictor"
        )
    plain = config.to_plain()
    plain["steps"][-1]["class_weight"] = class_weight
    return load_config(plain)


def check_rereadable(source: Reader, step: Step) -> None:
    """Refuse a pipe, because a step that learns from all rows needs a second pass."""
    if not source.rereadable:
        raise UsageError(
            f"{source.location}: expected a file by its name, as {step.kind} is fitted in a second pass over all rows, "
            "got standard input or a pipe, which can be read only once: save it to a file first"
        )


def check_weight(config: Config, weight: str | None, others: Sequence[str | None]) -> None:
    """Refuse weights without a predictor, which would have no effect, and a column of weights that is in `others`."""
    refuse_shared("--weight", weight, others)
    if weight is not None and config.predictor is None:
        raise UsageError(
            "--weight: expected a config that ends in a predictor, such as ridge, got a map: its steps use no weights"
        )


def fit_predictor(
    fm: FeatureMap, job: PredictorJob, intervals: bool = False, scores: Sequence[Sequence[float]] = ()
) -> FeatureMap:
    """Return the map with the predictor of its config, fitted on all rows.

    With `intervals`, the model keeps the errors of held-out rows. `scores` holds the scores of all penalties for each
    fold, if the scores come from maps that were fitted again without the fold.
    """
    data, summary, listener = job.data, job.summary, job.listener
    place = data.source.location
    training, learned = learn_predictor(fm, job, intervals, scores)
    step = learned.step
    rows_learned = training.rows if learned.rows is None else learned.rows
    if rows_learned < training.rows:
        listener.warn(
            f"{place}: {step.kind} was fitted on a random sample of {rows_learned:,} of {training.rows:,} rows, as it "
            "keeps their features in memory; ridge uses all rows"
        )
    names = label_names(data.label)
    labels = summary.labels(summary.task(step.task, names), tuple(map(printable, names)))
    fitted = FittedStep(learned.step, learned.state, fm.n_components)
    predictor = FittedPredictor(fitted, labels)
    provenance = _provenance(fm, learned, rows_learned, data.weight)
    fm = replace(fm, predictor=predictor, format=WITH_PREDICTOR, provenance=provenance)
    held_out = learned.held_out
    if not intervals or held_out is None:
        return fm

    def find() -> Intervals | None:
        with one_blas_thread(linalg=True):
            return fit_intervals(held_out(), training.targets, count_jobs(job.jobs))

    return with_intervals(fm, find, place, listener)


def learn_predictor(
    fm: FeatureMap, job: PredictorJob, intervals: bool = False, scores: Sequence[Sequence[float]] = ()
) -> tuple[Training, Learned]:
    """Fit the predictor of a map's config on all rows, and return its result. `fit_predictor` explains arguments."""
    data, summary = job.data, job.summary
    step, place = fm.config.predictor, data.source.location
    if step is None:
        raise TypeError("the config has no predictor")
    if data.weight is not None and summary.rows < 2:
        raise DataError(f"{place}: {_of_weights(data.weight, summary.rows)}")
    means = tuple(np.mean(scores, axis=0).tolist()) if len(scores) else ()
    multiples = step.multiples
    if means:
        step = step.with_penalty(multiples[int(np.argmax(means))])
    try:
        task = summary.task(step.task)
        training = Training(step, fm, task, job, intervals)
        job.listener.phase(f"fitting {step.kind} on {summary.rows:,} rows")
        learned = _learn(training, fm, job)
    except DataError as error:
        raise error if str(error).startswith(place) else DataError(f"{place}: {error}") from None
    data.source.check_unchanged()
    return training, replace(learned, penalties=multiples, scores=means) if means else learned


def with_intervals(
    fm: FeatureMap, find: Callable[[], Intervals | None], place: str, listener: Listener
) -> FeatureMap:
    """Return the model with the intervals that `find` returns. Without intervals, warn and return the same model."""
    try:
        intervals, reason = find(), f"{place}: expected rows to hold out of the fit, got none"
    except DataError as error:
        intervals, reason = None, str(error)
    if intervals is None:
        listener.warn(f"the model has no intervals (predict --interval): {reason}")
        return fm
    predictor = replace(fm.needed_predictor(), intervals=intervals)
    for caution in predictor.interval_cautions(fm.config.split_by):
        listener.inform(f"{place}: {caution}")
    return replace(fm, predictor=predictor, format=WITH_INTERVALS)


def _learn(training: Training, fm: FeatureMap, job: PredictorJob) -> Learned:
    weight = job.data.weight
    with one_blas_thread(linalg=True):
        for rows in labelled_rows(job.data, fm, count_jobs(job.jobs)):
            training.add(rows)
            job.listener.rows(len(rows.taken))
        if weight is not None and len(training.parts) < 2:
            raise DataError(_of_weights(weight, len(training.parts)))
        return training.learned()


def _of_weights(weight: str, parts: int) -> str:
    return (
        f"weight {quoted(weight)}: expected numbers above 0 in at least two of the folds, which are held out in turn, "
        f"got them in {parts}: give more rows a weight above 0"
    )


def _provenance(fm: FeatureMap, learned: Learned, rows: int, weight: str | None) -> Provenance:
    searches = list(fm.provenance.searches)
    if learned.scores:
        searches.append(
            ChosenParameter(
                parameter=f"steps[{len(fm.config.steps) - 1}].penalty",
                chosen=learned.step.recipe()["penalty"],
                values=list(learned.penalties),
                scores=list(learned.scores),
            )
        )
    changes = {"searches": searches, "rows_learned": rows, "weight": weight and printable(weight)}
    return fm.provenance.model_copy(update=changes)
