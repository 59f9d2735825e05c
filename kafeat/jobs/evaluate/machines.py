"""Train and test a learner on raw columns, on features and with exact kernels, and count the cost of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from kafeat.evaluation.costs import repeated, seconds_of
from kafeat.evaluation.learners import Inputs, Learner, Model, Training, Truth, predictions
from kafeat.evaluation.preparation import Split
from kafeat.evaluation.report.figure_data import LearningFigures, Surface
from kafeat.evaluation.scores import Scoring
from kafeat.jobs.evaluate.exact_machine import ExactMachines, LearnedExact
from kafeat.jobs.evaluate.inputs import EvaluatedMap, TimedInputs
from kafeat.jobs.evaluate.training import Learned, Scores, seconds_to_predict, train
from kafeat.types import Floats, Mask

# The score on the training rows is that of so many of them.
_MOST_TRAINING = 100_000

# Points along each side of the plane of two columns, and rows that are drawn in it.
_GRID, _POINTS = 80, 300

Predictors: TypeAlias = dict[str, Callable[[Floats], Floats]]
"""Predictions (n, k) of rows (n, d) as the map reads them: raw, map and exact."""
Validated: TypeAlias = tuple[float | None, float | None]
"""A score and its standard error, if no formula tells it."""


class Machines:
    """The same learner on everything that is compared. Without a penalty, each searches for its best one."""

    def __init__(
        self,
        learner: Learner,
        split: Split,
        truth: Truth,
        validation: Mask | None,
        scoring: Scoring,
        exact_rows: int,
        penalty: float | None,
    ) -> None:
        self._learner, self._split, self._truth, self._validation = learner, split, truth, validation
        self._scoring, self._exact_rows, self._penalty = scoring, exact_rows, penalty
        self._exact = ExactMachines(learner, split, truth, scoring, exact_rows, penalty)
        # Several maps often share their raw columns.
        self._raw: dict[tuple[object, ...], Learned] = {}
        self._raw_validated: dict[tuple[object, ...], Validated] = {}

    def raw(self, subject: EvaluatedMap) -> Learned:
        """Learn from the raw columns."""
        key = subject.raw_key
        if key not in self._raw:
            self._raw[key] = self._learned(subject.timed_raw(), subject.map.input_dtype.itemsize)
        return self._raw[key]

    def features(self, subject: EvaluatedMap) -> Learned:
        """Learn from the features."""
        return self._learned(subject.timed_features(), subject.dtype.itemsize)

    def raw_validated(self, subject: EvaluatedMap) -> Validated:
        """Return the score of the raw columns on the rows that maps are chosen on; None without such rows."""
        key = subject.raw_key
        if key not in self._raw_validated:
            self._raw_validated[key] = self._validated(subject.raw)
        return self._raw_validated[key]

    def features_validated(self, subject: EvaluatedMap) -> Validated:
        """Return the score of the features on the rows that maps are chosen on; None without such rows."""
        return self._validated(subject.features)

    def _validated(self, inputs: Inputs) -> Validated:
        """Train on the other training rows and score; only choosing a map needs this, so its costs do not count."""
        if self._validation is None:
            return None, None
        others = ~(self._split.test | self._validation)
        model = self._learner.linear(inputs, others, self._truth, self._penalty)
        rows, predicted = predictions(model, inputs, self._validation)
        labels = self._truth.labels[rows]
        return self._scoring.score(predicted, labels), self._scoring.uncertainty(predicted, labels)

    def _learned(self, timed: TimedInputs, itemsize: int, rows: Mask | None = None) -> Learned:
        """Learn from these rows, by default all that are not held out."""
        rows = ~self._split.test if rows is None else rows

        def on_rows() -> Training:
            return self._learner.on_rows(timed.inputs, rows, self._truth)

        trained = train(on_rows, self._penalty, lambda: timed.seconds, not self._learner.small_objects)
        n = int(rows.sum())
        making = timed.making(n)  # before other passes over the same rows
        scores = self._scores(trained.model, timed.inputs, rows)
        predicting = seconds_to_predict(trained.model, timed, self._split.test)
        return Learned(trained, scores, making, predicting, n * timed.inputs.width * itemsize)

    def _scores(self, model: Model, inputs: Inputs, train: Mask) -> Scores:
        """Score a model on the test rows, and on its training rows."""
        rows, predicted = predictions(model, inputs, self._split.test)
        labels, scoring = self._truth.labels[rows], self._scoring
        some = np.zeros(len(train), dtype=bool)
        some[self._split.some(train, _MOST_TRAINING)] = True
        seen, answers = predictions(model, inputs, some)
        return Scores(
            scoring.score(predicted, labels),
            scoring.score(answers, self._truth.labels[seen]),
            scoring.figures(predicted, labels),
            scoring.uncertainty(predicted, labels),
            scoring.curve(predicted, labels),
        )

    def exact(self, subject: EvaluatedMap, features: Learned) -> tuple[LearnedExact, Learned]:
        """Learn with the exact kernel of at most `exact_rows` rows, and from the features of the same rows."""
        exact, train = self._exact.learned(subject), ~self._split.test
        # The loss by the approximation, and the time it saves, show if both are trained on the same rows.
        if len(exact.rows) == train.sum():
            return exact, features
        same_rows = np.zeros(len(train), dtype=bool)
        same_rows[exact.rows] = True
        return exact, self._learned(subject.timed_features(), subject.dtype.itemsize, same_rows)

    def learning_figures(self, subject: EvaluatedMap, features: Learned, exact: Learned) -> LearningFigures:
        """Return the data of the figures of the learner."""
        machines = self._predictors(subject, features.trained.model, exact.trained.model)
        learned = {"raw": self._raw[subject.raw_key], "map": features, "exact": exact}
        rates = {which: one.scores.curve for which, one in learned.items() if one.scores.curve is not None}
        return LearningFigures(self._seconds(subject, machines), rates, self._surface(subject, machines))

    def _predictors(self, subject: EvaluatedMap, features: Model, exact: Model) -> Predictors:
        _, train = subject.select_rows(self._split.some(~self._split.test, self._exact_rows))
        raw = self._raw[subject.raw_key].trained.model
        return {
            "raw": lambda X: raw(subject.numbers(X).astype(np.float64)),
            "map": lambda X: features(subject.transform(X).astype(np.float64)),
            "exact": lambda X: exact(subject.map.exact_kernel(X, train)),
        }

    def _seconds(self, subject: EvaluatedMap, machines: Predictors) -> dict[str, list[tuple[int, float]]]:
        """Return numbers of test rows, and the seconds in which each machine predicts so many of them."""
        _, rows = subject.select_rows(self._split.some(self._split.test, self._exact_rows))
        sizes = np.unique(np.geomspace(min(len(rows), 16), len(rows), 5).astype(int))
        return {
            name: [(int(n), repeated(seconds_of(partial(machine, rows[:n])))) for n in sizes]
            for name, machine in machines.items()
        }

    def _surface(self, subject: EvaluatedMap, machines: Predictors) -> Surface | None:
        """Return what each machine predicts in the plane of two columns of numbers; None for other columns."""
        if subject.map.n_features_in != 2 or not subject.between:
            return None
        rows, X = subject.select_rows(self._split.some(self._split.test, _POINTS))
        low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
        x, y = (np.linspace(low[i], high[i], _GRID) for i in (0, 1))
        grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2).astype(X.dtype)
        task = self._truth.task

        def shown(predicted: Floats) -> Floats:
            of_numbers = task.classes is None
            values = predicted[:, 0] if of_numbers else predicted.argmax(axis=1).astype(np.float64)
            return (
                values if predicted.shape[1] > 1 or of_numbers else (predicted[:, 0] > 0.0).astype(np.float64)
            )

        planes = {name: shown(machine(grid)).reshape(_GRID, _GRID) for name, machine in machines.items()}
        labels = self._truth.labels[rows]
        known = (
            task.targets(labels)[:, 0] if task.classes is None else task.numbers(labels).astype(np.float64)
        )
        return Surface((low, high), planes, X.astype(np.float64), known, subject.names)
