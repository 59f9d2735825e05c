"""Standardize columns to mean 0 and standard deviation 1 on the training rows, read once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kafeat.maths.units import power_of_two
from kafeat.types import Floats

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
