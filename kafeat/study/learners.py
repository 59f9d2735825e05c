"""Learners on raw columns, on features, and with the exact kernel, and their equals in scikit-learn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kafeat.errors import DataError, UsageError
from kafeat.maths.ridge import FOLDS, KernelRidge, NormalEquations
from kafeat.maths.task import Kind, PredictionTask
from kafeat.model.predictor import FittedPredictor
from kafeat.study.preparation import NO_SCALING, Scaling, Truth
from kafeat.types import Array, Floats, Mask

Blocks = Callable[[Mask], Iterator[tuple[Array, Floats]]]
"""Yield the rows in a mask (n,) in blocks: their numbers (r,) and their values (r, width)."""


@dataclass
class Inputs:
    """A table that can be read repeatedly: raw columns, or features of a map."""

    width: int
    blocks: Blocks
    standardize: bool = False
    """True for raw columns, which have units; features have none."""

    def matrix(self, rows: Mask, most_bytes: int, scaling: Scaling = NO_SCALING) -> tuple[Array, Floats]:
        """Return the numbers and scaled values (r, width) of the rows, for learners that need them all in memory."""
        n = int(rows.sum())
        if n * self.width * 4 > most_bytes:
            raise UsageError(
                f"learner: expected at most {most_bytes >> 30} GiB of training rows in memory, got {n:,} rows of "
                f"{self.width:,} numbers; ridge and sgd read rows in blocks"
            )
        out = np.empty((n, self.width), dtype=np.float32)
        numbers = np.empty(n, dtype=np.intp)
        at = 0
        for block_rows, block in self.blocks(rows):
            with np.errstate(over="ignore"):
                out[at : at + len(block)] = scaling(block)
            numbers[at : at + len(block)] = block_rows
            at += len(block)
        if not np.isfinite(out).all():
            raise DataError(
                "learner: expected features that float32 can hold, got larger ones: scale the input"
            )
        return numbers, out


class Model(Protocol):
    """A fitted model. It predicts (n, k) from inputs, or from kernel values with the training rows."""

    def __call__(self, Z: Floats, /) -> Floats: ...
    @property
    def nonzero(self) -> int: ...
    @property
    def penalty(self) -> float: ...
    @property
    def converged(self) -> bool: ...


class Training(Protocol):
    """Rows that a learner is ready to learn from: the search for a penalty, and learning with one, are apart."""

    def search(self) -> float:
        """Return the penalty that cross-validation over the folds chooses."""

    def model(self, penalty: float, /) -> Model:
        """Learn once, with this penalty."""


class Learner(ABC):
    """A learner whose penalty is given, or chosen by cross-validation over the folds."""

    name: str
    probabilities = False
    """True if predictions are probabilities of the classes."""
    small_objects = False
    """True if learning makes so many small objects that tracing its memory would slow it down."""

    @abstractmethod
    def on_rows(self, inputs: Inputs, train: Mask, truth: Truth) -> Training:
        """Prepare a linear model of the inputs."""

    @abstractmethod
    def on_kernel(self, K: Floats, rows: Array, truth: Truth) -> Training:
        """Prepare a kernel machine with the kernel K (n, n) of the training rows with these numbers (n,)."""

    def linear(self, inputs: Inputs, train: Mask, truth: Truth, penalty: float | None = None) -> Model:
        """Fit a linear model of the inputs; without a penalty, search for one."""
        training = self.on_rows(inputs, train, truth)
        return training.model(training.search() if penalty is None else penalty)

    def held_out_predictions(
        self, Z: Floats, labels: Array, train: int, task: PredictionTask, penalty: float | None = None
    ) -> Floats:
        """Return what the first `train` rows of features Z (n, D) teach about the others, (n − train, k)."""
        numbers = np.arange(len(Z))

        def blocks(rows: Mask) -> Iterator[tuple[Array, Floats]]:
            yield numbers[rows], Z[rows]

        truth = Truth(task, labels, numbers % FOLDS)
        model = self.linear(Inputs(Z.shape[1], blocks), numbers < train, truth, penalty)
        return model(Z[train:].astype(np.float64))


class Ridge(Learner):
    """Ridge regression in closed form, with a target of 0 or 1 per class; rows are read once and not held."""

    name = "ridge"

    def __init__(self, jobs: int = 1) -> None:
        self._jobs = jobs

    def on_rows(self, inputs: Inputs, train: Mask, truth: Truth) -> Training:
        equations = None
        for rows, Z in inputs.blocks(train):
            Y = truth.task.targets(truth.labels[rows])
            if equations is None:
                equations = NormalEquations(inputs.width, Y.shape[1], self._jobs)
            equations.add(Z, Y, truth.folds[rows])
        if equations is None:
            raise UsageError("label: expected rows to train on, got none")
        return equations.training(inputs.standardize)

    def on_kernel(self, K: Floats, rows: Array, truth: Truth) -> Training:
        return KernelRidge(K, truth.task.targets(truth.labels[rows]), truth.folds[rows], self._jobs)


def predictions(model: Model, inputs: Inputs, rows: Mask) -> tuple[Array, Floats]:
    """Return the numbers of the rows (n,) and what the model predicts of them (n, k)."""
    numbers, predicted = [], []
    for of_block, Z in inputs.blocks(rows):
        numbers.append(of_block)
        predicted.append(model(Z.astype(np.float64)))
    return np.concatenate(numbers), np.concatenate(predicted)


def equivalent_learner(learner: str, kind: Kind, penalty: float) -> str | None:
    """Return the call that makes the model of scikit-learn; None for learners without a plain one."""
    if learner == "ridge":
        return f"{'Ridge' if kind == 'regression' else 'RidgeClassifier'}(alpha={penalty!r})"
    return f"LogisticRegression(C={1.0 / penalty!r})" if learner == "logistic" and penalty > 0.0 else None


def equivalent_predictor(predictor: FittedPredictor) -> str | None:
    """Return the call that makes the model of scikit-learn with the weights of this predictor, but for scale."""
    kind: Kind = "regression" if predictor.labels.classes is None else "classification"
    penalty = float(predictor.fitted.state["lambda"])
    # Scikit-learn has one vector of weights for two classes. Here there are two, ±w/2, with half the squared norm.
    half = predictor.fitted.step.kind == "logistic" and predictor.n_outputs == 2
    return equivalent_learner(predictor.fitted.step.kind, kind, penalty / 2.0 if half else penalty)
