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
from kafeat.evaluation.learners import Inputs, Learner, Model, Training, Truth, score
from kafeat.evaluation.preparation import Split
from kafeat.jobs.evaluate.inputs import EvaluatedMap, TimedInputs
from kafeat.types import Array, Floats, Mask


class _Trained(NamedTuple):
    """A model, the seconds to learn once and to choose the penalty, and the peak of memory."""

    model: Model
    learn_seconds: float
    search_seconds: float
    peak_bytes: int | None


Predictions: TypeAlias = dict[str, list[tuple[int, float]]]


@dataclass(frozen=True)
class Learned:
    """A trained model, its score, and its costs.

    Attributes:
        making_seconds: To make the features, or the kernel matrix, of the training rows.
        predict_seconds: To predict the test rows from the columns that the map reads.
        matrix_bytes: Size of the columns, features or kernel matrix of all training rows.
    """

    trained: _Trained
    score: float
    making_seconds: float
    predict_seconds: float
    matrix_bytes: int

    def keys(self, which: str, fit_seconds: float = 0.0, fit_bytes: int | None = 0) -> dict[str, Any]:
        """Return the entries of a record for `which`: raw, map or exact. `fit_bytes` is None if it is unknown."""
        model, learn, search, peak = self.trained
        values = {
            "score": self.score, "nonzero": model.nonzero, "penalty": model.penalty, "converged": model.converged,
            "learn_seconds": learn, "search_seconds": search, "predict_seconds": self.predict_seconds,
            "total_seconds": fit_seconds + self.making_seconds + learn,
            "peak_bytes": None if peak is None or fit_bytes is None else max(peak, fit_bytes),
            "matrix_bytes": self.matrix_bytes,
        }  # fmt: skip
        return {f"{key}_{which}": value for key, value in values.items()}


@dataclass(frozen=True)
class LearnedExact(Learned):
    """A model with the exact kernel, and the numbers of its rows."""

    rows: int
    rows_test: int


