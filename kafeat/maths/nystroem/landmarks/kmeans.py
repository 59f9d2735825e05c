"""Landmarks that are not rows: k-means centres, and centres that minimize the error of the kernel."""

from __future__ import annotations

import numpy as np

from kafeat.contract.threads import check
from kafeat.maths.nystroem.landmarks.fit_sample import MOST, FitSample, Indices, Profile
from kafeat.maths.nystroem.landmarks.pivots import rpcholesky
from kafeat.types import Floats

# With more rows per centre than this, centres change very little.
_ROWS_PER_CENTRE = 64
_LEAST_ROWS = 20_000
_ITERATIONS = 20
# Coordinates are clipped at this many typical distances, because squares must fit the dtype.
_FARTHEST = 1e6
# In float32, ‖x − c‖² has an error of a few ε‖x‖². If the mean of ‖x − c‖² to the nearest centres c is below this
# multiple of the mean of ε‖x‖², float32 may find wrong centres. In this case, float64 is used.
_CERTAIN = 1000.0

_STEPS = 60
_BATCH = 1024
# The length of the first step, relative to `Profile.length`. The last step is a tenth as long.
_LENGTH = 3e-3
# Added to the diagonal of K_mm, so that it stays invertible while landmarks move.
_JITTER = 1e-7
# The square of a larger coordinate would overflow.
_LARGEST = 1e150


def kmeans(view: FitSample, m: int, rng: np.random.Generator) -> Floats:
    """Return m centres of k-means, whose quantisation error bounds that of Nyström (Zhang, Tsang & Kwok 2008).

    Lloyd's iterations start from the rows that randomly pivoted Cholesky selects, because these rows matter most to the
    kernel. For additive kernels such as chi2, centres are means of square roots, because distances between square roots
    are closer to distances in the kernel. If there are more than max(20,000, 64 m) rows, or more than 2²⁵ numbers, a
    random subset is used. Centres are not rows of the data, except that with m rows, the rows are returned.
    """
    return weighted_kmeans(view, np.arange(len(view.X)), None, m, rng)


