"""A partial Cholesky factor K ≈ F Fᵀ that grows by pivots: what pivoted selectors share."""

from __future__ import annotations

import numpy as np

from kafeat.maths.nystroem.landmarks.fit_sample import FitSample, Indices
from kafeat.types import Floats


class PartialCholesky:
    """F (n, m) of some rows of the sample, and what it leaves of the diagonal: `left` = diag(K − F Fᵀ)."""

    def __init__(self, view: FitSample, rows: Indices, m: int) -> None:
        self._view, self._rows = view, rows
        # By columns: those that are there are one block of memory.
        self._F = np.empty((len(rows), m), dtype=view.X.dtype, order="F")
        self._size = 0
        self.left = np.maximum(view.diagonal(rows).astype(np.float64), 0.0)
        # Below, what is left is rounding: of n·eps-sized sums.
        self.noise = 16.0 * float(np.finfo(view.X.dtype).eps) * float(self.left.max(initial=0.0))

    def residual(self, pivots: Indices) -> Floats:
        """(K − F Fᵀ) between the pivots, float64."""
        own = self._F[pivots, : self._size].astype(np.float64)
        K = self._view.kernel(self._rows[pivots], self._rows[pivots]).astype(np.float64)
        return K - own @ own.T

    def add(self, pivots: Indices, root: Floats) -> None:
        """Grow by pivots, `root` being the lower Cholesky factor of their residual."""
        from scipy.linalg import solve_triangular

        start, stop = self._size, self._size + len(pivots)
        columns = self._view.kernel(self._rows, self._rows[pivots])
        columns -= self._F[:, :start] @ self._F[pivots, :start].T
        new = solve_triangular(root, columns.T.astype(np.float64), lower=True, overwrite_b=True)
        self._F[:, start:stop] = new.T
        self.left -= np.einsum("ij,ij->j", new, new)
        self.left[self.left < self.noise] = 0.0
        self.left[pivots] = 0.0
        self._size = stop
