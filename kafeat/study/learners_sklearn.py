"""Learners from scikit-learn: linear models on columns and features, and kernel SVMs with the exact kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

from kafeat.contract.folds import Folded
from kafeat.errors import DataError, UsageError, first_line
from kafeat.maths import lapack
from kafeat.maths.ridge import rounding_of
from kafeat.maths.task import PredictionTask
from kafeat.study.learners import (
    NO_SCALING,
    Inputs,
    Learner,
    Model,
    Scaling,
    Training,
    Truth,
    scaling_of,
    unit_scaling_of,
)
from kafeat.types import Array, Floats, Mask

# 1/penalty; features have norms near 1.
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)
# Number of rows to choose a cost on. More rows do not change the choice.
_CHOSEN_ON = 5_000
_NEAR = 1e-3
# A few dozen steps usually suffice; otherwise the record says that the solver did not converge.
_STEPS = 100
# Passes over the rows of the solver for the hinge.
_PASSES = 1000
# Steps of the kernel SVM, two coefficients each. Without a limit it could hang where no signal reaches it.
_PAIRS = 1_000_000
_MOST_BYTES = 4 << 30

Make = Callable[[float, PredictionTask], Any]
"""Make an estimator from a cost."""


@dataclass(frozen=True)
class FittedLearner:
    """An estimator with a scaling of its inputs.

    A class is predicted by its probability, or else by its side of the decision.
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
        # Classes of no training row come last.
        predicted = np.empty((len(values), len(classes)))
        predicted[:] = 0.0 if likely else values.min(axis=1, keepdims=True) - 1.0
        predicted[:, self.estimator.classes_] = values
        return predicted

    @property
    def nonzero(self) -> int:
        if hasattr(self.estimator, "support_"):
            return len(self.estimator.support_)
        return int((np.atleast_2d(self.estimator.coef_) != 0.0).any(axis=0).sum())


@dataclass(frozen=True)
class Constant:
    """The model learned from rows that all have the same label."""

    task: PredictionTask
    answer: Any
    penalty: float = 0.0
    converged: bool = True
    nonzero: int = 0

    def search(self) -> float:
        return 0.0

    def model(self, _penalty: float) -> Model:
        return self

    def __call__(self, Z: Floats) -> Floats:
        if self.task.classes is None:
            return np.full((len(Z), 1), float(self.answer))
        one_hot: Floats = np.eye(len(self.task.classes))[np.full(len(Z), int(self.answer))]
        return one_hot


@dataclass(frozen=True)
class HeldRows:
    """Rows Z (n, D), or a kernel matrix (n, n), in memory, for an estimator of scikit-learn.

    Attributes:
        y: The class numbers or scaled numbers of the rows, (n,).
        folds: Their folds.
    """

    make: Make
    task: PredictionTask
    Z: Floats
    y: Array
    folds: Folded
    _: KW_ONLY
    scaling: Scaling = NO_SCALING
    is_kernel: bool = False

    def search(self) -> float:
        return 1.0 / max(COSTS, key=self._mean_score)

    def _mean_score(self, cost: float) -> float:
        """Return the mean score over the folds; a cost of rows is chosen on some of them."""
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
                "learner: expected labels that differ among the rows that no fold holds out, got equal ones: give "
                "--penalty, so that none is searched for"
            )
        return float(np.mean(scores))

    def model(self, penalty: float) -> Model:
        estimator, converged = _fitted(self.make(1.0 / penalty, self.task), self.Z, self.y)
        return FittedLearner(estimator, self.task, self.scaling, penalty, converged)


