"""Learners that keep all rows in memory: logistic regression, and the linear and kernel machines of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

from kafeat.contract import Folded
from kafeat.errors import DataError, UsageError, first_line
from kafeat.jobs.fit import Inputs
from kafeat.maths import LogisticMachine, PredictionTask
from kafeat.study.learners import (
    NO_SCALING,
    Learner,
    Model,
    Scaling,
    Training,
    Truth,
    scaling_of,
    unit_scaling_of,
)
from kafeat.types import Array, Floats, Mask

# The costs C = 1/penalty to search, for features with norms near 1.
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)
# The costs 1/α of stochastic gradients. They are larger, because the penalty α applies to the mean loss.
_COSTS_OF_SGD = (1e2, 1e3, 1e4, 1e5, 1e6)
# Number of rows to choose a cost on. More rows do not change the choice.
_CHOSEN_ON = 5_000
_NEAR = 1e-3
# Limit of the primal solver's steps. A few dozen usually suffice. At the limit, the record has `converged: false`.
_STEPS = 100
# Limit of the dual solver's passes over the rows, for the hinge loss.
_PASSES = 1000
# Limit of the steps of the kernel SVM's solver. Without a limit, it might not end, and signals do not stop it.
_PAIRS = 1_000_000
_MOST_BYTES = 4 << 30

Make = Callable[[float, PredictionTask], Any]
"""Makes an unfitted estimator for a cost and a task."""


@dataclass(frozen=True)
class FittedLearner:
    """A fitted estimator, and the scaling of its inputs.

    For classes, predictions are probabilities or, if the estimator has none, values of the decision function.
    """

    estimator: Any
    task: PredictionTask
    scaling: Scaling
    penalty: float
    converged: bool = True

    def __call__(self, Z: Floats) -> Floats:
        scaled, classes = self.scaling(Z), self.task.classes
        if classes is None:
            return np.asarray(self.estimator.predict(scaled), dtype=np.float64)[:, None]
        likely = hasattr(self.estimator, "predict_proba")
        values = (self.estimator.predict_proba if likely else self.estimator.decision_function)(scaled)
        values = np.column_stack([-values, values]) if values.ndim == 1 else values
        # Classes without training rows get the lowest value.
        predicted = np.empty((len(values), len(classes)))
        predicted[:] = 0.0 if likely else values.min(axis=1, keepdims=True) - 1.0
        predicted[:, self.estimator.classes_] = values
        return predicted

    @property
    def nonzero(self) -> int:
        if hasattr(self.estimator, "support_"):
            return len(self.estimator.support_)
        coefficients = np.atleast_2d(getattr(self.estimator, "coef_", 0.0))  # a constant has no coefficients
        return int((coefficients != 0.0).any(axis=0).sum())


@dataclass(frozen=True)
class HeldRows:
    """Rows Z (n, D), or a kernel matrix (n, n), in memory, for an estimator of scikit-learn.

    Attributes:
        y: The class numbers or scaled numbers of the rows, (n,).
        folds: The fold of each row.
    """

    make: Make
    task: PredictionTask
    Z: Floats
    y: Array
    folds: Folded
    _: KW_ONLY
    scaling: Scaling = NO_SCALING
    is_kernel: bool = False
    costs: tuple[float, ...] = COSTS

    def search(self) -> float:
        return 0.0 if self._equal else 1.0 / max(self.costs, key=self._mean_score)

    @property
    def _equal(self) -> bool:
        """True if all rows have the same label, so that a constant is learned."""
        return len(np.unique(self.y)) == 1

    def _mean_score(self, cost: float) -> float:
        """Return the mean score of a cost over the folds, on about `_CHOSEN_ON` rows or a whole kernel matrix."""
        every = 1 if self.is_kernel else -(-len(self.Z) // _CHOSEN_ON)
        some = slice(None, None, every)
        Z, y, scores = self.Z[some], self.y[some], list[float]()
        for masks in self.folds.select(some).cuts:
            rest, held = map(np.flatnonzero, masks)
            # R² of a single number is undefined
            if len(np.unique(y[rest])) > 1 and (self.task.classes is not None or len(held) > 1):
                known, unseen = (
                    Z[np.ix_(rows, rest)] if self.is_kernel else Z[rows] for rows in (rest, held)
                )
                estimator, _ = _fitted(self.make(cost, self.task), known, y[rest])
                scores.append(estimator.score(unseen, y[held]))
        if not scores:
            raise DataError(
                "learner: expected training rows with different labels in a fold, got equal labels in all: give "
                "--penalty, so that no penalty is searched for"
            )
        return float(np.mean(scores))

    def model(self, penalty: float) -> Model:
        constant = DummyRegressor if self.task.classes is None else DummyClassifier
        estimator = constant() if self._equal else self.make(1.0 / penalty, self.task)
        estimator, converged = _fitted(estimator, self.Z, self.y)
        return FittedLearner(estimator, self.task, self.scaling, penalty, converged)


def held(inputs: Inputs, rows: Mask, scaling: Scaling, most_bytes: int = _MOST_BYTES) -> tuple[Array, Floats]:
    """Return the row numbers (r,) and the scaled values (r, width) of the rows. Refuse values of over `most_bytes`."""
    n = int(rows.sum())
    if n * inputs.width * 4 > most_bytes:
        raise UsageError(
            f"learner: expected at most {most_bytes >> 30} GiB of training rows in memory, got {n:,} rows of "
            f"{inputs.width:,} numbers; ridge reads rows in blocks"
        )
    out, numbers, at = np.empty((n, inputs.width), np.float32), np.empty(n, np.intp), 0
    for of_block, block in inputs.blocks(rows):
        here, at = slice(at, at + len(block)), at + len(block)
        with np.errstate(over="ignore"):
            out[here] = scaling(block)
        numbers[here] = of_block
    if not np.isfinite(out).all():
        raise DataError("learner: expected features that float32 can hold, got larger ones: scale the input")
    return numbers, out


class LinearMachine(Learner):
    """A linear estimator that keeps its rows in memory, and the kernel machine with the same loss."""

    def __init__(self, name: str, make: Make, exact: Make) -> None:
        self.name, self._make, self._exact = name, make, exact
        self.probabilities = name == "logistic"

    def on_rows(self, inputs: Inputs, rows: Mask, truth: Truth) -> Training:
        online = self.name == "sgd"
        scaling = NO_SCALING
        if online:
            scaling = unit_scaling_of((Z for _, Z in inputs.blocks(rows)), inputs.standardize)
        elif inputs.standardize:
            scaling = scaling_of(Z for _, Z in inputs.blocks(rows))
        numbers, Z = held(inputs, rows, scaling)
        return HeldRows(
            self._make, truth.task, Z, truth.answers(numbers), truth.folds.select(numbers),
            scaling=scaling, costs=_COSTS_OF_SGD if online else COSTS,
        )  # fmt: skip

    def on_kernel(self, K: Floats, rows: Array, truth: Truth) -> Training:
        y, folds = truth.answers(rows), truth.folds.select(rows)
        return HeldRows(self._exact, truth.task, K, y, folds, is_kernel=True)


def learner(name: str, tau: float) -> Learner:
    """Return the learner with this name. Only `dual_l1` uses `tau`."""
    make: dict[str, tuple[Make, Make]] = {
        "logistic": (_logistic, partial(_logistic, is_kernel=True)),
        "dual_l1": (partial(_dual_l1, tau=tau), partial(_dual_l1_exact, tau=tau)),
        "linear_svc": (_linear_svc, _kernel_svm),
        "linear_svc_hinge": (_linear_svc_hinge, _kernel_svm),
        "linear_svc_l1": (_linear_svc_l1, _kernel_svm),
        "sgd": (_sgd, _kernel_svm),
    }
    return LinearMachine(name, *make[name])


def _linear_svc(cost: float, task: PredictionTask) -> Any:
    if task.classes is None:
        return LinearSVR(C=cost, loss="squared_epsilon_insensitive", dual=False, tol=_NEAR, max_iter=_STEPS)
    # The primal solver needs a few dozen Newton steps at any cost; the dual solver fails to converge at high costs.
    return LinearSVC(C=cost, dual=False, tol=_NEAR, max_iter=_STEPS)


def _linear_svc_hinge(cost: float, task: PredictionTask) -> Any:
    """Make a linear SVM with the plain hinge, or with absolute errors for numbers, like the kernel SVM."""
    make, loss = (LinearSVR, "epsilon_insensitive") if task.classes is None else (LinearSVC, "hinge")
    # Only the dual solver has this loss. This solver goes over the rows one by one, so it needs more passes.
    return make(C=cost, loss=loss, dual=True, tol=_NEAR, max_iter=_PASSES, random_state=0)


def _linear_svc_l1(cost: float, task: PredictionTask) -> Any:
    if task.classes is None:
        raise UsageError(
            "learner linear_svc_l1: expected classes, got a number to predict; try ridge or linear_svc"
        )
    # The solver visits the columns in random order.
    return LinearSVC(C=cost, penalty="l1", dual=False, tol=_NEAR, max_iter=_STEPS, random_state=0)


def _dual_l1(cost: float, task: PredictionTask, tau: float) -> Any:
    """Make a linear SVM whose dual has the extra term −τ‖α‖₁. For numbers, its loss ignores errors of at most τ.

    For classes, the hinge becomes max(0, 1 − τ − yz). The solution is (1 − τ) times that of the plain hinge with the
    cost C/(1 − τ), so both predict the same classes. (With the squared hinge, τ would only scale the solution.)
    """
    if task.classes is None:
        return LinearSVR(
            C=cost, epsilon=tau, loss="squared_epsilon_insensitive", dual=False, tol=_NEAR, max_iter=_STEPS
        )
    return _linear_svc_hinge(cost / (1.0 - tau), task)


def _dual_l1_exact(cost: float, task: PredictionTask, tau: float) -> Any:
    if task.classes is None:
        return SVR(kernel="precomputed", C=cost, epsilon=tau, max_iter=_PAIRS)
    return _kernel_svm(cost / (1.0 - tau), task)


def _logistic(cost: float, task: PredictionTask, is_kernel: bool = False) -> Any:
    if task.classes is None:
        raise UsageError("learner logistic: expected classes, got a number to predict; try ridge")
    return LogisticMachine(1.0 / cost, is_kernel)


def _kernel_svm(cost: float, task: PredictionTask) -> Any:
    make = SVR if task.classes is None else SVC
    return make(kernel="precomputed", C=cost, max_iter=_PAIRS)


def _fitted(estimator: Any, Z: Floats, y: Array) -> tuple[Any, bool]:
    """Fit an estimator. Return it, and True if the solver converged."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ConvergenceWarning)
        try:
            estimator.fit(Z, y)
        except ValueError as error:  # scikit-learn's error about its input
            raise DataError(
                f"learner: {first_line(error).rstrip('.')}: scale the input, or choose ridge"
            ) from error
    return estimator, not any(issubclass(one.category, ConvergenceWarning) for one in warned)


def _sgd(cost: float, task: PredictionTask) -> Any:
    """Make a linear model that learns by averaged stochastic gradients (Bottou 2012, SGD Tricks)."""
    if task.classes is None:
        return SGDRegressor(alpha=1.0 / cost, average=True, eta0=0.1, random_state=0)
    return SGDClassifier(alpha=1.0 / cost, average=True, random_state=0)
