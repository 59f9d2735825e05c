"""Two samples of rows as an exact kernel sees them: by coordinates, or only by their dot products.

A chain hands a pair from step to step. A scaler returns new coordinates; a sampler returns the Gram matrix of
its kernel, and what follows sees dot products in the kernel's feature space, which is all that a distance or
a dot-product kernel needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from kafeat.types import Floats


def distances(x: Floats, y: Floats, metric: Literal["sqeuclidean", "cityblock"]) -> Floats:
    """Distances (n, m) between rows x (n, d) and y (m, d), by differences."""
    # Imported here: a transform needs no exact kernel, and SciPy would be half of its start.
    from scipy.spatial.distance import cdist

    result: Floats = cdist(x, y, metric)
    return result


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
        """‖x_i − y_j‖², (n, m), by differences: no cancellation."""
        return distances(self.x, self.y, "sqeuclidean")


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
