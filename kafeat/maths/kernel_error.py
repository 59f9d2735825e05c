"""The error of an approximate kernel matrix: of its entries, its distances and its principal components."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kafeat.errors import DataError
from kafeat.types import Floats

# Up to this size, all eigenvalues of a matrix are computed.
_SMALL = 300


def power_of_two(sizes: ArrayLike) -> Floats:
    """Return the largest power of two up to each size, and 1 for 0. Dividing by it only changes the exponent."""
    sizes = np.asarray(sizes, dtype=np.float64)
    return np.where(sizes > 0.0, np.ldexp(1.0, np.frexp(sizes)[1] - 1), 1.0)


def relative_frobenius(K: Floats, Z: Floats) -> float:
    """Return ‖K − ZZᵀ‖_F/‖K‖_F for the exact kernel K (n, n) and features Z (n, D)."""
    error, K, _ = error_in_units(K, Z)
    return relative_size(float(np.linalg.norm(error)), float(np.linalg.norm(K)))


def error_in_units(K: Floats, Z: Floats) -> tuple[Floats, Floats, float]:
    """Return K̂ − K and K, both divided by a unit near their largest entry, and the unit. Their squares fit float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        error = Z @ Z.T
        error -= K
    if not np.isfinite(error).all():
        raise DataError(
            "expected features whose dot products float64 can hold, got larger ones: scale the input"
        )
    unit = float(power_of_two(max(np.abs(error).max(), np.abs(K).max())))
    return error / unit, K / unit, unit


def relative_size(error: float, size: float) -> float:
    """Return error / size. For size 0 (a kernel of 0 on these rows), an error of 0 gives 0, and any other ∞."""
    return error / size if size > 0.0 else (0.0 if error == 0.0 else float("inf"))


def kernel_error(K: Floats, Z: Floats) -> dict[str, float]:
    """Return the errors of K̂ = ZZᵀ, with features Z (n, D), against the exact kernel K (n, n), all float64.

    They are relative_frobenius ‖K − K̂‖_F/‖K‖_F, relative_spectral ‖K − K̂‖₂/‖K‖₂, and, over all entries of K̂ − K,
    max_abs_error, mean_abs_error and bias, the signed mean.
    """
    error, K, unit = error_in_units(K, Z)
    return {
        "relative_frobenius": relative_size(float(np.linalg.norm(error)), float(np.linalg.norm(K))),
        "relative_spectral": relative_size(spectral_norm(error), spectral_norm(K)),
        "max_abs_error": unit * float(np.abs(error).max()),
        "mean_abs_error": unit * float(np.abs(error).mean()),
        "bias": unit * float(error.mean()),
    }


def spectral_norm(symmetric: Floats) -> float:
    """Return the largest |eigenvalue|, by Lanczos iteration for a large matrix."""
    if len(symmetric) < _SMALL or not symmetric.any():
        return float(np.abs(np.linalg.eigvalsh(symmetric)).max())
    from scipy.sparse.linalg import eigsh

    start = np.random.default_rng(0).standard_normal(len(symmetric))
    return float(np.abs(eigsh(symmetric, k=1, which="LM", v0=start, return_eigenvectors=False))[0])


def distortion(K: Floats, Z: Floats) -> dict[str, float]:
    """Return the maximum and mean of |‖z(x) − z(y)‖²/‖x − y‖² − 1| over all pairs of rows, and a bound ε.

    K (n, n) are the exact dot products. By the lemma of Johnson and Lindenstrauss, ε is the smallest number with D ≥ 4
    ln n/(ε²/2 − ε³/3), or 1 if there is none.
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
    """Return the smallest ε in (0, 1) with D ≥ 4 ln n/(ε²/2 − ε³/3), or 1 if there is none.

    3ε² − 2ε³ = c has the solution ε = 1/2 − sin(arcsin(1 − 2c)/3).
    """
    c = 24.0 * np.log(max(n, 2)) / D
    return float(0.5 - np.sin(np.arcsin(1.0 - 2.0 * c) / 3.0)) if c < 1.0 else 1.0


def _squared_distances(G: Floats) -> Floats:
    norms = G.diagonal()
    return np.maximum(norms[:, None] + norms[None, :] - 2.0 * G, 0.0)


def kernel_pca(K: Floats, Z: Floats) -> dict[str, float]:
    """Compare components Z (n, r) with exact kernel PCA of the centred kernel K (n, n) of the same rows.

    `kernel_pca_error_least` is the relative Frobenius error of the best matrix of rank r, `kernel_pca_spectrum` is
    Σ|λ̂_i − λ_i|/Σλ_i over the r largest eigenvalues, and `kernel_pca_subspace` the mean cos² of the angles between the
    spaces of the r leading eigenvectors: 1 if they are the same.
    """
    values, vectors = np.linalg.eigh(K)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    basis, singular, _ = np.linalg.svd(Z, full_matrices=False)
    r = int((singular > singular.max(initial=0.0) * len(Z) * np.finfo(np.float64).eps).sum())
    size, total = float(np.linalg.norm(values)), float(values[:r].sum())
    if not r or not total:
        return {"kernel_pca_error_least": 0.0, "kernel_pca_spectrum": 0.0, "kernel_pca_subspace": 1.0}
    return {
        "kernel_pca_error_least": float(np.linalg.norm(values[r:])) / size,
        "kernel_pca_spectrum": float(np.abs(singular[:r] ** 2 - values[:r]).sum()) / total,
        "kernel_pca_subspace": float(np.square(vectors[:, :r].T @ basis[:, :r]).sum()) / r,
    }
