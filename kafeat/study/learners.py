"""Learners for raw columns, for features and for the exact kernel, and the equivalent calls of scikit-learn.

Test rows and folds are chosen by the hash of the row number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from kafeat.contract import Folded, Folds, RowKeys
from kafeat.errors import UsageError
from kafeat.jobs.fit import Inputs, timed
from kafeat.maths import Hashes, KernelRidge, Kind, NormalEquations, PredictionTask, power_of_two, row_hashes
from kafeat.model import FittedPredictor
from kafeat.types import Array, Floats, Mask

_TEST_SHARE = 0.2


class Tested(NamedTuple):
    """Predictions for rows, their labels, and their groups if whole groups were held out.

    `ends` (n, 2, k) are the lower and upper ends of the intervals that are scored, if the model has intervals.
    """

    predicted: Floats
    labels: Array
    groups: Floats | None = None
    ends: Floats | None = None

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the predictions, labels and groups of all parts, one part after the other."""
        groups = [one.groups for one in parts if one.groups is not None]
        return cls(
            np.concatenate([one.predicted for one in parts]),
            np.concatenate([one.labels for one in parts]),
            np.concatenate(groups) if groups else None,
        )


@dataclass(frozen=True)
class Truth:
    """The task, the labels (n,) and the folds of n rows, and their groups (n,) if whole groups are held out."""

    task: PredictionTask
    labels: Array
    folds: Folded
    groups: Floats | None = None

    def tested(self, rows: Array, predicted: Floats) -> Tested:
        """Return predictions for these rows, with their labels and groups."""
        return Tested(predicted, self.labels[rows], None if self.groups is None else self.groups[rows])

    def predicted(self, model: Predict, inputs: Inputs, rows: Mask) -> Tested:
        """Return the predictions of a model for these rows, with their labels and groups."""
        return self.tested(*inputs.joined(rows, lambda Z: model(Z.astype(np.float64))))

    def answers(self, rows: Array) -> Array:
        """Return the targets (r,) for scikit-learn: class numbers, or the scaled values of the first label."""
        labels = self.labels[rows]
        return self.task.targets(labels)[:, 0] if self.task.classes is None else self.task.numbers(labels)


