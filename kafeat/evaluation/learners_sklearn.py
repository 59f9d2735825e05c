"""Learners of scikit-learn: linear machines on columns and features, support vector machines with the exact kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

from kafeat.errors import DataError, UsageError, first_line
from kafeat.evaluation.learners import Inputs, Learner, Model, Truth
from kafeat.evaluation.scaling import NO_SCALING, Scaling, scaling_of
from kafeat.evaluation.task import PredictionTask
from kafeat.types import Array, Floats, Mask

# 1/penalty; features have norms near 1.
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)
# Rows that a cost is chosen on: more of them do not change the choice.
_CHOSEN_ON = 5_000
_NEAR = 1e-3
# A few dozen are the rule; where they do not do, the record says that the solver did not get there.
_STEPS = 100
# Steps of the exact machine, which moves two coefficients in each: no end would be a hang that no signal reaches.
_PAIRS = 1_000_000
_MOST_BYTES = 4 << 30
# Penalties of stochastic gradients, and how often they see every row.
_ALPHAS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
_EPOCHS = 5

Make = Callable[[float, PredictionTask], Any]
"""An estimator of a cost."""


@dataclass(frozen=True)
class FittedLearner:
    """An estimator with a scaling of its inputs; classes are predicted as 1 in the column of the class."""

    estimator: Any
    task: PredictionTask
    scaling: Scaling
    penalty: float
    converged: bool = True

    def __call__(self, Z: Floats) -> Floats:
        predicted = self.estimator.predict(self.scaling(Z))
        if self.task.classes is None:
            return np.asarray(predicted, dtype=np.float64)[:, None]
        found: Floats = np.eye(len(self.task.classes))[predicted]
        return found

    @property
    def nonzero(self) -> int:
        if hasattr(self.estimator, "support_"):
            return len(self.estimator.support_)
        return int((np.atleast_2d(self.estimator.coef_) != 0.0).any(axis=0).sum())


@dataclass(frozen=True)
class Constant:
    """What is learned from rows of one class, or of one number."""

    task: PredictionTask
    answer: Any
    penalty: float = 0.0
    converged: bool = True
    nonzero: int = 0

    def __call__(self, Z: Floats) -> Floats:
        if self.task.classes is None:
            return np.full((len(Z), 1), float(self.answer))
        found: Floats = np.eye(len(self.task.classes))[np.full(len(Z), int(self.answer))]
        return found


class LinearMachine(Learner):
    """A linear estimator that holds its rows; its exact counterpart is a support vector machine."""

    def __init__(self, name: str, make: Make) -> None:
        self.name, self._make = name, make

    def linear(self, inputs: Inputs, train: Mask, truth: Truth) -> Model:
        scaling = _scaling(inputs, train)
        rows, Z = inputs.matrix(train, _MOST_BYTES, scaling)
        y = _answers(truth, rows)
        if len(np.unique(y)) == 1:
            return Constant(truth.task, y[0])
        some = slice(None, None, -(-len(Z) // _CHOSEN_ON))
        cost = _best(self._make, truth.task, Z[some], y[some], truth.folds[rows][some], _rows_of)
        estimator, converged = _fitted(self._make(cost, truth.task), Z, y)
        return FittedLearner(estimator, truth.task, scaling, 1.0 / cost, converged)

    def exact(self, K: Floats, rows: Array, truth: Truth) -> Model:
        y = _answers(truth, rows)
        if len(np.unique(y)) == 1:
            return Constant(truth.task, y[0])
        cost = _best(_exact, truth.task, K, y, truth.folds[rows], _square_of)
        estimator, converged = _fitted(_exact(cost, truth.task), K, y)
        return FittedLearner(estimator, truth.task, NO_SCALING, 1.0 / cost, converged)


class OnlineMachine(LinearMachine):
    """Stochastic gradients, fed piece by piece: the learning that explicit features are made for."""

    def __init__(self) -> None:
        super().__init__("sgd", _sgd)

    def linear(self, inputs: Inputs, train: Mask, truth: Truth) -> Model:
        scaling = _scaling(inputs, train)
        tried = {alpha: _sgd(1.0 / alpha, truth.task) for alpha in _ALPHAS}
        self._pass(tried.values(), inputs, train & (truth.folds != 0), truth, scaling)
        held = train & (truth.folds == 0)
        missed = dict.fromkeys(tried, 0.0)
        for rows, Z in inputs.blocks(held):
            y = _answers(truth, rows)
            for alpha, estimator in tried.items():
                found = estimator.predict(scaling(Z))
                missed[alpha] += float(
                    (found != y).sum() if truth.task.classes is not None else ((found - y) ** 2).sum()
                )
        alpha = min(missed, key=lambda one: missed[one])
        chosen = _sgd(1.0 / alpha, truth.task)
        for _ in range(_EPOCHS):
            self._pass([chosen], inputs, train, truth, scaling)
        return FittedLearner(chosen, truth.task, scaling, alpha)

    @staticmethod
    def _pass(estimators: Iterable[Any], inputs: Inputs, rows: Mask, truth: Truth, scaling: Scaling) -> None:
        classes = truth.task.classes
        more = {} if classes is None else {"classes": np.arange(len(classes))}
        for numbers, Z in inputs.blocks(rows):
            scaled, y = scaling(Z), _answers(truth, numbers)
            for estimator in estimators:
                with _refusals():
                    estimator.partial_fit(scaled, y, **more)


def learner(name: str, tau: float) -> Learner:
    """The learner of that name; τ is of `dual_l1`."""
    if name == "sgd":
        return OnlineMachine()
    return LinearMachine(name, {
        "linear_svc": _linear_svc, "linear_svc_l1": _linear_svc_l1, "logistic": _logistic,
        "dual_l1": lambda cost, task: _dual_l1(cost, task, tau),
    }[name])  # fmt: skip


def _linear_svc(cost: float, task: PredictionTask) -> Any:
    if task.classes is None:
        return LinearSVR(C=cost, loss="squared_epsilon_insensitive", dual=False, tol=_NEAR, max_iter=_STEPS)
    # Newton's steps in the primal: a few dozen at any cost, where the dual's passes run out at high ones.
    return LinearSVC(C=cost, dual=False, tol=_NEAR, max_iter=_STEPS)


def _linear_svc_l1(cost: float, task: PredictionTask) -> Any:
    if task.classes is None:
        raise UsageError(
            "learner linear_svc_l1: expected classes, got a number to predict; try ridge or linear_svc"
        )
    return LinearSVC(C=cost, penalty="l1", dual=False, tol=_NEAR, max_iter=_STEPS)


def _dual_l1(cost: float, task: PredictionTask, tau: float) -> Any:
    """−τ‖α‖₁ in the dual. A number: the loss ignores errors up to τ. Classes: max(0, 1 − τ − yz)², whose solution is
    (1 − τ) times the one without τ, the same classifier; so it is that one, and the size does not matter to it.
    """
    if task.classes is None:
        return LinearSVR(
            C=cost, epsilon=tau, loss="squared_epsilon_insensitive", dual=False, tol=_NEAR, max_iter=_STEPS
        )
    return _linear_svc(cost, task)


def _logistic(cost: float, task: PredictionTask) -> Any:
    if task.classes is None:
        raise UsageError("learner logistic: expected classes, got a number to predict; try ridge")
    return LogisticRegression(C=cost, max_iter=1000)


def _sgd(cost: float, task: PredictionTask) -> Any:
    if task.classes is None:
        return SGDRegressor(alpha=1.0 / cost, random_state=0)
    return SGDClassifier(alpha=1.0 / cost, random_state=0)


def _exact(cost: float, task: PredictionTask) -> Any:
    make = SVR if task.classes is None else SVC
    return make(kernel="precomputed", C=cost, max_iter=_PAIRS)


def _answers(truth: Truth, rows: Array) -> Array:
    labels = truth.labels[rows]
    return truth.task.targets(labels)[:, 0] if truth.task.classes is None else truth.task.numbers(labels)


def _fitted(estimator: Any, Z: Floats, y: Array) -> tuple[Any, bool]:
    """Fitted, and whether the solver says that it got there."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ConvergenceWarning)
        with _refusals():
            estimator.fit(Z, y)
    return estimator, not any(issubclass(one.category, ConvergenceWarning) for one in warned)


