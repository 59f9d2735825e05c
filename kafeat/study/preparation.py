"""Prepare rows for learners: their labels, test rows and folds by the hash of the row number, and their scaling."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kafeat.maths.ridge import FOLDS
from kafeat.maths.row_sample import Hashes, row_hashes
from kafeat.maths.task import PredictionTask
from kafeat.maths.units import power_of_two
from kafeat.types import Array, Floats, Mask

# Share of the rows that models are tested on.
_TEST_SHARE = 0.2


@dataclass(frozen=True)
class Truth:
    """The task, the labels (n,) and the folds (n,) of all rows."""

    task: PredictionTask
    labels: Array
    folds: Array

    def answers(self, rows: Array) -> Array:
        """Return the class numbers (r,) of these rows, or their scaled numbers, of the first label."""
        labels = self.labels[rows]
        return self.task.targets(labels)[:, 0] if self.task.classes is None else self.task.numbers(labels)


@dataclass(frozen=True)
class Split:
    """The rows of one split of the data.

    Attributes:
        test: True for the rows that are tested on, (n,).
        hashes: Numbers (n,) that order all rows at random.
        seed: Seed of the choice of these rows; None if a column names them.
        validation: Training rows (n,) that the recommendation is chosen on; None if there is nothing to choose.
        truth: The labels; None without any.
    """

    test: Mask
    hashes: Hashes
    seed: int | None = None
    validation: Mask | None = None
    truth: Truth | None = None

    @property
    def train(self) -> Mask:
        """The rows that are not tested on, (n,)."""
        return ~self.test

    @property
    def held_out(self) -> Mask:
        """The rows that no recipe is fitted on, (n,)."""
        return self.test if self.validation is None else self.test | self.validation

    @property
    def folds(self) -> npt.NDArray[np.intp]:
        """Return the fold of each row, (n,)."""
        return (self.hashes % np.uint64(FOLDS)).astype(np.intp)

    def some(self, of: Mask, most: int) -> npt.NDArray[np.intp]:
        """Return at most `most` of these rows, those with the largest hashes, in row order."""
        rows = np.flatnonzero(of)
        if len(rows) > most:
            rows = np.sort(rows[np.argsort(self.hashes[rows])[-most:]])
        return rows


def split(n: int, seed: int, test: Mask | None = None) -> Split:
    """Hold out the fifth of n rows with the largest hashes of (seed, row number), or the rows in `test`.

    A fit takes the smallest hashes. If it takes less than four fifths of the rows, it has seen no test row.
    """
    hashes = row_hashes(seed, 0, n)
    if test is not None:
        return Split(test, hashes)
    held = np.zeros(n, dtype=bool)
    held[np.argsort(hashes)[n - max(2, int(_TEST_SHARE * n)) :]] = True
    return Split(held, hashes, seed)


# Entries beyond this many standard deviations are clipped, so that predictions stay finite.
_FARTHEST = 1e100


@dataclass(frozen=True)
class Scaling:
    """(Z − mean)/spread of rows Z (n, d) in float64. The spread of a constant column is ∞."""

    mean: Floats
    spread: Floats

    def __call__(self, Z: Floats) -> Floats:
        with np.errstate(over="ignore"):
            scaled: Floats = (Z - self.mean) / self.spread
        return np.clip(scaled, -_FARTHEST, _FARTHEST, out=scaled)


NO_SCALING = Scaling(np.zeros(1), np.ones(1))
"""The scaling of features, which have no units."""


def scaling_of(blocks: Iterable[Floats]) -> Scaling:
    """Return the scaling by the mean and standard deviation of all rows.

    Sums are taken about a point near the mean, in units of the distances from it, so that squares neither lose digits
    nor overflow.
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
    """Return a scaling to rows of mean 0 and mean square norm 1, as stochastic gradients need for their steps.

    All columns have one divisor, or each has its own if they are to be standardized first.
    """
    scaling = scaling_of(blocks)
    varies = np.isfinite(scaling.spread)
    if standardize:
        return Scaling(scaling.mean, scaling.spread * np.sqrt(max(int(varies.sum()), 1)))
    largest = float(scaling.spread[varies].max(initial=0.0))
    shares = scaling.spread[varies] / largest if largest else scaling.spread[varies]
    return Scaling(scaling.mean, np.where(varies, largest * float(np.linalg.norm(shares)), np.inf))
