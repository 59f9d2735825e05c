"""Turn kernel values with the landmarks into features and back, and choose and weight the directions to keep."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kafeat.errors import DataError
from kafeat.maths.lapack import top_eigenvectors
from kafeat.maths.nystroem.kernel import CLEARLY
from kafeat.types import Floats

# Rows of the sample on which the directions are chosen.
_ROWS = 6_000
# Rows of the sample, at least and per weight, to which weights are fitted. More do not lower the error.
_FITTED, _PER_WEIGHT = 2_000, 4
# Shares of the mean eigenvalue by which fitted weights are shrunk. The last one means no fit.
_SHRINK = (1e-3, 1e-2, 1e-1, 1.0, np.inf)


def factor(K: Floats, rcond: float, name: str, clip_negative: bool) -> Floats:
    """Return V_r Λ_r^{−½} (m, r) of K_mm, which errors call the matrix of the kernel `name`."""
    values, vectors = np.linalg.eigh(K)
    if values[0] < -CLEARLY * values[-1] and not clip_negative:
        raise DataError(
            f"nystroem: kernel {name}: expected a positive semi-definite kernel matrix, got the "
            f"eigenvalue {values[0]:.3g} beside {values[-1]:.3g}: choose another kernel, or clip_negative: true"
        )
    return whitening(values, vectors, rcond)


def whitening(values: Floats, vectors: Floats, rcond: float) -> Floats:
    """Return VΛ^{−½} (m, r), largest eigenvalues first, without those at or below rcond·λ_max."""
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = int(np.count_nonzero(values > max(rcond * values[0], 0.0)))
    return vectors[:, :rank] / np.sqrt(values[:rank])


def leading(
    W: Floats, kernel: Callable[[Floats], Floats], X: Floats, size: int, rng: np.random.Generator
) -> Floats:
    """Return W (m, r) rotated to its `size` leading directions, (m, size).

    They lead on rows of the sample, not on the landmarks, which need not lie where the data do: Z = K_nm W has the
    singular vectors V, and W V_size gives the best approximation of ZZᵀ of that rank (Pourkamali-Anaraki & Becker 2019;
    Tropp, Yurtsever, Udell & Cevher 2017). Some rows represent all, and each landmark counts as one more row.
    """
    rows = some(X, max(_ROWS, 2 * W.shape[1]), rng)
    Z = kernel(rows) @ W
    return W @ _top(_everywhere(Z.T @ Z, len(X) / len(rows), W), size)


def _everywhere(G: Floats, times: float, W: Floats) -> Floats:
    """Return the Gram matrix of features for all rows and the landmarks, from that of some rows.

    For the landmarks it is WᵀK²W = Λ, the inverse squared norms of W's columns. Without them, a direction that only a
    few far rows need would be lost if none of these is among the rows, and with it all of their kernel.
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
    """Return W S^{½} (m, size) with weights S that fit the sample's kernel better than the landmarks' own, S = I.

    With G = ZᵀZ = UgUᵀ and the residual E = K − ZZᵀ, S = I + UD(UᵀZᵀEZU)DUᵀ, D = diag(1/(g + μ)): at μ = 0 the minimum
    of ‖K − ZSZᵀ‖_F, the Frobenius-best U of Wang & Zhang 2013 ("modified Nyström"). μ is chosen on rows that S was not
    fitted on, with μ = ∞ (no fit) among the choices, so that S does not overfit the sample. As E is positive
    semi-definite, so is S.
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
    """Return the eigenvectors of the `size` largest eigenvalues, largest first."""
    return top_eigenvectors(G, min(size, len(G)))[:, ::-1]


def some(X: Floats, most: int, rng: np.random.Generator) -> Floats:
    """Return all rows, or that many random ones."""
    return X if len(X) <= most else X[rng.choice(len(X), size=most, replace=False)]


def trapezoid(projection: Floats) -> Floats:
    """Return a matrix (m, D) for the same features up to a rotation, with zeros above the diagonal.

    Pᵀ = QR, so P Pᵀ = RᵀR. This saves half of a product with it if m = D.
    """
    from scipy.linalg import qr

    R: Floats = qr(projection.T, mode="r")[0][: projection.shape[1]]
    # a definite sign, as in a Cholesky factor
    R = R * np.where(R.diagonal() < 0.0, -1.0, 1.0)[:, None]
    return np.tril(R.T)


def padded(W: Floats, width: int, symmetric: bool) -> Floats:
    """Return T (m, width) for the weights W (m, r): the symmetric root, or the triangular one if it is square.

    Columns beyond r are zeros.
    """
    if symmetric:
        # W's columns are those of V, scaled
        W = W @ (W / np.linalg.norm(W, axis=0)).T
    elif len(W) == width:
        W = trapezoid(W)
    T = np.zeros((len(W), width))
    T[:, : W.shape[1]] = W
    return T
