"""The error of a map, and of single steps of it, against the exact kernel."""

from __future__ import annotations

import numpy as np

from kafeat.chain.chain import Chain, exact_inputs
from kafeat.contract.kernel_inputs import Gram
from kafeat.contract.tile import InputRows
from kafeat.maths.kernel_error import error_in_units, relative_size
from kafeat.types import Floats

_SMALL = 300


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


def error_curve(chain: Chain, X: InputRows) -> tuple[Floats, Floats, Floats] | None:
    """Return log(y/x), the closed-form error of the first homogeneous map there, and the weight of the ratio in X."""
    for index, fitted in enumerate(chain.steps):
        if fitted.step.kind == "homogeneous":
            return fitted.step.error_curve(fitted.state, chain.before(index, X))  # type: ignore[attr-defined]  # the kind says so
    return None


def closed_form(chain: Chain, X: InputRows) -> dict[str, float]:
    """Return the largest and the mean closed-form error of a homogeneous map over the ratios of rows X."""
    curve = error_curve(chain, X)
    if curve is None:
        return {}
    _, error, weights = curve
    return {
        "closed_form_error_max": float(np.abs(error).max()),
        "closed_form_error_mean": float(weights @ np.abs(error) / weights.sum()),
    }


def kernel_before_pca(chain: Chain, X: InputRows) -> Floats | None:
    """Return the centred exact kernel (n, n) of rows X of the steps before a last step pca; None without a map there.

    Principal components of a map's features are those of its kernel, so this is what they stand for.
    """
    if chain.steps[-1].step.kind != "pca":
        return None
    inputs = Chain(chain.steps[:-1]).exact_pair(exact_inputs(X, X))
    if not isinstance(inputs, Gram):
        return None
    K, means = inputs.dots, inputs.dots.mean(axis=0)
    centred: Floats = K - means - means[:, None] + means.mean()
    return centred


def components(chain: Chain, Z: Floats) -> Floats:
    """Return components Z (n, r) of pca centred on these rows, and in the units of the kernel where pca whitens."""
    scaled = Z * chain.steps[-1].state["scale"]
    centred: Floats = scaled - scaled.mean(axis=0)
    return centred


def kernel_pca(K: Floats, Z: Floats) -> dict[str, float]:
    """Compare components Z (n, r) with exact kernel PCA: of the centred kernel K (n, n) of the same rows.

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
