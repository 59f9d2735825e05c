"""The kernel matrix of all rows as a kernel of their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kafeat.model.feature_map import FeatureMap
from kafeat.types import Array, Floats


@dataclass(frozen=True, eq=False)
class KernelMatrix:
    """Values (n, n) of a kernel; called with numbers of rows (k, 1) and (m, 1), it returns their block (k, m)."""

    values: Floats
    __name__: ClassVar[str] = "precomputed"

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        return self.columns(X, Y[:, 0].astype(np.int64))

    def columns(self, X: Floats, rows: Array) -> Floats:
        """Return the kernel of the rows numbered in X (k, 1) with `rows` (m,): (k, m)."""
        block: Floats = self.values[np.ix_(X[:, 0].astype(np.int64), rows)]
        return block


def kernel_matrix(fm: FeatureMap) -> KernelMatrix | None:
    """Return the matrix that a map of row numbers is made of; None for other maps."""
    kernel = getattr(fm.chain.steps[0].step, "kernel", None)
    return kernel if isinstance(kernel, KernelMatrix) else None