class LinearMachine(Learner):
    """A linear estimator that holds its rows, and its exact counterpart."""

    def __init__(self, name: str, make: Make, exact: Make) -> None:
        self.name, self._make, self._exact = name, make, exact
        self.probabilities = name == "logistic"

    def on_rows(self, inputs: Inputs, train: Mask, truth: Truth) -> Training:
        scaling = scaling_of(Z for _, Z in inputs.blocks(train)) if inputs.standardize else NO_SCALING
        rows, Z = inputs.matrix(train, _MOST_BYTES, scaling)
        held = HeldRows(
            self._make, truth.task, Z, truth.answers(rows), truth.folds.select(rows), scaling=scaling
        )
        return _training(held, truth.task, held.y)

    def on_kernel(self, K: Floats, rows: Array, truth: Truth) -> Training:
        y, folds = truth.answers(rows), truth.folds.select(rows)
        return _training(HeldRows(self._exact, truth.task, K, y, folds, is_kernel=True), truth.task, y)


def _training(training: Training, task: PredictionTask, y: Array) -> Training:
    """Return the training, or the constant that rows with a single answer y (n,) teach."""
    return Constant(task, y[0]) if len(np.unique(y)) == 1 else training


def learner(name: str, tau: float) -> Learner:
    """Return a learner by its name; `dual_l1` uses τ."""
    if name == "sgd":
        return OnlineMachine(LinearMachine(name, _linear_svc_hinge, _kernel_svm))
    make: dict[str, tuple[Make, Make]] = {
        "logistic": (_logistic, _kernel_logistic),
        "dual_l1": (partial(_dual_l1, tau=tau), partial(_dual_l1_exact, tau=tau)),
        "linear_svc": (_linear_svc, _kernel_svm),
        "linear_svc_hinge": (_linear_svc_hinge, _kernel_svm),
        "linear_svc_l1": (_linear_svc_l1, _kernel_svm),
    }
    return LinearMachine(name, *make[name])


def _linear_svc(cost: float, task: PredictionTask) -> Any:
    if task.classes is None:
        return LinearSVR(C=cost, loss="squared_epsilon_insensitive", dual=False, tol=_NEAR, max_iter=_STEPS)
    # The primal solver needs a few dozen Newton steps at any cost; the dual solver fails to converge at high costs.
    return LinearSVC(C=cost, dual=False, tol=_NEAR, max_iter=_STEPS)


def _linear_svc_hinge(cost: float, task: PredictionTask) -> Any:
    """Make a linear SVM with the plain hinge, or with absolute errors of a number, as the kernel SVM has."""
    make, loss = (LinearSVR, "epsilon_insensitive") if task.classes is None else (LinearSVC, "hinge")
    # Only the dual solver has this loss. It goes over the rows one by one, so it needs more passes.
    return make(C=cost, loss=loss, dual=True, tol=_NEAR, max_iter=_PASSES, random_state=0)


def _linear_svc_l1(cost: float, task: PredictionTask) -> Any:
    if task.classes is None:
        raise UsageError(
            "learner linear_svc_l1: expected classes, got a number to predict; try ridge or linear_svc"
        )
    # The solver takes the columns in a random order.
    return LinearSVC(C=cost, penalty="l1", dual=False, tol=_NEAR, max_iter=_STEPS, random_state=0)


def _dual_l1(cost: float, task: PredictionTask, tau: float) -> Any:
    """Add −τ‖α‖₁ to the dual: the loss then ignores errors of a number up to τ.

    For classes the hinge becomes max(0, 1 − τ − yz). Its solution is (1 − τ) times that with the cost C/(1 − τ), which
    predicts the same. (With the squared hinge τ would only scale the solution.)
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


def _logistic(cost: float, task: PredictionTask) -> Any:
    if task.classes is None:
        raise UsageError("learner logistic: expected classes, got a number to predict; try ridge")
    return LogisticRegression(C=cost, max_iter=1000)


class KernelLogisticRegression(LogisticRegression):  # type: ignore[misc]  # scikit-learn has no types
    """Logistic regression with a kernel matrix: K = LLᵀ, so that L are features with this kernel."""

    def fit(self, K: Floats, y: Array) -> KernelLogisticRegression:
        from scipy.linalg import solve_triangular

        jitter = rounding_of(float(np.abs(K).max()), len(K))
        L = lapack.cholesky(K + jitter * np.eye(len(K)), lower=True)
        super().fit(L, y)
        w: Floats = self.coef_
        self.coef_: Floats = solve_triangular(L, w.T, trans="T", lower=True).T  # f(x) = k(x, ·)L⁻ᵀw
        return self


def _kernel_logistic(cost: float, _task: PredictionTask) -> Any:
    return KernelLogisticRegression(C=cost, max_iter=1000)


def _kernel_svm(cost: float, task: PredictionTask) -> Any:
    make = SVR if task.classes is None else SVC
    return make(kernel="precomputed", C=cost, max_iter=_PAIRS)


def _fitted(estimator: Any, Z: Floats, y: Array) -> tuple[Any, bool]:
    """Fit an estimator; return it, and True if the solver converged."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ConvergenceWarning)
        with refusals():
            estimator.fit(Z, y)
    return estimator, not any(issubclass(one.category, ConvergenceWarning) for one in warned)


