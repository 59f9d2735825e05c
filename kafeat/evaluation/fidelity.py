"""The error of a map against its exact kernel."""

from __future__ import annotations

import numpy as np

from kafeat.types import Floats

_SMALL = 300


def relative_frobenius(K: Floats, Z: Floats) -> float:
    """‖K − ZZᵀ‖_F/‖K‖_F of the exact kernel K (n, n) and features Z (n, D)."""
    return _ratio(float(np.linalg.norm(Z @ Z.T - K)), float(np.linalg.norm(K)))


def fidelity(K: Floats, Z: Floats) -> dict[str, float]:
    """Errors of K̂ = ZZᵀ against the exact kernel K (n, n), on features Z (n, D); all float64.

    relative_frobenius ‖K − K̂‖_F/‖K‖_F, relative_spectral ‖K − K̂‖₂/‖K‖₂, and over all entries of K̂ − K:
    max_abs_error, mean_abs_error and bias, the mean with its sign.
    """
    error = Z @ Z.T
    error -= K
    return {
        "relative_frobenius": _ratio(float(np.linalg.norm(error)), float(np.linalg.norm(K))),
        "relative_spectral": _ratio(_spectral_norm(error), _spectral_norm(K)),
        "max_abs_error": float(np.abs(error).max()),
        "mean_abs_error": float(np.abs(error).mean()),
        "bias": float(error.mean()),
    }


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
