"""Train and test a learner on raw columns, on features and with exact kernels, and count the cost of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from kafeat.contract.tile import InputRows
from kafeat.errors import DataError, UsageError
from kafeat.jobs.fit.map_on_data import MapOnData
from kafeat.study.costs import timed
from kafeat.study.inputs import TimedInputs, features_of, raw_of
from kafeat.study.learners import (
    Inputs,
    Learner,
    Model,
    Predict,
    Ridge,
    Split,
    Tested,
    Training,
    Truth,
)
from kafeat.study.records import Entries
from kafeat.study.request import LEARNERS, EvaluationRequest
from kafeat.study.scores import Scoring
from kafeat.types import Array, Floats, Mask


def learner_of(name: str, tau: float = 0.1, jobs: int = 1, n_labels: int = 1) -> Learner:
    """Return a learner by its name. All but ridge need the extra kafeat[evaluate]; ridge uses `jobs` threads.

    Only ridge learns several labels.
    """
    if name == "ridge":
        return Ridge(jobs)
    if name not in LEARNERS:
        raise UsageError(f"learner: expected one of {', '.join(LEARNERS)}, got {name!r}")
    if n_labels > 1:
        raise UsageError(f"learner: expected ridge, as there are {n_labels} labels, got {name}")
    try:
        from kafeat.study.learners_sklearn import learner
    except ImportError as error:
        raise UsageError(
            f"learner {name}: expected scikit-learn, got: {error}; pip install 'kafeat[evaluate]'"
        ) from error
    return learner(name, tau)


# What is known of a linear model, and of boosting.
_OF_MODELS = ("nonzero", "penalty", "converged", "rounds", "rows")


@dataclass(frozen=True)
class Learned:
    """A trained model, its scores, and its costs.

    Attributes:
        learn_seconds: To learn once; `search_seconds` are those to choose the penalty.
        scores: The score that decides as `score`, on the training rows as `training_score`, and every score by name.
        tested: The predictions and the labels of the test rows.
        predict_seconds: To predict the test rows from the columns that the map reads.
        making_seconds: To make the features, or the kernel matrix, of the training rows.
        matrix_bytes: Size of the columns, features or kernel matrix of all training rows.
    """

    model: Any
    learn_seconds: float
    search_seconds: float
    scores: dict[str, float | None]
    tested: Tested
    predict_seconds: float
    making_seconds: float
    matrix_bytes: int

    def total_seconds(self, fit_seconds: float) -> float:
        """Return the seconds to fit, to make the features or the kernel matrix, and to learn once."""
        return fit_seconds + self.making_seconds + self.learn_seconds

    def entries(self, fit_seconds: float = 0.0) -> Entries:
        """Return the scores and costs of a record, with the seconds of a fit before."""
        return {
            **self.scores, **{name: getattr(self.model, name) for name in _OF_MODELS if hasattr(self.model, name)},
            "learn_seconds": self.learn_seconds, "search_seconds": self.search_seconds,
            "predict_seconds": self.predict_seconds, "total_seconds": self.total_seconds(fit_seconds),
            "matrix_bytes": self.matrix_bytes,
        }  # fmt: skip


class Compared(NamedTuple):
    """The results of a learner for all that is compared, and for the features of the rows of the exact machine.

    Gradient boosting stands beside it, or the reason why there is none.
    """

    raw: Learned
    boosting: Learned | str
    features: Learned
    exact: Learned
    same_rows: Learned


def train(
    prepare: Callable[[], Training], penalty: float | None, apart: Callable[[], float] = lambda: 0.0
) -> tuple[Model, float, float]:
    """Return a model, and the seconds to learn once and to choose the penalty.

    `apart` counts those so far of work that is no part of learning.
    """
    training, prepared = timed(prepare, apart)
    chosen, search = (penalty, 0.0) if penalty is not None else timed(training.search, apart)
    model, learned = timed(partial(training.model, chosen), apart)
    return model, prepared + learned, search


def _without(inputs: Inputs, columns: Array, rows: Mask) -> Iterator[tuple[Array, Floats]]:
    """Yield the blocks of inputs without some of their columns."""
    for numbers, Z in inputs.blocks(rows):
        yield numbers, np.delete(Z, columns, axis=1)


# The score on the training rows is that of so many of them.
_MOST_TRAINING = 100_000


class Machines:
    """The same learner on everything that is compared, learned from once each.

    Without a penalty, each searches for its best one.
    """

    def __init__(self, learner: Learner, split: Split, truth: Truth, request: EvaluationRequest) -> None:
        self._learner, self._split, self.truth = learner, split, truth
        self.scoring = Scoring.of(truth.task, request, learner.probabilities)
        self._exact_rows, self._penalty = request.exact_rows, request.penalty
        # Several maps often share their raw columns, and their exact kernel.
        self._raw: dict[tuple[object, ...], tuple[Learned, Learned | str]] = {}
        self._raw_validated: dict[tuple[object, ...], float] = {}
        self._exact: dict[bytes, Learned] = {}

    def compare(self, subject: MapOnData) -> Compared:
        """Learn from the raw columns, from the features, and with the exact kernel of at most `exact_rows` rows."""
        key, train, itemsize = subject.raw_key, self._split.train, subject.dtype.itemsize
        if key not in self._raw:
            try:
                linear = self._learned(raw_of(subject), subject.map.input_dtype.itemsize, train)
            except DataError as error:
                raise DataError(
                    f"{error}; evaluate learns from the columns as they are too, for comparison: take fewer columns, "
                    "or leave --label out, which shows the errors of the kernel alone"
                ) from None
            self._raw[key] = linear, self._boosted(raw_of(subject))
        features = self._learned(features_of(subject), itemsize, train)
        some = self._split.some(train, self._exact_rows)
        exact, same_rows = self._with_kernel(subject, *subject.select_rows(some)), features
        # The loss by the approximation, and the time it saves, show if both are trained on the same rows.
        if some.sum() < train.sum():
            same_rows = self._learned(features_of(subject), itemsize, some)
        return Compared(*self._raw[key], features, exact, same_rows)

    def validated(self, subject: MapOnData, validation: Mask) -> dict[str, Entries]:
        """Return the scores on the rows that maps are chosen on, learned from the other training rows.

        Only choosing a map needs this, so its costs do not count.
        """
        key, known = subject.raw_key, ~self._split.held_out
        if key not in self._raw_validated:
            self._raw_validated[key] = self.scoring.score(self._tested(raw_of(subject), known, validation))
        tested = self._tested(features_of(subject), known, validation)
        uncertainty = self.scoring.uncertainty(tested)
        return {
            "raw": {"score": self._raw_validated[key]},
            "map": {
                "score": self.scoring.score(tested),
                **({} if uncertainty is None else {"score_uncertainty": uncertainty}),
            },
        }

    def parts(self, subject: MapOnData) -> list[Entries]:
        """Return the parts of a union with the score of the learner without each; none if the map is no union."""
        parts = subject.map.chain.parts
        scored = []
        for name, columns in parts if len(parts) > 1 else ():
            rest = Inputs(
                subject.map.n_components - len(columns), partial(_without, features_of(subject), columns)
            )
            tested = self._tested(rest, self._split.train, self._split.test)
            score = self.scoring.score(tested)
            known = score if np.isfinite(score) else None
            scored.append({"part": name, "columns": len(columns), "score_without": known})
        return scored

    def _tested(self, inputs: Inputs, train: Mask, test: Mask) -> Tested:
        """Learn from some rows; return what is predicted of others, and their labels."""
        model = self._learner.linear(inputs, train, self.truth, self._penalty)
        return self.truth.predicted(model, inputs, test)

    def _learned(self, inputs: TimedInputs, itemsize: int, train_rows: Mask) -> Learned:
        """Learn from these rows."""
        on_rows = partial(self._learner.on_rows, inputs, train_rows, self.truth)
        trained = train(on_rows, self._penalty, lambda: inputs.seconds)
        making, n = inputs.last_making, int(train_rows.sum())  # before other passes
        scored = self._scored(self.scoring, trained[0], inputs, train_rows)
        return Learned(*trained, *scored, making, n * inputs.width * itemsize)

    def _boosted(self, inputs: TimedInputs) -> Learned | str:
        """Boost the raw columns, or return why not."""
        try:
            from kafeat.study.boosting import boost
        except ImportError as error:
            return f"{error}; pip install 'kafeat[evaluate]'"
        model = boost(inputs, self._split, self.truth)
        if isinstance(model, str):
            return model
        making, likely = inputs.last_making, replace(self.scoring, probabilities=True)
        scored = self._scored(likely, model, inputs, self._split.train)
        return Learned(model, model.seconds, 0.0, *scored, making, model.rows * inputs.width * 8)

    def _scored(
        self, scoring: Scoring, model: Predict, inputs: TimedInputs, train: Mask
    ) -> tuple[dict[str, float | None], Tested, float]:
        """Return the scores, the predictions and labels of the test rows, and the seconds to predict, reading apart."""
        predict = partial(self.truth.predicted, model, inputs, self._split.test)
        tested, predicting = timed(predict, lambda: inputs.reading)
        known = self.truth.predicted(model, inputs, self._split.some(train, _MOST_TRAINING))
        return scoring.every(tested, known), tested, predicting

    def _with_kernel(self, subject: MapOnData, rows: Array, X: InputRows) -> Learned:
        """Learn with the exact kernel of training rows X with these numbers, unless it is known from another map."""
        K, seconds = timed(partial(subject.exact_kernel, X))
        key = sha256(np.ascontiguousarray(K).data).digest()
        if key not in self._exact:
            on_kernel = partial(self._learner.on_kernel, K, rows, self.truth)
            trained = train(on_kernel, self._penalty)
            model = trained[0]
            tested, predicting = self._predicted(subject, model, X)
            scores = self.scoring.every(tested, self.truth.tested(rows, model(K)))
            self._exact[key] = Learned(*trained, scores, tested, predicting, seconds, K.nbytes)
        return self._exact[key]

    def _predicted(self, subject: MapOnData, model: Predict, X: InputRows) -> tuple[Tested, float]:
        """Return what the model with the kernel of rows X predicts of some test rows, and the seconds of all."""
        most = self._exact_rows
        rows, tests = subject.select_rows(self._split.some(self._split.test, 5 * most))

        def predict() -> list[Floats]:
            parts = (tests[i : i + most] for i in range(0, len(tests), most))
            return [model(subject.exact_kernel(part, X)) for part in parts]

        # Each row costs the same, so the seconds of a part of the test rows tell those of all.
        predicted, seconds = timed(predict)
        return self.truth.tested(rows, np.concatenate(predicted)), seconds * int(
            self._split.test.sum()
        ) / len(rows)
