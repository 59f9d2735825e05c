"""Gradient boosting on the raw columns, a strong baseline to compare maps with. Needs scikit-learn."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from kafeat.jobs.fit import Inputs
from kafeat.maths import PredictionTask
from kafeat.study.learners import Split, Truth
from kafeat.types import Floats

# The work is estimated as trees × (columns + _MORE_COLUMNS) × (rows + _MORE_ROWS). A core does 2e8 per second.
_MORE_ROWS, _MORE_COLUMNS = 4_000, 20
# More work than _MUCH halves the rounds and doubles the learning rate. If the work still exceeds _MOST, fewer rows are
# used, but at least _LEAST. If the work even then exceeds _TOO_MUCH, boosting is left out.
_MUCH, _MOST, _TOO_MUCH = 5e8, 1.5e9, 3e9
_LEAST = 2_000
MOST_ROWS = 100_000
"""Boosting learns from at most this many rows, because it holds all of them in memory."""
# With at least this many rows, a held-out tenth decides when to stop: boosting without a stop overfits.
_STOPS_EARLY = 5_000
_QUICK = {"max_iter": 50, "learning_rate": 0.2, "max_bins": 63}


@dataclass(frozen=True)
class Boosting:
    """Fitted boosting: an estimator for each label, the number of training rows, and the seconds of fitting."""

    estimators: list[Any]
    task: PredictionTask
    rows: int
    seconds: float

    @property
    def rounds(self) -> int:
        """The number of boosting rounds, which early stopping may have reduced."""
        return max(one.n_iter_ for one in self.estimators)

    def __call__(self, Z: Floats) -> Floats:
        """Return probabilities of all classes, or scaled numbers, (n, k)."""
        with _one_thread():
            if self.task.classes is None:
                return np.column_stack([one.predict(Z) for one in self.estimators])
            predicted: Floats = np.zeros((len(Z), len(self.task.classes)))
            predicted[:, self.estimators[0].classes_] = self.estimators[0].predict_proba(Z)
            return predicted


def plan(rows: int, width: int, trees: int) -> tuple[int, dict[str, Any]] | None:
    """Return the rows to train on and scikit-learn's parameters, for `trees` trees per round; None if too slow."""
    rows, of_row = min(rows, MOST_ROWS), float(trees * (width + _MORE_COLUMNS))
    if 100 * of_row * (rows + _MORE_ROWS) <= _MUCH:
        return rows, {}
    if 50 * of_row * (min(rows, _LEAST) + _MORE_ROWS) > _TOO_MUCH:
        return None
    affordable = int(_MOST / (50 * of_row)) - _MORE_ROWS
    return min(rows, max(affordable, _LEAST)), _QUICK


def boost(inputs: Inputs, chosen: Split, truth: Truth) -> Boosting | str:
    """Fit boosting on the training rows, or some of them. Return the reason if this is impossible or takes too long."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    except ImportError as error:
        return f"{error}; pip install 'kafeat[evaluate]'"
    task, n, classes = truth.task, int(chosen.train.sum()), truth.task.classes
    if classes is not None and truth.labels.ndim > 1:
        return "it learns classes, not their probabilities"
    trees = truth.labels[:1].size if classes is None else 1 if len(classes) == 2 else len(classes)
    planned = plan(n, inputs.width, trees)
    if planned is None:
        return f"it would take long with {inputs.width:,} columns and {trees:,} trees a round"
    some = inputs.blocks(chosen.some(chosen.train, planned[0]))
    numbers, Z = (np.concatenate(parts) for parts in zip(*some, strict=True))
    labels = truth.labels[numbers]
    if classes is None:
        y, make = task.targets(labels), HistGradientBoostingRegressor
    else:
        y, make = task.numbers(labels)[:, None], HistGradientBoostingClassifier
        # Early stopping holds out a tenth of each class, which is impossible for a class with a single row.
        several = np.bincount(y[:, 0])[y[:, 0]] > 1
        Z, y = Z[several], y[several]
        if len(np.unique(y)) < 2:
            return "its training rows have one class"
    stops = len(Z) >= max(_STOPS_EARLY, 10 * trees)
    estimators = [make(random_state=0, early_stopping=stops, **planned[1]) for _ in y.T]
    started = time.perf_counter()
    with _one_thread():
        for estimator, of_label in zip(estimators, y.T, strict=True):
            estimator.fit(Z, of_label)
    return Boosting(estimators, task, len(numbers), time.perf_counter() - started)


def _one_thread() -> Any:
    """Return a context with one OpenMP thread: on busy cores, several would wait for each other for minutes."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="openmp")