@dataclass(frozen=True)
class Split:
    """The rows of one split of the data.

    Attributes:
        test: True for the rows to test on, (n,).
        hashes: Numbers (n,) that order all rows at random.
        seed: The seed that the test rows were drawn with; None if a column marks them.
        keys: Group or time of each row, by which rows are held out; None holds out random rows.
        validation: True for the training rows whose score decides between maps, (n,); None with a single map.
        truth: The task, the labels and the folds; None without a label.
    """

    test: Mask
    hashes: Hashes
    seed: int | None = None
    keys: RowKeys | None = None
    validation: Mask | None = None
    truth: Truth | None = None

    @property
    def train(self) -> Mask:
        """True for the rows that are not tested on, (n,)."""
        return ~self.test

    @property
    def held_out(self) -> Mask:
        """True for the rows that no recipe is fitted on: test and validation rows, (n,)."""
        return self.test if self.validation is None else self.test | self.validation

    @property
    def folds(self) -> Folded:
        """The fold of each row. Edges of folds come from training rows, so that training rows are divided evenly."""
        folds = Folds.by(None if self.keys is None else self.keys.select(self.train))
        return Folded(folds.parts(self.hashes if self.keys is None else self.keys.values), folds)

    def some(self, of: Mask, most: int) -> Mask:
        """Return the mask `of`. If it has more than `most` rows, keep the `most` rows with the largest hashes."""
        return of if int(of.sum()) <= most else _last(of, most, self.hashes)

    def validation_rows(self, part: int) -> Mask:
        """Return a mask that selects 1/`part` of the training rows, at random or by their keys."""
        return _last(self.train, int(self.train.sum()) // part, self.hashes, self.keys, self.seed or 0)


def split(n: int, seed: int, test: Mask | None = None, keys: RowKeys | None = None) -> Split:
    """Hold out the fifth of n rows with the largest hashes of (seed, row number), or the rows in `test`.

    A map is fitted on the rows with the smallest hashes. A map that is fitted on less than four fifths of the rows sees
    no test row. If keys are given, they choose the test rows: whole groups with about a fifth of the rows, or the
    latest fifth.
    """
    hashes = row_hashes(seed, 0, n)
    if test is not None:
        return Split(test, hashes, keys=keys)
    held = _last(np.ones(n, dtype=bool), max(2, int(_TEST_SHARE * n)), hashes, keys, seed)
    return Split(held, hashes, seed, keys)


def _last(of: Mask, count: int, hashes: Hashes, keys: RowKeys | None = None, seed: int = 0) -> Mask:
    """Return a mask of the `count` rows with the largest hashes or, with keys, of the latest rows or whole groups."""
    rows, last = np.flatnonzero(of), np.zeros(len(of), dtype=bool)
    if keys is None:
        last[rows[np.argsort(hashes[rows])[-count:]]] = True
    else:
        last[rows] = keys.select(rows).last(count, np.random.default_rng(seed))
    return last


# Scaled values are clipped to ± this, so that predictions stay finite.
_FARTHEST = 1e100


@dataclass(frozen=True)
class Scaling:
    """Scales rows Z (n, d) to (Z − mean)/spread in float64. The spread of a constant column is ∞."""

    mean: Floats
    spread: Floats

    def __call__(self, Z: Floats) -> Floats:
        with np.errstate(over="ignore"):
            scaled: Floats = (Z - self.mean) / self.spread
        return np.clip(scaled, -_FARTHEST, _FARTHEST, out=scaled)


NO_SCALING = Scaling(np.zeros(1), np.ones(1))
"""Leaves inputs as they are: features need no scaling, because they have no units."""


def scaling_of(blocks: Iterable[Floats]) -> Scaling:
    """Return the scaling by the mean and standard deviation of all rows.

    Sums use deviations from the mean of the first block, divided by a power of two of their size, so that squares
    neither lose digits nor overflow.
    """
    n = 0
    pivot: Floats = np.zeros(1)
    units: Floats = np.ones(1)
    total, square = np.zeros(1), np.zeros(1)
    for Z in blocks:
        if not n:
            pivot = Z.mean(axis=0, dtype=np.float64)
            units = power_of_two(np.abs(Z - pivot).max(axis=0))
        around = (Z - pivot) / units
        n += len(Z)
        total = total + around.sum(axis=0)
        square = square + np.square(around).sum(axis=0)
    spread = np.sqrt(np.maximum(square / n - (total / n) ** 2, 0.0)) * units
    varies = spread > 1e-12 * np.abs(pivot)
    return Scaling(pivot + total / n * units, np.where(varies, spread, np.inf))


def unit_scaling_of(blocks: Iterable[Floats], standardize: bool) -> Scaling:
    """Return a scaling to rows of mean 0 and mean squared norm 1, which the step sizes of stochastic gradients need.

    All columns are divided by one number or, with `standardize`, each also by its own standard deviation.
    """
    scaling = scaling_of(blocks)
    varies = np.isfinite(scaling.spread)
    if standardize:
        return Scaling(scaling.mean, scaling.spread * np.sqrt(max(int(varies.sum()), 1)))
    largest = float(scaling.spread[varies].max(initial=0.0))
    shares = scaling.spread[varies] / largest if largest else scaling.spread[varies]
    return Scaling(scaling.mean, np.where(varies, largest * float(np.linalg.norm(shares)), np.inf))


Predict = Callable[[Floats], Floats]
"""Returns predictions (n, k) for inputs (n, d), or for kernel values (n, m) between n rows and m training rows."""


class Model(Protocol):
    """A fitted model. A call returns predictions, like a call of `Predict`."""

    def __call__(self, Z: Floats, /) -> Floats: ...
    @property
    def nonzero(self) -> int: ...
    @property
    def penalty(self) -> float: ...
    @property
    def converged(self) -> bool: ...


class Training(Protocol):
    """Training rows that are ready for a learner. Searching for a penalty and fitting with one are timed separately."""

    def search(self) -> float:
        """Return the penalty that cross-validation over the folds chooses."""

    def model(self, penalty: float, /) -> Model:
        """Return the model that is fitted with this penalty."""


class Trained(NamedTuple):
    """A model, the seconds of one fit, and the seconds of the search for its penalty."""

    model: Any
    learn_seconds: float
    search_seconds: float = 0.0


def train(
    prepare: Callable[[], Training], penalty: float | None, apart: Callable[[], float] = lambda: 0.0
) -> Trained:
    """Fit with `penalty`; if it is None, search for one. Seconds by which the total `apart()` grows do not count."""
    training, prepared = timed(prepare, apart)
    chosen, search = (penalty, 0.0) if penalty is not None else timed(training.search, apart)
    model, learned = timed(partial(training.model, chosen), apart)
    return Trained(model, prepared + learned, search)


class Learner(ABC):
    """A learner whose penalty is given, or chosen by cross-validation over the folds."""

    name: str
    probabilities = False
    """True if predictions are probabilities of the classes."""

    @abstractmethod
    def on_rows(self, inputs: Inputs, rows: Mask, truth: Truth) -> Training:
        """Prepare to fit a linear model of the inputs of these rows."""

    @abstractmethod
    def on_kernel(self, K: Floats, rows: Array, truth: Truth) -> Training:
        """Prepare to fit a kernel machine on the kernel matrix K (n, n) of the rows with these numbers (n,)."""

    def linear(self, inputs: Inputs, rows: Mask, truth: Truth, penalty: float | None = None) -> Trained:
        """Fit a linear model of the inputs. Without a penalty, search for one."""
        return train(partial(self.on_rows, inputs, rows, truth), penalty, lambda: inputs.seconds)

    def learn(
        self, Z: Floats, labels: Array, folded: Folded, task: PredictionTask, penalty: float | None = None
    ) -> Predict:
        """Fit on features Z (n, D) with labels (n,). Without a penalty, the score over the folds chooses one."""
        every, truth = np.ones(len(Z), bool), Truth(task, labels, folded)
        model: Predict = self.linear(Inputs.of(Z), every, truth, penalty).model
        return model


class Ridge(Learner):
    """Ridge regression in closed form, with a target of 0 or 1 per class. Rows are read once and not kept in memory."""

    name = "ridge"

    def __init__(self, jobs: int = 1) -> None:
        self._jobs = jobs

    def on_rows(self, inputs: Inputs, rows: Mask, truth: Truth) -> Training:
        equations = None
        for numbers, Z in inputs.blocks(rows):
            Y = truth.task.targets(truth.labels[numbers])
            if equations is None:
                equations = NormalEquations(
                    inputs.width, Y.shape[1], self._jobs, inputs.standardize, truth.folds.folds
                )
            equations.add(Z, Y, truth.folds.parts[numbers])
        if equations is None:
            raise UsageError("label: expected rows to train on, got none")
        return equations

    def on_kernel(self, K: Floats, rows: Array, truth: Truth) -> Training:
        return KernelRidge(K, truth.task.targets(truth.labels[rows]), truth.folds.select(rows), self._jobs)


def equivalent_learner(learner: str, kind: Kind, penalty: float) -> str | None:
    """Return the scikit-learn call that makes the same model, or None if there is no simple call."""
    if learner == "ridge":
        return f"{'Ridge' if kind == 'regression' else 'RidgeClassifier'}(alpha={penalty!r})"
    return f"LogisticRegression(C={1.0 / penalty!r})" if learner == "logistic" and penalty > 0.0 else None


def equivalent_predictor(predictor: FittedPredictor) -> str | None:
    """Return the scikit-learn call that makes a model with the weights of this predictor, up to a factor.

    The intercept of ridge for classes differs, because kafeat adds the biases of its probabilities.
    """
    kind: Kind = "regression" if predictor.labels.classes is None else "classification"
    penalty = float(predictor.fitted.state["lambda"])
    # For two classes, scikit-learn has one vector of weights w, and kafeat has ±w/2, with half the squared norm.
    half = predictor.fitted.step.kind == "logistic" and predictor.n_outputs == 2
    return equivalent_learner(predictor.fitted.step.kind, kind, penalty / 2.0 if half else penalty)
