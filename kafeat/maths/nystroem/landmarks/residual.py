"""Landmarks where a first predictor of the label is wrong."""

from __future__ import annotations

import numpy as np

from kafeat.maths.nystroem.landmarks.duals import nystroem_features
from kafeat.maths.nystroem.landmarks.fit_sample import FitSample, Indices, draw, fill_up
from kafeat.maths.task import targets_to_learn
from kafeat.types import Floats

# Of the mean eigenvalue of ZᵀZ.
_PENALTY = 1e-4


def residual(view: FitSample, m: int, rng: np.random.Generator) -> Indices:
    """Half of the rows uniformly, and half with P(i) ∝ Σ_c |y_ic − f_c(x_i)|, with ridge f on features of the first.

    All rows differ. Classes count as targets of 0 and 1, one column each. The features are (n, m/2): where that is more
    than 2²⁶ numbers, a random subset of the rows takes part.
    """
    if view.label is None:
        raise TypeError("residual: a config without a label has to be refused before the fit")
    every = np.arange(len(view.X))
    first = np.sort(rng.choice(len(every), size=max(1, m // 2), replace=False))
    rows = view.rows(len(first), rng)
    weights = _residuals(nystroem_features(view, rows, first), targets_to_learn(view.label)[rows])
    weights[np.isin(rows, first)] = 0.0
    others, size = np.setdiff1d(every, first), m - len(first)
    return np.concatenate([first, fill_up(rows[draw(weights, size, rng)], others, size, rng)])


def _residuals(Z: Floats, Y: Floats) -> Floats:
    """Return Σ_c |y_ic − f_c| of every row, (n,), with ridge f on features Z (n, D) for targets Y (n, k)."""
    A, B = (Z - Z.mean(axis=0)).astype(np.float64), Y - Y.mean(axis=0)
    gram = A.T @ A
    gram.flat[:: len(gram) + 1] += _PENALTY * np.trace(gram) / max(len(gram), 1) + np.finfo(np.float64).tiny
    residuals: Floats = np.abs(B - A @ np.linalg.solve(gram, A.T @ B)).sum(axis=1)
    return residuals
