"""Gradient boosting on the raw columns, the usual choice for tables, for comparison with a map. Needs scikit-learn."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from kafeat.jobs.fit import Inputs
from kafeat.maths import PredictionTask
from kafeat.study.learners import Split, Truth
from kafeat.types import Floats

# Work is trees × columns × rows, with these added as the fixed cost of a tree. A core does 2e8 a second.
_MORE_ROWS, _MORE_COLUMNS = 4_000, 20
# Above _MUCH work, there are half as many rounds, at twice the rate. Above _MOST there are fewer rows, at least _LEAST.
# Above _TOO_MUCH, boosting is left out.
_MUCH, _MOST, _TOO_MUCH = 5e8, 1.5e9, 3e9
_LEAST = 2_000
MOST_ROWS = 100_000
"""The most rows for boosting, all of which are in memory."""
# From so many rows on, a tenth of them decides when to stop. Otherwise boosting may be worse than a constant.
_STOPS_EARLY = 5_000
_QUICK = {"max_iter": 50, "learning_rate": 0.2, "max_bins": 63}


@dataclass(frozen=True)
class Boosting:
    """Fitted estimators, one for each label, the number of their training rows, and the seconds."""

    estimators: list[Any]
    task: PredictionTask
    rows: int
    seconds: float

    @property
    def rounds(self) -> int:
        """The number of rounds. Scikit-learn stops early when rows that it holds out no longer improve."""
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
    """Return the number of training rows, and the parameters, or None if this takes too long."""
    rows, of_row = min(rows, MOST_ROWS), float(trees * (width + _MORE_COLUMNS))
    if 100 * of_row * (rows + _MORE_ROWS) <= _MUCH:
        return rows, {}
    if 50 * of_row * (min(rows, _LEAST) + _MORE_ROWS) > _TOO_MUCH:
        return None
    affordable = int(_MOST / (50 * of_row)) - _MORE_ROWS
    return min(rows, max(affordable, _LEAST)), _QUICK


def boost(inputs: Inputs, chosen: Split, truth: Truth) -> Boosting | str:
    """Learn from the training rows, or some of them. Return the reason if that is impossible or takes too long."""
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
        # Early stopping holds out a tenth of each class, which is impossible for a single row.
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
    """Limit OpenMP to one thread: on busy cores, its threads wait for each other in every loop, for minutes."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="openmp")