class Machines:
    """The same learner on everything that is compared. Without a penalty, each searches for its best one."""

    def __init__(
        self,
        learner: Learner,
        split: Split,
        truth: Truth,
        validation: Mask | None,
        exact_rows: int,
        penalty: float | None,
    ) -> None:
        self._learner, self._split, self._truth, self._validation = learner, split, truth, validation
        self._exact_rows, self._penalty = exact_rows, penalty
        # Several maps often share their raw columns, or their exact kernel.
        self._raw: dict[tuple[object, ...], Learned] = {}
        self._raw_validated: dict[tuple[object, ...], float | None] = {}
        self._kernels: dict[bytes, LearnedExact] = {}

    def raw(self, subject: EvaluatedMap) -> Learned:
        """Learn from the raw columns."""
        key = subject.raw_key
        if key not in self._raw:
            self._raw[key] = self._learned(subject.timed_raw(), subject.map.input_dtype.itemsize)
        return self._raw[key]

    def features(self, subject: EvaluatedMap) -> Learned:
        """Learn from the features."""
        return self._learned(subject.timed_features(), subject.dtype.itemsize)

    def raw_validated(self, subject: EvaluatedMap) -> float | None:
        """Return the score of the raw columns on the rows that maps are chosen on; None without such rows."""
        key = subject.raw_key
        if key not in self._raw_validated:
            self._raw_validated[key] = self._validated(subject.raw)
        return self._raw_validated[key]

    def features_validated(self, subject: EvaluatedMap) -> float | None:
        """Return the score of the features on the rows that maps are chosen on; None without such rows."""
        return self._validated(subject.features)

    def _validated(self, inputs: Inputs) -> float | None:
        """Train on the other training rows and score; only choosing a map needs this, so its costs do not count."""
        if self._validation is None:
            return None
        others = ~(self._split.test | self._validation)
        model = self._learner.linear(inputs, others, self._truth, self._penalty)
        return score(model, inputs, self._validation, self._truth)

    def _learned(self, timed: TimedInputs, itemsize: int, train: Mask | None = None) -> Learned:
        """Learn from the rows `train`, by default all that are not held out."""
        test = self._split.test
        train = ~test if train is None else train

        def on_rows() -> Training:
            return self._learner.on_rows(timed.inputs, train, self._truth)

        trained = self._trained(on_rows, lambda: timed.seconds, not self._learner.small_objects)
        n = int(train.sum())
        reached = score(trained.model, timed.inputs, test, self._truth)
        predicting = self._predicting(trained.model, timed, test)
        return Learned(trained, reached, timed.making(n), predicting, n * timed.inputs.width * itemsize)

    def _trained(self, prepare: Callable[[], Training], apart: Callable[[], float], traced: bool) -> _Trained:
        """Train, and count the costs. `apart` counts the seconds so far of work that is no part of learning.

        The run that is timed is traced too if `traced`. Else the memory is that of another run, if that is short.
        """
        clock, memory = _Clock(apart), PeakMemory()
        models, searches = list[Model](), list[float]()

        def first() -> float:
            with memory if traced else nullcontext():
                clock.lap()
                training = prepare()
                prepared, penalty = clock.lap(), self._penalty
                if penalty is None:
                    with memory.skipping():
                        penalty = training.search()
                searches.append(clock.lap())
                models.append(training.model(penalty))
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
        return _Trained(models[0], seconds, searches[0] if self._penalty is None else 0.0,
                        memory.bytes if traced else None)  # fmt: skip

    def _predicting(self, model: Model, timed: TimedInputs, rows: Mask) -> float:
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

    def exact(self, subject: EvaluatedMap, features: Learned) -> tuple[LearnedExact, Learned]:
        """Learn with the exact kernel of at most `exact_rows` rows, and from the features of the same rows."""
        train = ~self._split.test
        train_rows, X = subject.select_rows(self._split.some(train, self._exact_rows))
        kernels: list[Floats] = []
        memory = PeakMemory()

        def kernel() -> float:
            kernels.clear()  # two of them might not fit
            return seconds_of(lambda: kernels.append(subject.map.exact_kernel(X)))()

        def first() -> float:
            with memory:
                return kernel()

        kernel_seconds = repeated(first, kernel)
        K = kernels.pop()
        key = sha256(np.ascontiguousarray(K).data).digest()
        if key not in self._kernels:
            self._kernels[key] = self._learned_exact(subject, K, train_rows, X, kernel_seconds, memory.bytes)
        # The loss by the approximation, and the time it saves, show if both are trained on the same rows.
        if len(train_rows) == train.sum():
            return self._kernels[key], features
        same_rows = np.zeros(len(train), dtype=bool)
        same_rows[train_rows] = True
        return self._kernels[key], self._learned(subject.timed_features(), subject.dtype.itemsize, same_rows)

    def _learned_exact(
        self,
        subject: EvaluatedMap,
        K: Floats,
        train_rows: Array,
        train: Floats,
        kernel_seconds: float,
        kernel_bytes: int,
    ) -> LearnedExact:
        """Learn with the kernel matrix K of the rows `train`."""
        most, truth = self._exact_rows, self._truth
        test_rows, tests = subject.select_rows(self._split.some(self._split.test, 5 * most))
        # Solvers with a kernel matrix make no small objects.
        trained = self._trained(
            lambda: self._learner.on_kernel(K, train_rows, truth), lambda: 0.0, traced=True
        )
        peak = max(kernel_bytes, K.nbytes + (trained.peak_bytes or 0))
        predicted: list[Floats] = []

        def predict() -> float:
            predicted.clear()
            started = time.perf_counter()
            predicted.extend(
                trained.model(subject.map.exact_kernel(tests[i : i + most], train))
                for i in range(0, len(tests), most)
            )
            return time.perf_counter() - started

        # Each row costs the same, so the seconds of a part of the test rows tell those of all.
        predicting = repeated(predict) * int(self._split.test.sum()) / len(test_rows)
        reached = truth.task.score(np.concatenate(predicted), truth.labels[test_rows])
        return LearnedExact(
            trained._replace(peak_bytes=peak), reached, kernel_seconds, predicting, K.nbytes, len(train_rows),
            len(test_rows),
        )  # fmt: skip

    def predictions(self, subject: EvaluatedMap, features: Model, exact: Model) -> Predictions:
        """Return numbers of test rows, and the seconds in which each machine predicts so many of them."""
        most, test = self._exact_rows, self._split.test
        _, train = subject.select_rows(self._split.some(~test, most))
        _, rows = subject.select_rows(self._split.some(test, most))
        raw = self._raw[subject.raw_key].trained.model
        machines: dict[str, Callable[[Floats], Floats]] = {
            "raw": lambda X: raw(subject.numbers(X).astype(np.float64)),
            "map": lambda X: features(subject.transform(X).astype(np.float64)),
            "exact": lambda X: exact(subject.map.exact_kernel(X, train)),
        }
        sizes = np.unique(np.geomspace(min(len(rows), 16), len(rows), 5).astype(int))
        return {
            name: [(int(n), repeated(seconds_of(partial(machine, rows[:n])))) for n in sizes]
            for name, machine in machines.items()
        }


class _Clock:
    """Seconds between laps, without those that `apart` counts."""

    def __init__(self, apart: Callable[[], float]) -> None:
        self._apart, self._last = apart, 0.0

    def lap(self) -> float:
        now = time.perf_counter() - self._apart()
        seconds, self._last = now - self._last, now
        return seconds
