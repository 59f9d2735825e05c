"""Landmarks that are learned: moved downhill on the error of the kernel."""

from __future__ import annotations

import numpy as np

from kafeat.maths.nystroem.landmarks.fit_sample import FitSample, Indices, Profile
from kafeat.maths.nystroem.landmarks.kmeans import kmeans
from kafeat.types import Floats

_STEPS = 60
_BATCH = 1024
# The first step's length, in units of the distance at which the kernel has fallen visibly; the last is a tenth of it.
_LENGTH = 3e-3
# Keeps K_mm invertible while landmarks move.
_JITTER = 1e-7
# The square of a row further off is no number.
_FARTHEST = 1e150


def learned(view: FitSample, m: int, rng: np.random.Generator) -> Floats:
    """k-means centres, moved to lower the squared error ‖K − K_nm K_mm⁺ K_mn‖²_F off the diagonal.

    Inducing points are moved like this to raise a likelihood (Snelson & Ghahramani 2006; Titsias 2009); here it is the
    error of the kernel itself, over fresh random rows at each of 60 steps of Adam (Kingma & Ba 2015; one step length
    for all entries). The gradient is by hand, four products of (1,024, m) with (m, m). Rows that no step saw decide
    whether the result is better than where it started, and keep the better. Needs a kernel of ‖x − y‖².
    """
    if view.profile is None:
        raise TypeError("learned landmarks need a kernel of the distance")
    X, start = view.X, kmeans(view, m, rng)
    if len(X) <= m:
        return start
    order = rng.permutation(len(X))
    held, seen = order[: min(_BATCH, len(X) // 4)], order[min(_BATCH, len(X) // 4) :]
    # Where they are small numbers, products lose nothing: around the mean of the landmarks.
    middle = start.mean(axis=0, dtype=np.float64)
    if max(np.abs(X - middle).max(), np.abs(start - middle).max()) > _FARTHEST:
        return start
    L = _descend(X, seen, start - middle, middle, view.profile, rng)
    end = (L + middle).astype(X.dtype)
    rows = X[held] - middle
    before, after = (_error(rows, C - middle, view.profile) for C in (start, end))
    return end if after < before else start


def _descend(
    X: Floats, rows: Indices, L: Floats, middle: Floats, profile: Profile, rng: np.random.Generator
) -> Floats:
    length = _LENGTH * profile.length
    mean, square = np.zeros(L.shape), 0.0
    for step in range(1, _STEPS + 1):
        batch = rng.choice(rows, size=min(_BATCH, len(rows)), replace=False)
        G = gradient(X[batch] - middle, L, profile)[1]
        mean = 0.9 * mean + 0.1 * G
        square = 0.99 * square + 0.01 * float(np.mean(G**2))
        if square == 0.0:
            break
        now = length * (1.0 - 0.9 * step / _STEPS)
        L = L - now * (mean / (1.0 - 0.9**step)) / np.sqrt(square / (1.0 - 0.99**step))
    return L


def gradient(X: Floats, L: Floats, profile: Profile) -> tuple[float, Floats]:
    """‖R‖²_F of the rows X, R = K − CA without its diagonal, A = (K_mm + jitter)⁻¹Cᵀ; and its gradient in L (m, d).

    dK̂ = dC A + Aᵀ dCᵀ − Aᵀ dK_mm A, so that d‖R‖² = −4⟨AR, dCᵀ⟩ + 2⟨A R Aᵀ, dK_mm⟩, and dk/dl = 2k'(r²)(l − x).
    """
    from scipy.linalg import cho_factor, cho_solve

    C, C_slope = profile.of(_squared(L, X))
    K, K_slope = profile.of(_squared(L, L))
    # r² is off by the rounding of squared norms, and K_mm by as much in units of the kernel's length
    norms = np.einsum("ij,ij->i", L, L) / profile.length**2
    jitter = _JITTER + 8.0 * len(L) * np.finfo(np.float64).eps * float(norms.max())
    A = cho_solve(cho_factor(K + jitter * np.eye(len(L))), C)
    R = profile.of(_squared(X, X))[0] - C.T @ A
    np.fill_diagonal(R, 0.0)
    P = A @ R
    W = -8.0 * P * C_slope
    Q = 8.0 * (P @ A.T) * K_slope
    G = W.sum(axis=1)[:, None] * L - W @ X + Q.sum(axis=1)[:, None] * L - Q @ L
    return float((R**2).sum()), G


def _error(X: Floats, L: Floats, profile: Profile) -> float:
    return gradient(X, L, profile)[0]


def _squared(X: Floats, Y: Floats) -> Floats:
    D = -2.0 * (X @ Y.T)
    D += np.einsum("ij,ij->i", X, X)[:, None]
    D += np.einsum("ij,ij->i", Y, Y)
    return np.maximum(D, 0.0, out=D)
