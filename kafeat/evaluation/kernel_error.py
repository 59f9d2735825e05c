"""The error of a map against its exact kernel."""

from __future__ import annotations

import numpy as np

from kafeat.errors import DataError
from kafeat.evaluation.records import Distortion, KernelError
from kafeat.maths.units import power_of_two
from kafeat.types import Floats

_SMALL = 300


def relative_frobenius(K: Floats, Z: Floats) -> float:
    """Return ‖K − ZZᵀ‖_F/‖K‖_F for the exact kernel K (n, n) and features Z (n, D)."""
    error, K, _ = _in_units(K, Z)
    return _ratio(float(np.linalg.norm(error)), float(np.linalg.norm(K)))


def kernel_error(K: Floats, Z: Floats) -> KernelError:
    """Return the errors of K̂ = ZZᵀ, with features Z (n, D), against the exact kernel K (n, n), all float64.

    They are relative_frobenius ‖K − K̂‖_F/‖K‖_F, relative_spectral ‖K − K̂‖₂/‖K‖₂, and, over all entries of K̂ − K,
    max_abs_error, mean_abs_error and bias, the signed mean.
    """
    error, K, unit = _in_units(K, Z)
    return {
        "relative_frobenius": _ratio(float(np.linalg.norm(error)), float(np.linalg.norm(K))),
        "relative_spectral": _ratio(spectral_norm(error), spectral_norm(K)),
        "max_abs_error": unit * float(np.abs(error).max()),
        "mean_abs_error": unit * float(np.abs(error).mean()),
        "bias": unit * float(error.mean()),
    }


def _in_units(K: Floats, Z: Floats) -> tuple[Floats, Floats, float]:
    """Return K̂ − K and K divided by the size of their largest entry, so that squares fit float64, and this size."""
    with np.errstate(over="ignore", invalid="ignore"):
        error = Z @ Z.T
        error -= K
    if not np.isfinite(error).all():
        raise DataError(
            "expected features whose dot products float64 can hold, got larger ones: scale the input"
        )
    unit = float(power_of_two(max(np.abs(error).max(), np.abs(K).max())))
    return error / unit, K / unit, unit


def spectral_norm(symmetric: Floats) -> float:
    """Return the largest |eigenvalue|, by Lanczos iteration for a large matrix."""
    if len(symmetric) < _SMALL or not symmetric.any():
        return float(np.abs(np.linalg.eigvalsh(symmetric)).max())
    from scipy.sparse.linalg import eigsh

    start = np.random.default_rng(0).standard_normal(len(symmetric))
    return float(np.abs(eigsh(symmetric, k=1, which="LM", v0=start, return_eigenvectors=False))[0])


def _ratio(error: float, size: float) -> float:
    # If the kernel is 0 on these rows, a map without error has the relative error 0.
    return error / size if size > 0.0 else (0.0 if error == 0.0 else float("inf"))


def distortion(K: Floats, Z: Floats) -> Distortion:
    """Return the maximum and mean of |‖z(x) − z(y)‖²/‖x − y‖² − 1| over all pairs of rows, and a bound ε.

    K (n, n) are the exact dot products. The lemma of Johnson and Lindenstrauss gives the smallest ε with
    D ≥ 4 ln n/(ε²/2 − ε³/3). A bound of 1 is void.
    """
    pairs = np.triu_indices(len(K), 1)
    before, after = (_squared_distances(G)[pairs] for G in (K, Z @ Z.T))
    apart = before > 1e-12 * max(float(before.max(initial=0.0)), float(np.finfo(float).tiny))
    moved = np.abs(after[apart] / before[apart] - 1.0)
    return {
        "distortion_max": float(moved.max(initial=0.0)),
        "distortion_mean": float(moved.mean()) if len(moved) else 0.0,
        "distortion_bound": jl_eps(len(K), Z.shape[1]),
    }


def jl_eps(n: int, D: int) -> float:
    """Return the smallest ε in (0, 1) with D ≥ 4 ln n/(ε²/2 − ε³/3), by bisection, or 1 if there is none."""
    low, high = 0.0, 1.0
    needed = 4.0 * np.log(max(n, 2))
    if needed > D * (1.0 / 2.0 - 1.0 / 3.0):
        return 1.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if D * (middle**2 / 2.0 - middle**3 / 3.0) < needed else (low, middle)
    return high


def _squared_distances(G: Floats) -> Floats:
    norms = G.diagonal()
    return np.maximum(norms[:, None] + norms[None, :] - 2.0 * G, 0.0)
