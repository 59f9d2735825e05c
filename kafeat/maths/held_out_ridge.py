"""Ridge regression in memory. Held-out rows choose its penalty and give its error, by which steps compare maps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafeat.contract.folds import RowKeys
from kafeat.maths.ridge import LinearModel
from kafeat.types import Array, Floats

HELD_OUT_PENALTIES = 10.0 ** np.arange(-9.0, 1.5, 0.5)
"""Penalties relative to the mean eigenvalue of the centred Gram matrix."""

_HELD_OUT = 0.2


@dataclass(frozen=True)
class HeldOutRidge(LinearModel):
    """A linear model, and its squared error on every held-out row, (n_held,)."""

    errors: Floats

    def residuals(self, Z: Floats, Y: Floats) -> Floats:
        """Return the squared error (n,) of each row of features Z (n, D) with targets Y (n, k)."""
        return ((self(Z) - Y) ** 2).sum(axis=1)

    @property
    def error(self) -> float:
        """Return the mean squared error on the held-out rows."""
        return float(self.errors.mean())


def fit_held_out_ridge(
    Z: Floats, Y: Floats, held_Z: Floats, held_Y: Floats, least_penalty: float = 0.0
) -> HeldOutRidge:
    """Fit ridge regression of Y (n, k) on Z (n, D). The penalty, at least `least_penalty`, is chosen on held-out rows.

    One eigendecomposition of the smaller of ZᵀZ and ZZᵀ serves all penalties (Hastie, Tibshirani & Friedman 2009,
    section 3.4.1 and 12.3.7).
    """
    middle, level = Z.mean(axis=0), Y.mean(axis=0)
    A, B = Z - middle, Y - level
    del Z
    wide = A.shape[1] > len(A)
    values, vectors = np.linalg.eigh(A @ A.T if wide else A.T @ A)
    values = np.maximum(values, 0.0)
    unit = float(values.mean()) or 1.0
    turned = vectors.T @ (B if wide else A.T @ B)
    back = A.T @ vectors if wide else vectors
    del A  # free it: A is as large as the features
    held = (held_Z - middle) @ back
    residual = held_Y - level
    penalties = HELD_OUT_PENALTIES[least_penalty <= HELD_OUT_PENALTIES] * unit
    errors = [((held @ (turned / (values + p)[:, None]) - residual) ** 2).sum(axis=1) for p in penalties]
    best = int(np.argmin([e.mean() for e in errors]))
    weights = back @ (turned / (values + penalties[best])[:, None])
    return HeldOutRidge(weights, level - middle @ weights, float(penalties[best]), errors[best])


def hold_out(n: int, rng: np.random.Generator, most: int, keys: RowKeys | None = None) -> tuple[Array, Array]:
    """Draw at most `most` of n rows. Return the row numbers to fit on, and those to hold out, about a fifth.

    With `keys`, whole groups or the latest rows are held out.
    """
    order = rng.permutation(n)[:most]
    n_held = int(len(order) * _HELD_OUT)
    if keys is None or not n_held:
        return order[n_held:], order[:n_held]
    held = keys.select(order).last(n_held, rng)
    return order[~held], order[held]


def clearly_better(errors: Floats, others: Floats) -> bool:
    """Return True if the mean of `errors` is below that of `others`, for the same rows, by over two standard errors."""
    gain = others - errors
    noise = float(gain.std()) / float(np.sqrt(len(gain)))
    return float(gain.mean()) > 2.0 * noise
