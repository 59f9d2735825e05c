"""Give the rows of chunks to a predictor, with targets, folds and weights, and keep some of them for the end."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kafeat.contract.predictor import Learned, Learning, Predictor, Targets, TrainingRows
from kafeat.errors import DataError
from kafeat.jobs.fit.label_summary import LabelSummary
from kafeat.jobs.fit.labelled_rows import LabelledRows
from kafeat.maths.linear_system import FOLDS
from kafeat.maths.row_sample import RowSample, row_hashes
from kafeat.maths.task import PredictionTask
from kafeat.types import Array, Floats

# Numbers of a block of rows, which are in float64 while they are added.
_MOST_NUMBERS = 1 << 22


@dataclass
class Training:
    """A predictor that is being fitted, and the rows that are kept."""

    seed: int
    task: PredictionTask
    learning: Learning
    kept: RowSample
    class_weights: Floats | None
    weighted: bool = False
    folds: set[int] = field(default_factory=set)
    rows: int = 0
    """The folds, and the number, of rows that were learned from."""

    @classmethod
    def begin(
        cls, step: Predictor, width: int, seed: int, task: PredictionTask, summary: LabelSummary, jobs: int
    ) -> Training:
        """Begin with no rows; `width` is that of the features, `summary` is about the labels of all rows."""
        classes = task.classes is not None
        n = summary.columns if task.classes is None else len(task.classes)
        centre, unit = (np.zeros(n), np.ones(n)) if classes else map(np.atleast_1d, (task.centre, task.unit))
        # The largest hashes: a fit of the map takes the smallest, and steps that learn from labels know those rows.
        kept = RowSample(seed, step.most_kept(width) if classes else 1, largest=True)
        learning = step.begin(width, Targets(n, classes, centre, unit), jobs)
        balanced = step.class_weight == "balanced"
        if balanced and not classes:
            raise DataError(f"{step.kind}: class_weight: balanced: expected a label of classes, got numbers")
        return cls(seed, task, learning, kept, summary.rows / (n * summary.counts) if balanced else None)

    def add(self, rows: LabelledRows) -> None:
        """Add the rows of a chunk, some at a time."""
        chunk, Z = rows.done.chunk, rows.done.features
        folds = (row_hashes(self.seed, chunk.start, chunk.rows) % np.uint64(FOLDS)).astype(np.intp)
        weights = self._weights(rows)
        # A row without weight is as good as absent, and a fold of such rows has no error to choose by.
        learned = rows.train if rows.weights is None else rows.train & (rows.weights > 0.0)
        train = np.flatnonzero(learned)
        self.folds |= set(folds[train].tolist())
        self.rows += len(train)
        height = max(1, _MOST_NUMBERS // Z.shape[1])
        for start in range(0, len(train), height):
            chosen = train[start : start + height]
            part: Array | slice = slice(None) if len(chosen) == len(Z) else chosen
            targets = self.task.targets(rows.labels[part])
            own = None if weights is None else weights[part]
            self.learning.add(TrainingRows(Z[part], targets, folds[part], own))
        offsets = self.kept.choose(chunk.start, chunk.rows)
        offsets = offsets[learned[offsets]]
        self._keep(chunk.start, chunk.rows, offsets, rows, folds, weights)

    def _weights(self, rows: LabelledRows) -> Floats | None:
        if self.class_weights is None and rows.weights is None:
            return None
        self.weighted = True
        weights = np.ones(len(rows.labels)) if rows.weights is None else rows.weights
        if self.class_weights is not None:
            numbers = np.minimum(self.task.numbers(rows.labels), len(self.class_weights) - 1)
            weights = weights * self.class_weights[numbers]
        return weights

    def _keep(
        self,
        start: int,
        height: int,
        offsets: Array,
        rows: LabelledRows,
        folds: Array,
        weights: Floats | None,
    ) -> None:
        """Keep rows with their targets, and beside these their weight and their fold."""
        own = np.ones(len(offsets)) if weights is None else weights[offsets]
        targets = self.task.targets(rows.labels[offsets])
        about = np.column_stack([targets, own, folds[offsets]])
        self.kept.add(start, height, offsets, rows.done.features[offsets], about)

    def learned(self) -> Learned:
        """Return the result."""
        _, Z, about = self.kept.result()
        if about is None:
            raise TypeError("all rows have targets")
        weights = about[:, -2] if self.weighted else None
        kept = TrainingRows(Z, about[:, :-2], about[:, -1].astype(np.intp), weights)
        return self.learning.learned(kept)
