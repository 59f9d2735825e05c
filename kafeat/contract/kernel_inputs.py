"""Two samples of rows as an exact kernel sees them: as coordinates, or only as their dot products.

A chain passes a pair from step to step. A scaler returns new coordinates. A sampler returns the Gram matrix of its
kernel, which consists of dot products in the kernel's feature space. They are enough for a next step whose kernel
depends only on distances or dot products.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from kafeat.types import Floats


def distances(x: Floats, y: Floats, metric: Literal["sqeuclidean", "cityblock"]) -> Floats:
    """Return the distances (n, m) between rows x (n, d) and y (m, d), computed from differences of coordinates."""
    # Imported here: a transform needs no exact kernel, and SciPy would take half of its start-up time.
    from scipy.spatial.distance import cdist

    return cdist(x, y, metric)


# From this many columns on, a matrix product is several times as fast as differences.
_WIDE = 32
# Squared distances below this share of ‖x‖² + ‖y‖² are computed by differences, because products lose digits.
_NEAR = 1e-3
# Rows of a block. If more than the share _MANY of pairs is near, differences for all pairs are faster than products.
_ROWS, _MANY = 256, 0.1


def squared_distances(x: Floats, y: Floats) -> Floats:
    """Return the squared distances (n, m) between rows x (n, d) and y (m, d), without cancellation.

    Distances of wide rows come from ‖x‖² + ‖y‖² − 2xᵀy about the mean row, with a relative error of at most about d ·
    1e-13. Pairs close to each other would have a larger error, so they are computed by differences.
    """
    if x.shape[1] < _WIDE or not (len(x) and len(y)):
        return distances(x, y, "sqeuclidean")
    with np.errstate(over="ignore", invalid="ignore"):
        middle = y.mean(axis=0)
        out = _by_products(x, y, middle)
    return distances(x, y, "sqeuclidean") if out is None else out


def _by_products(x: Floats, y: Floats, middle: Floats) -> Floats | None:
    """Return squared distances by a matrix product of rows minus `middle`, or None if differences are better."""
    around_x, around_y = x - middle, y - middle
    of_x, of_y = (np.einsum("ij,ij->i", rows, rows) for rows in (around_x, around_y))
    largest = max(float(of_x.max()), float(of_y.max()))
    if not 1e-200 < largest < 1e200:
        return None
    out: Floats = around_x @ around_y.T
    near = 0
    for start in range(0, len(x), _ROWS):
        rows = out[start : start + _ROWS]
        sizes = of_x[start : start + _ROWS, None] + of_y
        rows *= -2.0
        rows += sizes
        sizes *= _NEAR
        i, j = np.nonzero(rows < sizes)
        near += len(i)
        if near > _MANY * len(x) * len(y):
            return None
        for some in range(0, len(i), _ROWS * _ROWS):
            a, b = i[some : some + _ROWS * _ROWS], j[some : some + _ROWS * _ROWS]
            apart = x[start + a] - y[b]
            rows[a, b] = np.einsum("ij,ij->i", apart, apart)
    return out


@dataclass(frozen=True)
class Coordinates:
    """Rows `x` (n, d) and `y` (m, d), float64."""

    x: Floats
    y: Floats

    @cached_property
    def dots(self) -> Floats:
        """x yᵀ, (n, m)."""
        return self.x @ self.y.T

    @cached_property
    def squared_norms(self) -> tuple[Floats, Floats]:
        """‖x_i‖² (n,) and ‖y_j‖² (m,)."""
        return np.einsum("ij,ij->i", self.x, self.x), np.einsum("ij,ij->i", self.y, self.y)

    @cached_property
    def squared_distances(self) -> Floats:
        """‖x_i − y_j‖², (n, m), without cancellation."""
        return squared_distances(self.x, self.y)


@dataclass(frozen=True)
class Gram:
    """Dot products `dots` (n, m) of images φ(x), φ(y), and their `squared_norms` (n,) and (m,)."""

    dots: Floats
    squared_norms: tuple[Floats, Floats]

    @cached_property
    def squared_distances(self) -> Floats:
        """‖φ(x) − φ(y)‖² = k(x, x) + k(y, y) − 2 k(x, y), (n, m)."""
        x, y = self.squared_norms
        return np.maximum(x[:, None] + y[None, :] - 2.0 * self.dots, 0.0)


KernelInputs = Coordinates | Gram


def around_mean(K: Floats) -> tuple[Floats, Floats]:
    """Centre the Gram matrix K (n, n) in feature space. Return the centred matrix and the column means (n,) of K."""
    means = K.mean(axis=0)
    return K - means - means[:, None] + means.mean(), means
