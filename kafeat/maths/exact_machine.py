"""Squared errors of kernel ridge on held-out rows, for every penalty, from one eigendecomposition of the kernel.

With the centred kernel K̃ = UΛUᵀ, the coefficients are U(Λ + λ)⁻¹UᵀY, in which only Λ + λ depends on the penalty λ.
"""

from __future__ import annotations

import numpy as np

from kafeat.contract.kernel_inputs import around_mean
from kafeat.maths.ridge import PENALTIES
from kafeat.types import Floats


def errors_of_others(K: Floats, Y: Floats, across: Floats, held: Floats) -> Floats:
    """Return the squared errors of kernel ridge on m held-out rows for each of p penalties, (p, m).

    K (n, n) is the kernel matrix of the training rows, and Y (n, k) are their targets. `across` (m, n) are the kernel
    values between held-out and training rows, and `held` (m, k) the targets of held-out rows. Penalties are relative to
    the mean eigenvalue of the centred kernel.
    """
    around, means = around_mean(K)
    values, vectors = np.linalg.eigh(around)
    least = len(K) * np.finfo(np.float64).eps * max(float(values[-1]), np.finfo(np.float64).tiny)
    kept = values > least
    values, unit, level = values[kept], float(values[kept].sum()) / len(K) or 1.0, Y.mean(axis=0)
    turned = vectors[:, kept].T @ (Y - level)
    # A new row's own mean need not be subtracted: it cancels, because eigenvectors are orthogonal to (1, …, 1).
    projected = (across - means) @ vectors[:, kept]
    predicted = (projected @ (turned / (values + penalty * unit)[:, None]) for penalty in PENALTIES)
    return np.array([np.square(one + level - held).sum(axis=1) for one in predicted])