def _best(
    make: Make,
    task: PredictionTask,
    Z: Floats,
    y: Array,
    folds: Array,
    part: Callable[[Floats, Array, Array], Floats],
) -> float:
    """The cost with the best score on the folds."""

    def mean_score(cost: float) -> float:
        scores = []
        for fold in np.unique(folds):
            held, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            # of one number R² says nothing
            if len(np.unique(y[rest])) > 1 and (task.classes is not None or len(held) > 1):
                estimator, _ = _fitted(make(cost, task), part(Z, rest, rest), y[rest])
                scores.append(estimator.score(part(Z, held, rest), y[held]))
        return float(np.mean(scores)) if scores else 0.0

    return max(COSTS, key=mean_score)


def _rows_of(Z: Floats, rows: Array, _: Array) -> Floats:
    return Z[rows]


def _square_of(K: Floats, rows: Array, columns: Array) -> Floats:
    part: Floats = K[np.ix_(rows, columns)]
    return part


def _scaling(inputs: Inputs, train: Mask) -> Scaling:
    return scaling_of(Z for _, Z in inputs.blocks(train)) if inputs.standardize else NO_SCALING


@contextmanager
def _refusals() -> Iterator[None]:
    """What scikit-learn says of numbers that it cannot learn from, as an error of the data."""
    try:
        yield
    except ValueError as error:
        raise DataError(
            f"learner: {first_line(error).rstrip('.')}: scale the input, or choose ridge"
        ) from error
