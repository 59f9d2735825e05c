"""Matrices that turn kernel values with the landmarks into features, and the choice of the directions to keep."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kafeat.errors import DataError
from kafeat.maths.lapack import top_eigenvectors
from kafeat.maths.nystroem.kernel import CLEARLY
from kafeat.types import Floats

# About how many rows of the sample decide which directions to keep.
_ROWS = 6_000
# Weights are fitted to at least this many rows of the sample, and to this many per column of W. More rows do not help.
_FITTED, _PER_WEIGHT = 2_000, 4
# Candidates for μ in `fitted`, relative to the mean eigenvalue. With μ = ∞, nothing is fitted.
_SHRINK = (1e-3, 1e-2, 1e-1, 1.0, np.inf)


def factor(K: Floats, rcond: float, name: str, clip_negative: bool) -> Floats:
    """Return V_r Λ_r^{−½} (m, r) of the kernel matrix K_mm. `name` is the kernel's name in errors."""
    values, vectors = np.linalg.eigh(K)
    if values[0] < -CLEARLY * values[-1] and not clip_negative:
        raise DataError(
            f"nystroem: kernel {name}: expected a positive semi-definite kernel matrix, got "
            f"eigenvalues from {values[0]:.3g} to {values[-1]:.3g}: choose another kernel, or clip_negative: true"
        )
    return whitening(values, vectors, rcond)


def whitening(values: Floats, vectors: Floats, rcond: float) -> Floats:
    """Return VΛ^{−½} (m, r) by falling eigenvalues, without those of at most rcond·λ_max."""
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = int(np.count_nonzero(values > max(rcond * values[0], 0.0)))
    return vectors[:, :rank] / np.sqrt(values[:rank])


def leading(
    W: Floats, kernel: Callable[[Floats], Floats], X: Floats, size: int, rng: np.random.Generator
) -> Floats:
    """Return W (m, r) rotated to its `size` leading directions, (m, size).

    Rows of the sample decide, because landmarks need not be where the data are. With the first `size` right singular
    vectors V of Z = K_nm W, WV gives the best approximation of ZZᵀ of rank `size` (Pourkamali-Anaraki & Becker 2019;
    Tropp, Yurtsever, Udell & Cevher 2017). A random subset of rows is used, with each landmark as one more row.
    """
    rows = some(X, max(_ROWS, 2 * W.shape[1]), rng)
    Z = kernel(rows) @ W
    return W @ _top(_everywhere(Z.T @ Z, len(X) / len(rows), W), size)


def _everywhere(G: Floats, times: float, W: Floats) -> Floats:
    """Return ZᵀZ, estimated for all rows and landmarks, given G = ZᵀZ for a random subset of one in `times` rows.

    The landmarks add WᵀK²W = Λ, where Λ_ii = 1/‖w_i‖² for the columns w_i of W. The subset may miss a few distant rows,
    and then has nothing in the direction of their kernel. Landmarks near them keep this direction.
    """
    return times * G + np.diag(1.0 / (W**2).sum(axis=0))


def fitted(
    W: Floats,
    kernel: Callable[[Floats], Floats],
    exact: Callable[[Floats], Floats],
    X: Floats,
    size: int,
    rng: np.random.Generator,
) -> Floats:
    """Return W S^{½} (m, size) with weights S for which ZSZᵀ is closer to the sample's kernel than ZZᵀ.

    With G = ZᵀZ = UgUᵀ and the residual E = K − ZZᵀ, S = I + UD(UᵀZᵀEZU)DUᵀ, D = diag(1/(g + μ)): at μ = 0 this S
    minimizes ‖K − ZSZᵀ‖_F, like the U of Wang & Zhang 2013 ("modified Nyström"). So that S does not overfit the sample,
    μ is chosen on rows that S was not fitted on, and may be ∞ (no fit). S is positive semi-definite because E is.
    """
    if not W.shape[1]:  # the kernel of all landmarks is 0
        return W
    rows = some(X, min(_ROWS, max(_FITTED, _PER_WEIGHT * W.shape[1])), rng)
    cut = len(rows) * 3 // 4
    Z, K = kernel(rows) @ W, exact(rows)
    G = Z[:cut].T @ Z[:cut]
    g, U = np.linalg.eigh(G)
    ZU = Z[:cut] @ U
    inner = ZU.T @ (K[:cut, :cut] @ ZU) - np.diag(g**2)
    held, held_out = Z[cut:] @ U, K[cut:, cut:]
    best, error = np.eye(len(g)), np.inf
    for shrink in _SHRINK if g.mean() > 0.0 else ():
        d = 1.0 / (np.maximum(g, 0.0) + shrink * g.mean()) if np.isfinite(shrink) else np.zeros(len(g))
        S = np.eye(len(g)) + d[:, None] * inner * d
        left = float(np.linalg.norm(held_out - held @ S @ held.T)) if len(held) else np.inf
        if left < error:
            best, error = S, left
    values, vectors = np.linalg.eigh((best + best.T) / 2.0)
    root = U @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    everywhere = _everywhere(G, len(X) / cut, W) if cut else G
    return W @ (root @ _top(root.T @ everywhere @ root, size))


def _top(G: Floats, size: int) -> Floats:
    """Return the eigenvectors (D, size) of the largest eigenvalues of G (D, D), the largest first."""
    return top_eigenvectors(G, min(size, len(G)))[:, ::-1]


def some(X: Floats, most: int, rng: np.random.Generator) -> Floats:
    """Return the rows X, or `most` random ones of them if there are more."""
    return X if len(X) <= most else X[rng.choice(len(X), size=most, replace=False)]


def trapezoid(projection: Floats) -> Floats:
    """Return a matrix (m, D) for the same features up to a rotation, with zeros above the diagonal.

    Pᵀ = QR, so P Pᵀ = RᵀR. If m = D, a product with this triangle costs half as much as with P.
    """
    from scipy.linalg import qr

    R: Floats = qr(projection.T, mode="r")[0][: projection.shape[1]]
    # a positive diagonal, as in a Cholesky factor
    R = R * np.where(R.diagonal() < 0.0, -1.0, 1.0)[:, None]
    return np.tril(R.T)


def padded(W: Floats, width: int, symmetric: bool) -> Floats:
    """Return a matrix T (m, width) with T Tᵀ = W Wᵀ, for weights W (m, r).

    With `symmetric`, T is symmetric. Without it, T is lower triangular if m = width. For other m, T is W followed by
    zeros.
    """
    if symmetric:
        # W = VΛ^{−½}, and V is W with columns of length 1, so T = VΛ^{−½}Vᵀ
        W = W @ (W / np.linalg.norm(W, axis=0)).T
    elif len(W) == width:
        W = trapezoid(W)
    T = np.zeros((len(W), width))
    T[:, : W.shape[1]] = W
    return T
