"""Learners on raw columns, on features, and with the exact kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kafeat.errors import DataError, UsageError
from kafeat.evaluation.folds import FOLDS
from kafeat.evaluation.kernel_ridge import kernel_ridge
from kafeat.evaluation.ridge import NormalEquations
from kafeat.evaluation.scaling import NO_SCALING, Scaling
from kafeat.evaluation.task import PredictionTask, task_of
from kafeat.types import Array, Floats, Mask

Blocks = Callable[[Mask], Iterator[tuple[Array, Floats]]]
"""Yield the rows in a mask (n,) in blocks: their numbers (r,) and their values (r, width)."""


@dataclass(frozen=True)
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
        for found, block in self.blocks(rows):
            with np.errstate(over="ignore"):
                out[at : at + len(block)] = scaling(block)
            numbers[at : at + len(block)] = found
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


@dataclass(frozen=True)
class Truth:
    """The task, the labels (n,) and the folds (n,) of all rows."""

    task: PredictionTask
    labels: Array
    folds: Array


class Learner(ABC):
    """A learner whose penalty is chosen by cross-validation over the folds."""

    name: str

    @abstractmethod
    def linear(self, inputs: Inputs, train: Mask, truth: Truth) -> Model:
        """Fit a linear model of the inputs."""

    @abstractmethod
    def exact(self, K: Floats, rows: Array, truth: Truth) -> Model:
        """Fit a kernel machine with the kernel K (n, n) of the training rows with these numbers (n,)."""


# NumPy's product of a matrix with itself counts entries in 32 bits and crashes the process beyond this.
_MOST_SQUARE = 46_340


class Ridge(Learner):
    """Ridge regression in closed form, with a target of 0 or 1 per class; rows are read once and not held."""

    name = "ridge"

    def __init__(self, jobs: int = 1) -> None:
        self._jobs = jobs

    def linear(self, inputs: Inputs, train: Mask, truth: Truth) -> Model:
        if inputs.width > _MOST_SQUARE:
            raise UsageError(
                f"--learner ridge: expected at most {_MOST_SQUARE:,} columns for its normal equations, got "
                f"{inputs.width:,}; without --label only the errors against the kernel are shown"
            )
        equations = None
        for rows, Z in inputs.blocks(train):
            Y = truth.task.targets(truth.labels[rows])
            if equations is None:
                equations = NormalEquations(inputs.width, Y.shape[1], self._jobs)
            equations.add(Z, Y, truth.folds[rows])
        if equations is None:
            raise UsageError("label: expected rows to train on, got none")
        return equations.solve(inputs.standardize)

    def exact(self, K: Floats, rows: Array, truth: Truth) -> Model:
        return kernel_ridge(K, truth.task.targets(truth.labels[rows]), truth.folds[rows], self._jobs)


def score(model: Model, inputs: Inputs, test: Mask, truth: Truth) -> float:
    """Return the score on the test rows."""
    predicted, labels = [], []
    for rows, Z in inputs.blocks(test):
        predicted.append(model(Z.astype(np.float64)))
        labels.append(truth.labels[rows])
    return truth.task.score(np.concatenate(predicted), np.concatenate(labels))


def features_score(Z: Floats, labels: Array, train: int) -> float:
    """Return the score of ridge on features Z (n, D), trained on the first `train` rows and tested on the others."""
    numbers = np.arange(len(Z))

    def blocks(rows: Mask) -> Iterator[tuple[Array, Floats]]:
        yield numbers[rows], Z[rows]

    inputs, truth = Inputs(Z.shape[1], blocks), Truth(task_of(labels), labels, numbers % FOLDS)
    return score(Ridge().linear(inputs, numbers < train, truth), inputs, numbers >= train, truth)
