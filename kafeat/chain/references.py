"""References for chains of some kinds besides the exact kernel: closed-form errors, and kernel PCA."""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.chain.chain import Chain, exact_inputs
from kafeat.contract.kernel_inputs import Gram, around_mean
from kafeat.contract.tile import InputRows
from kafeat.types import Floats


def closed_form(chain: Chain, X: InputRows) -> dict[str, float]:
    """Return the largest and the mean closed-form error of the first homogeneous map over the ratios of rows X."""
    for index, fitted in enumerate(chain.steps):
        if fitted.step.kind == "homogeneous":
            step: Any = fitted.step  # which the kind guarantees
            _, error, weights = step.error_curve(fitted.state, chain.before(index, X))
            return {
                "closed_form_error_max": float(np.abs(error).max()),
                "closed_form_error_mean": float(weights @ np.abs(error) / weights.sum()),
            }
    return {}


def kernel_before_pca(chain: Chain, X: InputRows) -> Floats | None:
    """Return the centred exact kernel (n, n) of rows X before a last step pca, or None if there is no map before it.

    Principal components of a map's features approximate those of its kernel.
    """
    if chain.steps[-1].step.kind != "pca":
        return None
    inputs = Chain(chain.steps[:-1]).exact_pair(exact_inputs(X, X))
    return around_mean(inputs.dots)[0] if isinstance(inputs, Gram) else None


def components(chain: Chain, Z: Floats) -> Floats:
    """Return components Z (n, r) of pca, centred on these rows, in the units of the kernel if pca whitens."""
    scaled = Z * chain.steps[-1].state["scale"]
    around: Floats = scaled - scaled.mean(axis=0)
    return around
