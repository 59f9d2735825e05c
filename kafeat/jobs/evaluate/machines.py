"""Train and test a learner on raw columns, on features and with exact kernels, and count the cost of each."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from kafeat.evaluation.costs import MOST_TRACED, PeakMemory, repeated, seconds_of
from kafeat.evaluation.learners import Inputs, Learner, Model, Training, Truth, predictions
from kafeat.evaluation.preparation import Split
from kafeat.evaluation.scores import Scoring
from kafeat.jobs.evaluate.inputs import EvaluatedMap, TimedInputs
from kafeat.pictures.figure_data import Curve, LearningFigures, Surface
from kafeat.types import Array, Floats, Mask


class Trained(NamedTuple):
    """A model, the seconds to learn once and to choose the penalty, and the peak of memory."""

    model: Model
    learn_seconds: float
    search_seconds: float
    peak_bytes: int | None


class Scores(NamedTuple):
    """The scores of a model on the test rows, and the one that decides on the training rows too."""

    score: float
    training: float
    figures: dict[str, float | None]
    uncertainty: float | None
    curve: Curve | None


@dataclass(frozen=True)
class Learned:
    """A trained model, its scores, and its costs.

    Attributes:
        making_seconds: To make the features, or the kernel matrix, of the training rows.
        predict_seconds: To predict the test rows from the columns that the map reads.
        matrix_bytes: Size of the columns, features or kernel matrix of all training rows.
    """

    trained: Trained
    scores: Scores
    making_seconds: float
    predict_seconds: float
    matrix_bytes: int

    def keys(self, which: str, fit_seconds: float = 0.0, fit_bytes: int | None = 0) -> dict[str, Any]:
        """Return the entries of a record for `which`: raw, map or exact. `fit_bytes` is None if it is unknown."""
        model, learn, search, peak = self.trained
        values = {
            "score": self.scores.score, "training_score": self.scores.training, **self.scores.figures,
            "nonzero": model.nonzero, "penalty": model.penalty, "converged": model.converged,
            "learn_seconds": learn, "search_seconds": search, "predict_seconds": self.predict_seconds,
            "total_seconds": fit_seconds + self.making_seconds + learn,
            "peak_bytes": None if peak is None or fit_bytes is None else max(peak, fit_bytes),
            "matrix_bytes": self.matrix_bytes,
        }  # fmt: skip
        return {f"{key}_{which}": value for key, value in values.items()}


def train(
    prepare: Callable[[], Training], penalty: float | None, apart: Callable[[], float], traced: bool
) -> Trained:
    """Train, and count the costs. `apart` counts the seconds so far of work that is no part of learning.

    The run that is timed is traced too if `traced`. Else the memory is that of another run, if that is short.
    """
    clock, memory = _Clock(apart), PeakMemory()
    models, searches = list[Model](), list[float]()

    def first() -> float:
        with memory if traced else nullcontext():
            clock.lap()
            training = prepare()
            prepared, chosen = clock.lap(), penalty
            if chosen is None:
                with memory.skipping():
                    chosen = training.search()
            searches.append(clock.lap())
            models.append(training.model(chosen))
            return prepared + clock.lap()

    def again() -> float:
        clock.lap()
        prepare().model(models[0].penalty)
        return clock.lap()

    seconds = repeated(first, again)
    if not traced and seconds < MOST_TRACED:
        traced = True
        with memory:
            again()
    search = searches[0] if penalty is None else 0.0
    return Trained(models[0], seconds, search, memory.bytes if traced else None)


def seconds_to_predict(model: Model, timed: TimedInputs, rows: Mask) -> float:
    """Return the seconds to predict these rows, reading apart."""

    def run() -> float:
        seconds = 0.0
        before = len(timed.made)
        for _, Z in timed.inputs.blocks(rows):
            started = time.perf_counter()
            model(Z.astype(np.float64))
            seconds += time.perf_counter() - started
        return seconds + sum(made for _, made in timed.made[before:])

    return repeated(run)


class _Clock:
    """Seconds between laps, without those that `apart` counts."""

    def __init__(self, apart: Callable[[], float]) -> None:
        self._apart, self._last = apart, 0.0

    def lap(self) -> float:
        now = time.perf_counter() - self._apart()
        seconds, self._last = now - self._last, now
        return seconds


@dataclass(frozen=True)
class LearnedExact(Learned):
    """A model with the exact kernel, and the numbers of its rows."""

    rows: Array
    rows_test: int


class ExactMachines:
    """The same learner with the exact kernels of all maps, each of which is learned from once."""

    def __init__(
        self, learner: Learner, split: Split, truth: Truth, scoring: Scoring, most: int, penalty: float | None
    ) -> None:
        self._learner, self._split, self._truth, self._scoring = learner, split, truth, scoring
        self._most, self._penalty = most, penalty
        self._known: dict[bytes, LearnedExact] = {}

    def learned(self, subject: EvaluatedMap) -> LearnedExact:
        """Learn with the exact kernel of at most so many rows."""
        rows, X = subject.select_rows(self._split.some(~self._split.test, self._most))
        kernels: list[Floats] = []
        memory = PeakMemory()

        def kernel() -> float:
            kernels.clear()  # two of them might not fit
            return seconds_of(lambda: kernels.append(subject.map.exact_kernel(X)))()

        def first() -> float:
            with memory:
                return kernel()

        seconds = repeated(first, kernel)
        K = kernels.pop()
        key = sha256(np.ascontiguousarray(K).data).digest()
        if key not in self._known:
            self._known[key] = self._from_kernel(subject, K, rows, X, seconds, memory.bytes)
        return self._known[key]

    def _from_kernel(
        self, subject: EvaluatedMap, K: Floats, rows: Array, X: Floats, seconds: float, kernel_bytes: int
    ) -> LearnedExact:
        """Learn with the kernel matrix K of the rows X."""
        most, truth = self._most, self._truth
        test_rows, tests = subject.select_rows(self._split.some(self._split.test, 5 * most))
        # Solvers with a kernel matrix make no small objects.
        trained = train(
            lambda: self._learner.on_kernel(K, rows, truth), self._penalty, lambda: 0.0, traced=True
        )
        peak = max(kernel_bytes, K.nbytes + (trained.peak_bytes or 0))
        predicted: list[Floats] = []

        def predict() -> float:
            predicted.clear()
            started = time.perf_counter()
            predicted.extend(
                trained.model(subject.map.exact_kernel(tests[i : i + most], X))
                for i in range(0, len(tests), most)
            )
            return time.perf_counter() - started

        # Each row costs the same, so the seconds of a part of the test rows tell those of all.
        predicting = repeated(predict) * int(self._split.test.sum()) / len(test_rows)
        answers, labels = np.concatenate(predicted), truth.labels[test_rows]
        scores = Scores(
            self._scoring.score(answers, labels),
            self._scoring.score(trained.model(K), truth.labels[rows]),
            self._scoring.figures(answers, labels),
            None,
            self._scoring.curve(answers, labels),
        )
        return LearnedExact(
            trained._replace(peak_bytes=peak), scores, seconds, predicting, K.nbytes, rows, len(test_rows)
        )


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
