"""Sums over rows of features and targets: all that ridge regression needs to know about them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from kafeat.types import Floats


@dataclass
class RowSums:
    """Sums over rows: their weight, Σz, Σy, ZᵀZ, ZᵀY and Σ‖y‖²."""

    n: float
    z: Floats
    y: Floats
    zz: Floats
    zy: Floats
    yy: float

    @classmethod
    def empty(cls, width: int, targets: int) -> Self:
        """Return the sums of no rows."""
        z, y = np.zeros(width), np.zeros(targets)
        return cls(0.0, z, y, np.zeros((width, width)), np.zeros((width, targets)), 0.0)

    def add(self, z: Floats, y: Floats, weights: Floats | None = None) -> None:
        """Add rows z (n, D) with targets y (n, k), each as often as its weight (n,) says, or once."""
        if weights is None:
            self.n += len(z)
            self.z += z.sum(axis=0)
            self.y += y.sum(axis=0)
        else:
            self.n += float(weights.sum())
            self.z += weights @ z
            self.y += weights @ y
            roots = np.sqrt(weights)[:, None]
            z, y = z * roots, y * roots
        self.zz += z.T @ z
        self.zy += z.T @ y
        self.yy += float((y**2).sum())

    def centred(self, z: Floats, y: Floats) -> tuple[Floats, Floats, float]:
        """Return ZᵀZ, ZᵀY and Σ‖y‖² about the means z (D,) and y (k,)."""
        outer = np.outer(self.z, z)
        zz = self.zz - outer - outer.T + self.n * np.outer(z, z)
        zy = self.zy - np.outer(self.z, y) - np.outer(z, self.y) + self.n * np.outer(z, y)
        return zz, zy, self.yy - 2.0 * float(self.y @ y) + self.n * float(y @ y)


def total_of(parts: Iterable[RowSums]) -> RowSums:
    """Return the sums of all parts together, in their order."""
    first, *others = parts
    total = RowSums(first.n, first.z.copy(), first.y.copy(), first.zz.copy(), first.zy.copy(), first.yy)
    for part in others:
        total.n += part.n
        total.z += part.z
        total.y += part.y
        total.zz += part.zz
        total.zy += part.zy
        total.yy += part.yy
    return total
