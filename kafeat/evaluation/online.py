"""Stochastic gradient descent with averaged weights: several passes over rows that need not fit into memory.

Source: Bottou 2012, Stochastic Gradient Descent Tricks; averaging: Polyak & Juditsky 1992.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.linear_model import SGDClassifier, SGDRegressor

from kafeat.evaluation.learners import Inputs, Learner, Model, Training, Truth
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
        # Rows that are read again for each pass are read for one fold only.
        folds = np.unique(truth.folds[train]) if held else np.zeros(1, truth.folds.dtype)
        return OnlineTraining(blocks, train, truth, scaling, most, tuple(folds.tolist()))

    def on_kernel(self, K: Floats, rows: Array, truth: Truth) -> Training:
        return self._exact.on_kernel(K, rows, truth)


Passes = Callable[[Mask, int], Iterator[tuple[Array, Floats]]]
"""Yields the numbers of rows and the rows, in blocks, in an order that depends on the number of the pass."""


@dataclass(frozen=True)
class _Descent:
    """Estimators on their way, one without each fold, and their errors on the folds, one sum for each pass."""

    alpha: float
    estimators: Sequence[Any]
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
    """Scaled rows for stochastic gradient descent with at most so many passes, and the folds to test on."""

    blocks: Passes
    train: Mask
    truth: Truth
    scaling: Scaling
    most: int
    folds: tuple[int, ...]

    def search(self) -> float:
        return min(self._stopped(_ALPHAS, self.folds), key=lambda one: min(one.errors)).alpha

    def model(self, penalty: float) -> Model:
        # By all folds: where steps are large, the passes that were best on one fold may be too few for all rows.
        (stopped,) = self._stopped([penalty], self.folds)
        chosen = _sgd(penalty, self.truth.task)
        for number in range(stopped.best):
            self._pass([chosen], self.train, number)
        return FittedLearner(chosen, self.truth.task, self.scaling, penalty)

    def _stopped(self, alphas: Sequence[float], folds: Sequence[int]) -> list[_Descent]:
        """Learn without each of the folds until the error on the folds rises, with each of these penalties."""
        parts = [self._parts(fold) for fold in folds]
        descents = [_Descent(alpha, [_sgd(alpha, self.truth.task) for _ in parts]) for alpha in alphas]
        for number in range(self.most):
            going = [one for one in descents if not one.ends]
            if not going:
                break
            missed = np.zeros(len(going))
            for i, (learn, held) in enumerate(parts):
                estimators = [one.estimators[i] for one in going]
                self._pass(estimators, learn, number)
                missed += self._missed(estimators, held)
            for one, error in zip(going, missed, strict=True):
                one.errors.append(float(error))
        return descents

    def _parts(self, fold: int) -> tuple[Mask, Mask]:
        """Return the rows to learn from without a fold, and those of the fold; all for both if either is empty."""
        learn, held = self.train & (self.truth.folds != fold), self.train & (self.truth.folds == fold)
        return (learn, held) if learn.any() and held.any() else (self.train, self.train)

    def _missed(self, estimators: Sequence[Any], held: Mask) -> Floats:
        """Return the error of each on the rows held out: rows of a wrong class, or the squared error."""
        missed = np.zeros(len(estimators))
        for rows, Z in self.blocks(held, 0):
            y = answers(self.truth, rows)
            for i, estimator in enumerate(estimators):
                predicted = estimator.predict(Z)
                wrong = predicted != y if self.truth.task.classes is not None else (predicted - y) ** 2
                missed[i] += float(wrong.sum())
        return missed

    def _pass(self, estimators: Sequence[Any], rows: Mask, number: int) -> None:
        classes = self.truth.task.classes
        more = {} if classes is None else {"classes": np.arange(len(classes))}
        for numbers, Z in self.blocks(rows, number):
            y = answers(self.truth, numbers)
            for estimator in estimators:
                with refusals():
                    estimator.partial_fit(Z, y, **more)


def _scaled(inputs: Inputs, scaling: Scaling) -> Passes:
    def blocks(rows: Mask, _number: int) -> Iterator[tuple[Array, Floats]]:
        for numbers, Z in inputs.blocks(rows):
            yield numbers, scaling(Z)

    return blocks


def _held(inputs: Inputs, train: Mask, scaling: Scaling) -> Passes:
    """Read the rows once, and yield them in another random order in each pass.

    Files are often sorted by their label, and the same order in each pass makes the weights go round in circles.
    """
    numbers, Z = inputs.matrix(train, _HELD_BYTES, scaling)

    def blocks(rows: Mask, number: int) -> Iterator[tuple[Array, Floats]]:
        order = np.random.default_rng(number).permutation(len(numbers))
        some = order[rows[numbers[order]]]
        for start in range(0, len(some), _AT_ONCE):
            part = some[start : start + _AT_ONCE]
            yield numbers[part], Z[part]

    return blocks


def _sgd(alpha: float, task: PredictionTask) -> Any:
    if task.classes is None:
        return SGDRegressor(alpha=alpha, average=True, eta0=0.1, random_state=0)
    return SGDClassifier(alpha=alpha, average=True, random_state=0)
