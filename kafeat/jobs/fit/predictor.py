"""Fit the predictor of a config on all rows, in a second pass over the data, with targets, folds and weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from kafeat.chain.blas import one_blas_thread
from kafeat.chain.chain import FittedStep
from kafeat.config import Config
from kafeat.contract.predictor import Learned, Predictor, Targets, TrainingRows
from kafeat.errors import DataError, UsageError, quoted, spell_row
from kafeat.io.columns.selection import match
from kafeat.io.readers.base import Chunk, Reader
from kafeat.jobs.fit.labels import LabelReader, LabelSummary, label_names, read_label
from kafeat.jobs.fit.messages import Listener
from kafeat.jobs.fit.sample import TrainingData
from kafeat.jobs.options import ClassWeight
from kafeat.maths.ridge import FOLDS
from kafeat.maths.row_sample import RowSample, row_hashes
from kafeat.maths.task import PredictionTask
from kafeat.model.feature_map import FeatureMap
from kafeat.model.predictor import FittedPredictor
from kafeat.model.provenance import ChosenParameter, Provenance, printable
from kafeat.model.serialize import WITH_PREDICTOR
from kafeat.runtime.environment import count_jobs
from kafeat.runtime.run import Done, NewArrays, RowPolicy, run
from kafeat.types import Array, Floats, Mask

# Products of two sums of weights stay within float64.
_WEIGHTS = (1e-100, 1e100)


LabelledRows = tuple[Done, Mask, Array, Floats | None]
"""A chunk with its features, the rows to learn from, and the labels and weights of all of its rows."""


def _labelled_rows(data: TrainingData, fm: FeatureMap, jobs: int) -> Iterator[LabelledRows]:
    """Yield all chunks in order, transformed by `jobs` threads."""
    labels = LabelReader(data.label)
    split = None if data.held_out is not None else data.split
    keep = [name for name in (*label_names(data.label), split, data.weight) if name is not None]
    # The column of parts is no feature, even where it is not read.
    not_features = [*keep, *([data.split] if data.split is not None and data.split not in keep else [])]
    columns = match(data.source, fm.columns, not_features)
    chunks = data.source.coding(keep).chunks(columns, keep, fm.chunk_rows)
    program = fm.program()
    target = NewArrays(program.width, program.dtype)
    # A test row that the map refuses is not learned from, so it does no harm.
    for done in run(program, chunks, target, jobs, RowPolicy(set_aside=True)):
        chunk = done.chunk
        train = data.train_rows(chunk)
        bad = next((refused for refused in done.bad_rows if train[refused.row]), None)
        if bad is not None:
            raise chunk.located(bad)
        weights = None if data.weight is None else _weights(chunk, data.weight, train)
        yield done, train, labels.read(chunk), weights


def _weights(chunk: Chunk, name: str, train: Mask) -> Floats:
    """Return the weights of a chunk; refuse text, and for a row to learn from a number outside `_WEIGHTS`."""
    weights = read_label(chunk, name, "weight")
    if weights.dtype.kind == "O":
        raise DataError(f"{chunk.location}: weight {quoted(name)}: expected numbers, got text")
    weights = weights.astype(np.float64)
    least, most = _WEIGHTS
    outside = ((weights < least) | (weights > most)) & (weights != 0.0) & train
    if outside.any():
        row = int(outside.argmax())
        raise DataError(
            f"{chunk.location}: {spell_row(chunk.row_number(row))}, weight {quoted(name)}: expected 0 or a number from "
            f"{least:g} to {most:g}, got {weights[row]:g}"
        )
    return weights


# Numbers of a block of rows, which are in float64 while they are added.
_MOST_NUMBERS = 1 << 22


class Training:
    """A predictor that is being fitted, and the rows that are kept.

    Attributes:
        folds, rows: The folds, and the number, of the rows that were learned from.
    """

    def __init__(
        self, step: Predictor, width: int, seed: int, task: PredictionTask, summary: LabelSummary, jobs: int
    ) -> None:
        """Begin with no rows; `width` is that of the features, `summary` is about the labels of all rows."""
        self.folds, self.rows = set[int](), 0
        self._seed, self._task = seed, task
        classes = task.classes is not None
        n = summary.columns if task.classes is None else len(task.classes)
        centre, unit = (np.zeros(n), np.ones(n)) if classes else map(np.atleast_1d, (task.centre, task.unit))
        # The largest hashes: a fit of the map takes the smallest, and steps that learn from labels know those rows.
        self._kept = RowSample(seed, step.most_kept(width) if classes else 1, largest=True)
        self._learning = step.begin(width, Targets(n, classes, centre, unit), jobs)
        balanced = step.class_weight == "balanced"
        if balanced and not classes:
            raise DataError(f"{step.kind}: class_weight: balanced: expected a label of classes, got numbers")
        self._class_weights: Floats | None = summary.rows / (n * summary.counts) if balanced else None
        self._weighted = False

    def add(self, rows: LabelledRows) -> None:
        """Add the rows of a chunk, some at a time."""
        done, to_learn, labels, given = rows
        chunk, Z = done.chunk, done.floats
        folds = (row_hashes(self._seed, chunk.start, chunk.rows) % np.uint64(FOLDS)).astype(np.intp)
        weights = self._weights(labels, given)
        self._weighted = weights is not None
        # A row without weight is as good as absent, and a fold of such rows has no error to choose by.
        learned = to_learn if given is None else to_learn & (given > 0.0)
        train = np.flatnonzero(learned)
        self.folds |= set(folds[train].tolist())
        self.rows += len(train)
        height = max(1, _MOST_NUMBERS // Z.shape[1])
        for start in range(0, len(train), height):
            chosen = train[start : start + height]
            part: Array | slice = slice(None) if len(chosen) == len(Z) else chosen
            targets = self._task.targets(labels[part])
            own = None if weights is None else weights[part]
            self._learning.add(TrainingRows(Z[part], targets, folds[part], own))
        offsets = self._kept.choose(chunk.start, chunk.rows)
        offsets = offsets[learned[offsets]]
        own = np.ones(len(offsets)) if weights is None else weights[offsets]
        about = np.column_stack([self._task.targets(labels[offsets]), own, folds[offsets]])
        self._kept.add(chunk.start, chunk.rows, offsets, Z[offsets], about)

    def _weights(self, labels: Array, given: Floats | None) -> Floats | None:
        if self._class_weights is None:
            return given
        # Labels of rows that are not learned from may be no classes.
        of_class = self._class_weights[np.minimum(self._task.numbers(labels), len(self._class_weights) - 1)]
        return of_class if given is None else given * of_class

    def learned(self) -> Learned:
        """Return the result."""
        _, Z, about = self._kept.result()
        if about is None:
            raise TypeError("all rows have targets")
        weights = about[:, -2] if self._weighted else None
        kept = TrainingRows(Z, about[:, :-2], about[:, -1].astype(np.intp), weights)
        return self._learning.learned(kept)


def with_class_weight(config: Config, class_weight: ClassWeight | None) -> Config:
    """Return the config with this weight of the classes for its predictor; None leaves it as it is."""
    if class_weight is None:
        return config
    if config.predictor is None:
        raise UsageError(
            "class_weight: expected a config that ends in a predictor, such as ridge, got a map of features alone"
        )
    plain = config.to_plain()
    plain["steps"][-1]["class_weight"] = class_weight
    return Config.model_validate(plain)


def check_rereadable(source: Reader, step: Predictor) -> None:
    """Refuse a pipe, as a predictor needs a second pass."""
    if not source.rereadable:
        raise UsageError(
            f"{source.location}: expected a file by its name, as {step.kind} is fitted in a second pass over all rows, "
            "got standard input or a pipe, which can be read only once: save it to a file first"
        )


def check_weight_column(weight: str | None, others: Sequence[str | None]) -> None:
    """Refuse a column of weights that is the label or the split, too."""
    if weight is not None and weight in others:
        raise UsageError(
            f"--weight: expected another column than those of the label and the split, got {quoted(weight)}"
        )


def check_weight(config: Config, weight: str | None, others: Sequence[str | None]) -> None:
    """Refuse weights without a predictor, as they would have no effect, and a column that is one of `others`."""
    check_weight_column(weight, others)
    if weight is not None and config.predictor is None:
        raise UsageError(
            "--weight: expected a config that ends in a predictor, such as ridge, got a map: its steps know no weights"
        )


def fit_predictor(
    fm: FeatureMap, data: TrainingData, summary: LabelSummary, jobs: int | None, listener: Listener
) -> FeatureMap:
    """Return the map with the predictor of its config, fitted on all rows; `summary` is that of their labels."""
    step, place = fm.config.predictor, data.source.location
    if step is None:
        raise TypeError("the config has no predictor")
    try:
        task = summary.task(step.task)
        training = Training(step, fm.n_components, fm.config.seed, task, summary, count_jobs(jobs))
        listener.phase(f"fitting {step.kind} on {summary.rows:,} rows")
        learned = _learn(training, fm, data, count_jobs(jobs), listener)
    except DataError as error:
        raise error if str(error).startswith(place) else DataError(f"{place}: {error}") from None
    data.source.check_unchanged()
    rows_learned = training.rows if learned.rows is None else learned.rows
    if rows_learned < training.rows:
        listener.warn(
            f"{place}: {step.kind} was fitted on a random sample of {rows_learned:,} of {training.rows:,} rows, as it "
            "keeps their features in memory; ridge takes all of them"
        )
    names = tuple(map(printable, label_names(data.label)))
    fitted = FittedStep(learned.step, learned.state, fm.n_components)
    predictor = FittedPredictor(fitted, summary.labels(task, names))
    provenance = _provenance(fm, learned, rows_learned, data.weight)
    return replace(fm, predictor=predictor, format=WITH_PREDICTOR, provenance=provenance)


def _learn(training: Training, fm: FeatureMap, data: TrainingData, jobs: int, listener: Listener) -> Learned:
    with one_blas_thread(linalg=True):
        for rows in _labelled_rows(data, fm, jobs):
            training.add(rows)
            listener.rows(len(rows[0].features))
        if data.weight is not None and len(training.folds) < 2:
            raise DataError(
                f"weight {quoted(data.weight)}: expected numbers above 0 in at least two of the {FOLDS} random "
                "parts of the rows, on which a penalty is chosen, got them in "
                f"{len(training.folds)}: give more rows a weight above 0"
            )
        return training.learned()


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
