"""Bounds of theorems for the error of a map, beside the error that was measured."""

from __future__ import annotations

import numpy as np

from kafeat.contract.step import Scaler
from kafeat.evaluation.kernel_error import spectral_norm
from kafeat.evaluation.records import KnownBounds
from kafeat.model.feature_map import FeatureMap
from kafeat.types import Floats


def known_bounds(fm: FeatureMap, K: Floats) -> KnownBounds:
    """Return the bounds of the mean relative errors of a map, if theorems give them; K (n, n) is its exact kernel.

    They are those of the last step, if all steps before it are scalers, and no outputs were left out.
    """
    *before, last = fm.chain.steps
    if fm.chain.outputs is not None or not all(isinstance(one.step, Scaler) for one in before):
        return {}
    with np.errstate(over="ignore", invalid="ignore"):
        bounds = last.step.error_bounds(last.state, K)
        if bounds is None:
            return {}
        frobenius, spectral = float(np.linalg.norm(K)), spectral_norm(K)
    if not (0.0 < frobenius < np.inf and 0.0 < spectral < np.inf):
        return {}
    return {
        "bound_frobenius": float(bounds.frobenius / frobenius),
        "bound_spectral": float(bounds.spectral / spectral),
    }
