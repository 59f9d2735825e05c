"""Further references for the errors of some chains, in addition to the exact kernel: closed forms, and kernel PCA."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.chain.chain import Chain, exact_inputs
from kafeat.contract.kernel_inputs import Gram, around_mean
from kafeat.contract.tile import InputRows
from kafeat.types import Floats


def closed_form(chain: Chain, X: InputRows) -> dict[str, float]:
    """Return the largest and the mean error of the first homogeneous map for the ratios y/x of entries of X, or {}."""
    for index, fitted in enumerate(chain.steps):
        if fitted.step.kind == "homogeneous":
            step: Any = fitted.step  # a `Homogeneous`, which this room must not import
            _, error, weights = step.error_curve(fitted.state, chain.before(index, X))
            return {
                "closed_form_error_max": float(np.abs(error).max()),
                "closed_form_error_mean": float(weights @ np.abs(error) / weights.sum()),
            }
    return {}


def kernel_before_pca(chain: Chain, X: InputRows) -> Floats | None:
    """Return the centred exact kernel (n, n) of rows X before pca, or None if pca is not last or has no map before it.

    Principal components of a map's features approximate the principal components of its kernel.
    """
    if chain.steps[-1].step.kind != "pca":
        return None
    inputs = Chain(chain.steps[:-1]).exact_pair(exact_inputs(X, X))
    return around_mean(inputs.dots)[0] if isinstance(inputs, Gram) else None


def components(chain: Chain, Z: Floats) -> Floats:
    """Return the outputs Z (n, r) of pca with the scale of `whiten` undone, minus their means over these rows."""
    scaled = Z * chain.steps[-1].state["scale"]
    around: Floats = scaled - scaled.mean(axis=0)
    return around