@contextmanager
def refusals() -> Iterator[None]:
    """Convert the ValueErrors of scikit-learn about its input to DataErrors."""
    try:
        yield
    except ValueError as error:
        raise DataError(
            f"learner: {first_line(error).rstrip('.')}: scale the input, or choose ridge"
        ) from error


_ALPHAS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
# Steps that are enough, whatever the number of rows, and bounds of the number of passes.
_ENOUGH_STEPS, _FEWEST, _MOST = 1_000_000, 3, 30
# Passes without a lower error on the rows held out, after which learning stops.
_PATIENCE = 4
# Rows of so many bytes are held, and so are read once and in random order.
_HELD_BYTES = 1 << 28
_AT_ONCE = 8192


class OnlineMachine(Learner):
    """Stochastic gradient descent with averaged weights: several passes over rows that need not fit into memory.

    Its exact machine is that of a learner with the same loss. Source: Bottou 2012, Stochastic Gradient Descent Tricks;
    averaging: Polyak & Juditsky 1992.
    """

    name = "sgd"
    small_objects = True

    def __init__(self, exact: Learner) -> None:
        self._exact = exact

    def on_rows(self, inputs: Inputs, train: Mask, truth: Truth) -> Training:
        scaling = unit_scaling_of((Z for _, Z in inputs.blocks(train)), inputs.standardize)
        n = int(train.sum())
        held = n * inputs.width * 4 <= _HELD_BYTES
        blocks = _held(inputs, train, scaling) if held else _scaled(inputs, scaling)
        most = int(np.clip(-(-_ENOUGH_STEPS // n), _FEWEST, _MOST))
        # Rows that are read again for each pass are read for one fold only.
        folds = np.unique(truth.folds.parts[train])[: None if held else 1]
        online = OnlineTraining(blocks, train, truth, scaling, most, tuple(folds.tolist()))
        return _training(online, truth.task, truth.answers(np.flatnonzero(train)))

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
        """Return the rows to learn from without a fold, and those of the fold."""
        own = self.truth.folds.parts == fold
        if not (self.train & ~own).any():
            raise self.truth.folds.folds.one_part
        return self.train & ~own, self.train & own

    def _missed(self, estimators: Sequence[Any], held: Mask) -> Floats:
        """Return the error of each on the rows held out: rows of a wrong class, or the squared error."""
        missed = np.zeros(len(estimators))
        for rows, Z in self.blocks(held, 0):
            y = self.truth.answers(rows)
            for i, estimator in enumerate(estimators):
                predicted = estimator.predict(Z)
                wrong = predicted != y if self.truth.task.classes is not None else (predicted - y) ** 2
                missed[i] += float(wrong.sum())
        return missed

    def _pass(self, estimators: Sequence[Any], rows: Mask, number: int) -> None:
        classes = self.truth.task.classes
        more = {} if classes is None else {"classes": np.arange(len(classes))}
        for numbers, Z in self.blocks(rows, number):
            y = self.truth.answers(numbers)
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
