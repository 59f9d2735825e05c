"""Ridge regression by one eigendecomposition, of features or of a kernel, its penalty chosen by leave-one-out.

In the eigenbasis K = UΛUᵀ of the Gram matrix of the training rows, ridge shrinks every direction by s = Λ/(Λ + λ): the
fit is Hy with H = U s Uᵀ, and the residual of row i without row i is (y − Hy)_i/(1 − H_ii), so one decomposition
serves every penalty λ. Features (n, D) with D < n get it from the D × D matrix ZᵀZ.

Source: Hastie, Tibshirani & Friedman 2009, equation 7.64 (leave-one-out of a linear smoother).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafeat.types import Floats

# Relative to the mean eigenvalue, so that one grid serves every kernel.
PENALTIES = 10.0 ** np.arange(-7.0, 2.0)


@dataclass(frozen=True)
class Basis:
    """Eigenvectors on the training rows `train` (n, r), extended to the test rows `test` (t, r), and `values` (r,)."""

    train: Floats
    test: Floats
    values: Floats

    @property
    def mean_value(self) -> float:
        """The mean eigenvalue of the Gram matrix of the training rows: its trace over n."""
        return max(float(self.values.sum()) / len(self.train), float(np.finfo(np.float64).tiny))


def features_basis(Z: Floats, train: int) -> Basis:
    """The basis of features Z (n, D), of which the first `train` rows are for training."""
    if Z.shape[1] >= train:
        return kernel_basis(Z @ Z.T, train)
    values, vectors = _positive(*np.linalg.eigh(Z[:train].T @ Z[:train]))
    basis = Z @ (vectors / np.sqrt(values))
    return Basis(basis[:train], basis[train:], values)


def kernel_basis(K: Floats, train: int) -> Basis:
    """The basis of a kernel matrix K (n, n)."""
    values, vectors = _positive(*np.linalg.eigh(K[:train, :train]))
    return Basis(vectors, K[train:, :train] @ (vectors / values), values)


def _positive(values: Floats, vectors: Floats) -> tuple[Floats, Floats]:
    """Without the directions that are rounding errors."""
    keep = values > len(values) * np.finfo(np.float64).eps * max(float(values[-1]), 0.0)
    return values[keep], vectors[:, keep]


def ridge(basis: Basis, targets: Floats) -> tuple[Floats, float]:
    """Predictions (t, k) for the test rows from targets (n, k), which are centred, and the penalty that was chosen."""
    mean = targets.mean(axis=0)
    y = targets - mean
    rotated = basis.train.T @ y
    errors = []
    penalties = PENALTIES * basis.mean_value
    for penalty in penalties:
        shrink = basis.values / (basis.values + penalty)
        residual = y - basis.train @ (shrink[:, None] * rotated)
        residual /= (1.0 - basis.train**2 @ shrink)[:, None]
        errors.append(float((residual**2).mean()))
    penalty = float(penalties[int(np.argmin(errors))])
    shrink = basis.values / (basis.values + penalty)
    return basis.test @ (shrink[:, None] * rotated) + mean, penalty
