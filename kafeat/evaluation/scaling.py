"""Columns without their units: mean 0 and standard deviation 1 on the rows to train on, which are read once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kafeat.maths.units import power_of_two
from kafeat.types import Floats

# Entries further off than this many standard deviations are pulled in: predictions of theirs must be numbers.
_FARTHEST = 1e100


@dataclass(frozen=True)
class Scaling:
    """(Z − mean)/spread of rows Z (n, d), float64; spread is ∞ for a column that does not vary."""

    mean: Floats
    spread: Floats

    def __call__(self, Z: Floats) -> Floats:
        with np.errstate(over="ignore"):
            scaled: Floats = (Z - self.mean) / self.spread
        return np.clip(scaled, -_FARTHEST, _FARTHEST, out=scaled)


NO_SCALING = Scaling(np.zeros(1), np.ones(1))
"""Of features, which have no units."""


def scaling_of(blocks: Iterable[Floats]) -> Scaling:
    """Mean and standard deviation of all rows of the blocks.

    Sums are about a point near the mean, and in units of the size of what is around it: squares lose no digits to the
    mean, and do not overflow.
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
