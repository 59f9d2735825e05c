"""The error of a map against its exact kernel."""

from __future__ import annotations

import numpy as np

from kafeat.errors import DataError
from kafeat.types import Floats
from kafeat.units import power_of_two

_SMALL = 300


def relative_frobenius(K: Floats, Z: Floats) -> float:
    """‖K − ZZᵀ‖_F/‖K‖_F of the exact kernel K (n, n) and features Z (n, D)."""
    error, K, _ = _in_units(K, Z)
    return _ratio(float(np.linalg.norm(error)), float(np.linalg.norm(K)))


def fidelity(K: Floats, Z: Floats) -> dict[str, float]:
    """Errors of K̂ = ZZᵀ against the exact kernel K (n, n), on features Z (n, D); all float64.

    relative_frobenius ‖K − K̂‖_F/‖K‖_F, relative_spectral ‖K − K̂‖₂/‖K‖₂, and over all entries of K̂ − K:
    max_abs_error, mean_abs_error and bias, the mean with its sign.
    """
    error, K, unit = _in_units(K, Z)
    return {
        "relative_frobenius": _ratio(float(np.linalg.norm(error)), float(np.linalg.norm(K))),
        "relative_spectral": _ratio(_spectral_norm(error), _spectral_norm(K)),
        "max_abs_error": unit * float(np.abs(error).max()),
        "mean_abs_error": unit * float(np.abs(error).mean()),
        "bias": unit * float(error.mean()),
    }


def _in_units(K: Floats, Z: Floats) -> tuple[Floats, Floats, float]:
    """K̂ − K and K in units of their largest entry, whose squares float64 holds, and the unit."""
    with np.errstate(over="ignore", invalid="ignore"):
        error = Z @ Z.T
        error -= K
    if not np.isfinite(error).all():
        raise DataError(
            "expected features whose dot products float64 can hold, got larger ones: scale the input"
        )
    unit = float(power_of_two(max(np.abs(error).max(), np.abs(K).max())))
    return error / unit, K / unit, unit


def _spectral_norm(symmetric: Floats) -> float:
    """The largest |eigenvalue|; by Lanczos where the matrix is large, as one number does not need them all."""
    if len(symmetric) < _SMALL or not symmetric.any():
        return float(np.abs(np.linalg.eigvalsh(symmetric)).max())
    from scipy.sparse.linalg import eigsh

    start = np.random.default_rng(0).standard_normal(len(symmetric))
    return float(np.abs(eigsh(symmetric, k=1, which="LM", v0=start, return_eigenvectors=False))[0])


def _ratio(error: float, size: float) -> float:
    # A kernel that is 0 on these rows has no relative error, unless the map gets it wrong.
    return error / size if size > 0.0 else (0.0 if error == 0.0 else float("inf"))
