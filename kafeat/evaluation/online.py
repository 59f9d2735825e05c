"""Stochastic gradient descent with averaged weights: several passes over rows that need not fit into memory.

Source: Bottou 2012, Stochastic Gradient Descent Tricks; averaging: Polyak & Juditsky 1992.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.linear_model import SGDClassifier, SGDRegressor

from kafeat.evaluation.learners import Blocks, Inputs, Learner, Model, Training, Truth
from kafeat.evaluation.learners_sklearn import Constant, FittedLearner, answers, refusals
from kafeat.evaluation.preparation import Scaling, unit_scaling_of
from kafeat.maths.task import PredictionTask
from kafeat.types import Array, Floats, Mask

_ALPHAS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
# Steps that are enough, whatever the number of rows, and bounds of the number of passes.
_STEPS, _FEWEST, _MOST = 1_000_000, 3, 30
# Passes without a lower error on the rows held out, after which learning stops.
_PATIENCE = 4
# Rows of so many bytes are held, and so are read once and in random order.
_HELD_BYTES = 1 << 28
_AT_ONCE = 8192


class OnlineMachine(Learner):
    """Stochastic gradient descent. Its exact machine is that of a learner with the same loss."""

    name = "sgd"
    small_objects = True

    def __init__(self, exact: Learner) -> None:
        self._exact = exact

    def on_rows(self, inputs: Inputs, train: Mask, truth: Truth) -> Training:
        scaling = unit_scaling_of((Z for _, Z in inputs.blocks(train)), inputs.standardize)
        labels = answers(truth, np.flatnonzero(train))
        if len(np.unique(labels)) == 1:
            return Constant(truth.task, labels[0])
        n = int(train.sum())
        held = n * inputs.width * 4 <= _HELD_BYTES
        blocks = _held(inputs, train, scaling) if held else _scaled(inputs, scaling)
        most = int(np.clip(-(-_STEPS // n), _FEWEST, _MOST))
        return OnlineTraining(blocks, train, truth, scaling, most)

    def on_kernel(self, K: Floats, rows: Array, truth: Truth) -> Training:
        return self._exact.on_kernel(K, rows, truth)


@dataclass(frozen=True)
class _Descent:
    """One estimator on its way, and its errors on the rows held out, one for each pass."""

    alpha: float
    estimator: Any
    errors: list[float] = field(default_factory=list)

    @property
    def best(self) -> int:
        """The number of passes with the lowest error."""
        return int(np.argmin(self.errors)) + 1

    @property
    def ends(self) -> bool:
        return len(self.errors) - self.best >= _PATIENCE if self.errors else False


@dataclass(frozen=True)
class OnlineTraining:
    """Scaled rows, in blocks, for stochastic gradient descent with at most so many passes."""

    blocks: Blocks
    train: Mask
    truth: Truth
    scaling: Scaling
    most: int

    def search(self) -> float:
        return min(self._stopped(_ALPHAS), key=lambda one: min(one.errors)).alpha

    def model(self, penalty: float) -> Model:
        (stopped,) = self._stopped([penalty])
        chosen = _sgd(penalty, self.truth.task)
        for _ in range(stopped.best):
            self._pass([chosen], self.train)
        return FittedLearner(chosen, self.truth.task, self.scaling, penalty)

    def _stopped(self, alphas: Sequence[float]) -> list[_Descent]:
        """Learn without one fold until the error on it rises, with each of these penalties."""
        learn, held = self.train & (self.truth.folds != 0), self.train & (self.truth.folds == 0)
        if not (learn.any() and held.any()):
            learn = held = self.train
        descents = [_Descent(alpha, _sgd(alpha, self.truth.task)) for alpha in alphas]
        for _ in range(self.most):
            going = [one for one in descents if not one.ends]
            if not going:
                break
            self._pass([one.estimator for one in going], learn)
            self._test(going, held)
        return descents

    def _test(self, descents: Sequence[_Descent], held: Mask) -> None:
        """Add the error of each on the rows held out: rows of a wrong class, or the squared error."""
        missed = np.zeros(len(descents))
        for rows, Z in self.blocks(held):
            y = answers(self.truth, rows)
            for i, one in enumerate(descents):
                predicted = one.estimator.predict(Z)
                wrong = predicted != y if self.truth.task.classes is not None else (predicted - y) ** 2
                missed[i] += float(wrong.sum())
        for one, error in zip(descents, missed, strict=True):
            one.errors.append(float(error))

    def _pass(self, estimators: Sequence[Any], rows: Mask) -> None:
        classes = self.truth.task.classes
        more = {} if classes is None else {"classes": np.arange(len(classes))}
        for numbers, Z in self.blocks(rows):
            y = answers(self.truth, numbers)
            for estimator in estimators:
                with refusals():
                    estimator.partial_fit(Z, y, **more)


def _scaled(inputs: Inputs, scaling: Scaling) -> Blocks:
    def blocks(rows: Mask) -> Iterator[tuple[Array, Floats]]:
        for numbers, Z in inputs.blocks(rows):
            yield numbers, scaling(Z)

    return blocks


def _held(inputs: Inputs, train: Mask, scaling: Scaling) -> Blocks:
    """Read the rows once, and yield them in a random order: files are often sorted by their label."""
    numbers, Z = inputs.matrix(train, _HELD_BYTES, scaling)
    order = np.random.default_rng(0).permutation(len(numbers))

    def blocks(rows: Mask) -> Iterator[tuple[Array, Floats]]:
        some = order[rows[numbers[order]]]
        for start in range(0, len(some), _AT_ONCE):
            part = some[start : start + _AT_ONCE]
            yield numbers[part], Z[part]

    return blocks


def _sgd(alpha: float, task: PredictionTask) -> Any:
    if task.classes is None:
        return SGDRegressor(alpha=alpha, average=True, eta0=0.1, random_state=0)
    return SGDClassifier(alpha=alpha, average=True, random_state=0)
