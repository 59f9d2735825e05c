"""Train a learner with an exact kernel, and count its costs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from kafeat.evaluation.costs import PeakMemory, repeated, seconds_of
from kafeat.evaluation.learners import Learner, Truth
from kafeat.evaluation.preparation import Split
from kafeat.evaluation.scores import Scoring
from kafeat.jobs.evaluate.inputs import EvaluatedMap
from kafeat.jobs.evaluate.training import Learned, Scores, train
from kafeat.types import Array, Floats


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
