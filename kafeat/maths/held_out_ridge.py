"""Ridge regression on a few thousand rows in memory, with the penalty that predicts held-out rows best.

Steps that learn from a label use it to compare choices with each other, on rows that neither was fitted on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafeat.types import Array, Floats

PENALTIES = 10.0 ** np.arange(-9.0, 1.5, 0.5)
"""Penalties relative to the mean eigenvalue of the centred Gram matrix."""

_HELD_OUT = 0.2


@dataclass(frozen=True)
class HeldOutRidge:
    """ŷ = Zw + intercept, with w (D, k), and the squared error of every held-out row, (n_held,)."""

    weights: Floats
    intercept: Floats
    penalty: float
    errors: Floats

    def residuals(self, Z: Floats, Y: Floats) -> Floats:
        """Return the squared error of every row of features Z (n, D) with targets Y (n, k), (n,)."""
        squared: Floats = ((Z @ self.weights + self.intercept - Y) ** 2).sum(axis=1)
        return squared

    @property
    def error(self) -> float:
        """Return the mean squared error on the held-out rows."""
        return float(self.errors.mean())


def fit_held_out_ridge(
    Z: Floats, Y: Floats, held_Z: Floats, held_Y: Floats, least_penalty: float = 0.0
) -> HeldOutRidge:
    """Fit Y (n, k) on features Z (n, D), and choose the penalty, at least the one given, on held-out rows.

    One eigendecomposition of the smaller of ZᵀZ and ZZᵀ gives every penalty: Hastie, Tibshirani & Friedman 2009,
    section 3.4.1 and 12.3.7.
    """
    middle, level = Z.mean(axis=0), Y.mean(axis=0)
    A, B = Z - middle, Y - level
    wide = A.shape[1] > len(A)
    values, vectors = np.linalg.eigh(A @ A.T if wide else A.T @ A)
    values = np.maximum(values, 0.0)
    unit = float(values.mean()) or 1.0
    turned = vectors.T @ (B if wide else A.T @ B)
    held = (held_Z - middle) @ (A.T @ vectors if wide else vectors)
    residual = held_Y - level
    penalties = PENALTIES[least_penalty <= PENALTIES] * unit
    errors = [((held @ (turned / (values + p)[:, None]) - residual) ** 2).sum(axis=1) for p in penalties]
    best = int(np.argmin([e.mean() for e in errors]))
    weights = vectors @ (turned / (values + penalties[best])[:, None])
    if wide:
        weights = A.T @ weights
    return HeldOutRidge(weights, level - middle @ weights, float(penalties[best]), errors[best])


def hold_out(n: int, rng: np.random.Generator, most: int) -> tuple[Array, Array]:
    """Draw at most `most` of n rows, and return the numbers of those to fit on and of a fifth to hold out."""
    order = rng.permutation(n)[:most]
    n_held = int(len(order) * _HELD_OUT)
    return order[n_held:], order[:n_held]


def clearly_better(errors: Floats, others: Floats) -> bool:
    """Return true if errors of the same rows are lower by more than two standard errors of the mean difference."""
    gain = others - errors
    noise = float(gain.std()) / float(np.sqrt(len(gain)))
    return float(gain.mean()) > 2.0 * noise
