"""Choose the features that a sparse linear model uses."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import MultiTaskLasso

from kafeat.errors import DataError, UsageError
from kafeat.types import Array, Floats

# Maximum number of rows to fit the model on. Finding the strong features does not need more.
MOST_ROWS = 20_000
# Decreasing penalties, from one that uses no feature, until enough features are in use.
_PATH = np.geomspace(1.0, 1e-5, 60)[1:]


def sparse_outputs(Z: Floats, Y: Floats, keep: int) -> Array:
    """Return at most `keep` columns of Z (n, D), ascending, chosen by least squares with a group ℓ1 penalty.

    The model of the targets Y (n, k) is min_W ‖Y − ZW‖²/2n + α Σ_j ‖w_j‖: a feature is used for all targets or for
    none. α decreases until `keep` features are used. The `keep` features with the largest ‖w_j‖ · s_j remain, with s_j
    the standard deviation of column j. The problem depends only on ZᵀZ and ZᵀY, so it is solved on D equivalent rows.

    Source: Yuan & Lin 2006 (groups); Tibshirani 1996.
    """
    D = Z.shape[1]
    if keep >= D:
        raise UsageError(f"prune.keep: expected fewer than the {D:,} outputs of the map, got {keep:,}")
    Z = Z.astype(np.float64) - Z.mean(axis=0, dtype=np.float64)
    Y = Y - Y.mean(axis=0)
    spread = Z.std(axis=0)
    scale = np.where(spread > 0.0, spread, 1.0)
    Z /= scale
    values, vectors = np.linalg.eigh(Z.T @ Z)
    used = values > D * np.finfo(np.float64).eps * max(float(values[-1]), 0.0)
    roots, vectors = np.sqrt(values[used]), vectors[:, used]
    rows = roots[:, None] * vectors.T
    targets = (vectors.T @ (Z.T @ Y)) / roots[:, None]
    if not used.any():
        raise DataError("prune: expected outputs that differ from row to row, got none")
    norms = _sparse_norms(rows, targets, keep)
    strongest = np.argsort(-norms, kind="stable")[:keep]
    kept = np.sort(strongest[norms[strongest] > 0.0]).astype(np.int64)
    if not len(kept):
        raise DataError("prune: expected outputs that a linear model of the label uses, got none")
    return kept


def _sparse_norms(rows: Floats, targets: Floats, keep: int) -> Floats:
    """Return ‖w_j‖ of each feature for the largest penalty that uses at least `keep` features, or the last one."""
    largest = float(np.linalg.norm(rows.T @ targets, axis=1).max()) / len(rows)
    model = MultiTaskLasso(fit_intercept=False, warm_start=True, max_iter=300, tol=1e-3)
    with warnings.catch_warnings():
        # The strong features show long before the solver converges.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for share in _PATH:
            model.alpha = largest * share
            norms: Floats = np.linalg.norm(model.fit(rows, targets).coef_, axis=0)
            if (norms > 0.0).sum() >= keep:
                break
    return norms
