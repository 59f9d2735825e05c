"""Train a learner and count its costs: learning once, the search for a penalty, memory, and predicting."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kafeat.evaluation.costs import MOST_TRACED, PeakMemory, repeated
from kafeat.evaluation.learners import Model, Training
from kafeat.evaluation.scores import Curve
from kafeat.jobs.evaluate.inputs import TimedInputs
from kafeat.types import Mask


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