def weighted_kmeans(
    view: FitSample, rows: Indices, weights: Floats | None, m: int, rng: np.random.Generator
) -> Floats:
    """Return m k-means centres of these rows, or all of at most m rows. Weights are above 0; None stands for ones."""
    X = view.X
    if len(rows) <= m:
        return X[rows]
    most = max(m, min(max(_LEAST_ROWS, _ROWS_PER_CENTRE * m), MOST // X.shape[1]))
    own = np.ones(len(rows)) if weights is None else weights
    if len(rows) > most:
        some = np.sort(rng.choice(len(rows), size=most, replace=False))
        rows, own = rows[some], own[some]
    own, part = own / own.mean(), view.among(rows)
    Y, middle, spread = standardized(np.sqrt(part.X) if view.roots else part.X, rng)
    start = rpcholesky(part, m, rng)
    narrow = Y.astype(np.float32)
    centres, inertia = lloyd(narrow, own, narrow[start], _ITERATIONS)
    if inertia < _CERTAIN * np.finfo(np.float32).eps * float(own @ np.einsum("ij,ij->i", Y, Y)):
        centres, _ = lloyd(Y, own, Y[start], _ITERATIONS)
    points = centres.astype(np.float64) * spread + middle
    return (np.square(points) if view.roots else points).astype(X.dtype)


def standardized(X: Floats, rng: np.random.Generator) -> tuple[Floats, Floats, float]:
    """Return (X − middle)/spread, the medians `middle` (d,), and `spread`, a typical distance of rows from them."""
    few = X[np.sort(rng.choice(len(X), size=min(len(X), 2048), replace=False))].astype(np.float64)
    middle = np.median(few, axis=0)
    away = few - middle
    largest = float(np.abs(away).max(initial=0.0)) or 1.0  # squares of unscaled entries might overflow
    distance = largest * np.sqrt(((away / largest) ** 2).sum(axis=1))
    apart = distance[distance > 0.0]
    spread = float(np.median(apart)) if len(apart) else 1.0
    Y = np.empty(X.shape)
    for start in range(0, len(X), 4096):
        block = (X[start : start + 4096] - middle) / spread
        Y[start : start + 4096] = np.clip(block, -_FARTHEST, _FARTHEST)
    return Y, middle, spread


# The number of rows per block, so that their distances to all centres stay in the second-level cache.
_BLOCK = 512


def lloyd(X: Floats, weights: Floats, centres: Floats, iterations: int) -> tuple[Floats, float]:
    """Run k-means until at most one row in 1,000 changes its cluster. Return centres (m, d) and inertia.

    It stops after `iterations` at the latest. An empty cluster moves to the row that is farthest from its centre.
    """
    labels = np.full(len(X), -1)
    inertia = np.inf
    for _ in range(iterations):
        check()
        before = labels
        labels, cost = assign(X, centres)
        cost *= weights
        inertia = float(cost.sum())
        if np.count_nonzero(before != labels) <= len(X) // 1000:
            break
        centres, mass = _means(X, weights, labels, centres)
        empty = np.flatnonzero(mass == 0.0)
        centres[empty] = X[np.argsort(-cost, kind="stable")[: len(empty)]]
    return centres, inertia


def assign(X: Floats, centres: Floats) -> tuple[Indices, Floats]:
    """Return the number of the nearest centre of each row, and the squared distance to it in float64."""
    doubled = np.ascontiguousarray(-2.0 * centres.T)
    norms = np.einsum("ij,ij->i", centres, centres)
    labels, cost = np.empty(len(X), dtype=np.intp), np.empty(len(X))
    buffer = np.empty((min(_BLOCK, len(X)), len(centres)), dtype=doubled.dtype)
    for start in range(0, len(X), _BLOCK):
        block = X[start : start + _BLOCK]
        distance = np.matmul(block, doubled, out=buffer[: len(block)])
        distance += norms
        nearest = distance.argmin(axis=1)
        labels[start : start + _BLOCK] = nearest
        cost[start : start + _BLOCK] = np.take_along_axis(distance, nearest[:, None], 1)[:, 0]
        cost[start : start + _BLOCK] += np.einsum("ij,ij->i", block, block)
    return labels, np.maximum(cost, 0.0)


def _means(X: Floats, weights: Floats, labels: Indices, centres: Floats) -> tuple[Floats, Floats]:
    """Return the weighted mean of each cluster and its weight. An empty cluster keeps its centre."""
    from scipy.sparse import csr_array

    m = len(centres)
    mass: Floats = np.bincount(labels, weights, minlength=m).astype(np.float64)
    sums = np.zeros(centres.shape)
    for start in range(0, len(X), 4096):
        block = X[start : start + 4096]
        size = len(block)
        which = csr_array(
            (weights[start : start + size], (labels[start : start + size], np.arange(size))), shape=(m, size)
        )
        sums += which @ block.astype(np.float64)
    means = np.where(mass[:, None] > 0.0, sums / np.where(mass > 0.0, mass, 1.0)[:, None], centres)
    return means.astype(X.dtype), mass


def learned(view: FitSample, m: int, rng: np.random.Generator) -> Floats:
    """Return k-means centres, moved to lower the squared error ‖K − K_nm K_mm⁺ K_mn‖²_F off the diagonal.

    Gaussian processes learn inducing points in this way, for a likelihood (Snelson & Ghahramani 2006; Titsias 2009).
    Here, 60 steps of Adam (Kingma & Ba 2015; one step length for all entries) reduce the error of the kernel itself. A
    step uses 1,024 random rows, so its gradient costs four products of (1,024, m) with (m, m). Held-out rows decide
    whether moved or original centres are returned. The kernel must be a differentiable function of ‖x − y‖².
    """
    if view.profile is None:
        raise TypeError("learned landmarks need a kernel of the distance")
    X, start = view.X, kmeans(view, m, rng)
    if len(X) <= m:
        return start
    order = rng.permutation(len(X))
    held, seen = order[: min(_BATCH, len(X) // 4)], order[min(_BATCH, len(X) // 4) :]
    # Centre at the mean of the landmarks, because products of small numbers lose no digits.
    middle = start.mean(axis=0, dtype=np.float64)
    if max(np.abs(X - middle).max(), np.abs(start - middle).max()) > _LARGEST:
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
        check()
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
    """Return ‖R‖²_F and its gradient in L (m, d), R = K − CA without its diagonal, A = (K_mm + jitter)⁻¹Cᵀ.

    K is the kernel of rows X, and C that of L and X. dK̂ = dC A + Aᵀ dCᵀ − Aᵀ dK_mm A, so that d‖R‖² = −4⟨AR, dCᵀ⟩ +
    2⟨A R Aᵀ, dK_mm⟩, and dk/dl = 2k'(r²)(l − x).
    """
    from scipy.linalg import cho_factor, cho_solve

    C, C_slope = profile.of(_squared(L, X))
    K, K_slope = profile.of(_squared(L, L))
    # the rounding errors of K_mm come from its squared norms, and the jitter must exceed them
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
