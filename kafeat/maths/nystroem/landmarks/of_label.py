"""Landmarks chosen by a label: by the dual variables of a first linear classifier, or where a predictor is wrong."""

from __future__ import annotations

import numpy as np

from kafeat.errors import DataError, UsageError
from kafeat.maths.nystroem.landmarks.fit_sample import FitSample, Indices, draw, fill_up
from kafeat.maths.nystroem.landmarks.kmeans import weighted_kmeans
from kafeat.maths.task import class_numbers, count_classes, targets_to_learn
from kafeat.types import Array, Floats

_STEPS = 200
# The penalty of ridge regression, relative to the mean eigenvalue of ZᵀZ.
_PENALTY = 1e-4


def dual_weights(view: FitSample, m: int, rng: np.random.Generator) -> tuple[Indices, Floats]:
    """Return row numbers, and Σ_c |α_ic| for each, by a linear model on features of m uniform landmarks.

    α are dual variables. For classes, the loss is the one-vs-rest squared hinge, and α_i = max(0, 1 − τ − y_i f(x_i)).
    A numeric target is standardized, the loss is the squared error, and α_i = max(0, |y_i − f(x_i)| − τ). τ = `dual_l1`
    adds −(τ/n)‖α‖₁ to the dual (Nyström based kernel classification for big data, 2015, equations 5–6). For classes,
    this only scales all α by 1 − τ. The ridge penalty is the mean ‖z‖². If the features (n, m) are more than 2²⁵
    numbers, a random subset of the rows is used.
    """
    if view.label is None:
        raise UsageError("expected a label column, got none: name it with --label (label=... in Python)")
    rows = view.rows(m, rng)
    targets, classes = _targets(view.label[rows])
    Z = nystroem_features(view, rows, np.sort(rng.choice(len(view.X), size=m, replace=False)))
    alpha = duals(Z, targets, classes, view.dual_l1)
    return rows, np.abs(alpha).sum(axis=1)


def duals(Z: Floats, Y: Floats, classes: bool, tau: float) -> Floats:
    """Return α (n, c) at the minimum of ½Σℓ_τ(y, Zw) + ½λ‖w‖², λ = mean ‖z‖², for every column of Y (n, c).

    Gradient steps with Nesterov's momentum are preconditioned by ZᵀZ + λI. This matrix bounds the curvature of both
    losses, so one Cholesky factor serves all classes.
    """
    from scipy.linalg import cho_factor, cho_solve

    if not Z.shape[1]:  # the kernel is 0 on the landmarks
        return _dual(Y, np.zeros_like(Y), classes, tau)
    ridge = float(np.einsum("ij,ij->", Z, Z, dtype=np.float64)) / len(Z)
    H = (Z.T @ Z).astype(np.float64)
    metric = cho_factor(H + (ridge + 1e-6 * np.trace(H) / len(H)) * np.eye(len(H)))
    w = ahead = np.zeros((Z.shape[1], Y.shape[1]))
    momentum = 1.0
    alpha = _dual(Y, Z @ ahead.astype(Z.dtype), classes, tau)
    for _ in range(_STEPS):
        step = cho_solve(metric, (Z.T @ alpha.astype(Z.dtype)).astype(np.float64) - ridge * ahead)
        after = ahead + step
        if np.abs(step).max() <= 1e-5 * np.abs(after).max():
            break
        following = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = after + (momentum - 1.0) / following * (after - w)
        w, momentum = after, following
        alpha = _dual(Y, Z @ ahead.astype(Z.dtype), classes, tau)
    return alpha


def _dual(Y: Floats, f: Floats, classes: bool, tau: float) -> Floats:
    """Return α = −∂(½ℓ_τ)/∂f at the scores f (n, c)."""
    if classes:
        return Y * np.maximum(0.0, 1.0 - tau - Y * f)
    left = Y - f
    return np.sign(left) * np.maximum(0.0, np.abs(left) - tau)


def _targets(label: Array) -> tuple[Floats, bool]:
    """Return targets, and True for classes: ±1 in a column per class (one for two), or standardized numbers (n, 1)."""
    if label.ndim > 1:
        raise DataError(
            f"label: expected one label per row, got {label.shape[1]}: choose landmarks: residual for several"
        )
    if count_classes(label) is None:
        if not np.isfinite(label).all():
            raise DataError("label: expected finite numbers, got nan or inf")
        y = label.astype(np.float64)
        return ((y - y.mean()) / y.std())[:, None], False
    values, index = class_numbers(label)
    if len(values) < 2:
        raise DataError(f"label: expected at least two classes, got only {values[0]!s}")
    signs = np.where(np.eye(len(values), dtype=bool)[index], 1.0, -1.0)
    return signs[:, 1:] if len(values) == 2 else signs, True


def nystroem_features(view: FitSample, rows: Indices, landmarks: Indices) -> Floats:
    """Return Nyström features of `rows`, (n, r) with r ≤ m: eigenvalues below 10⁻⁶ of the largest are left out."""
    K = view.kernel(landmarks, landmarks).astype(np.float64)
    values, vectors = np.linalg.eigh((K + K.T) / 2.0)
    kept = values > 1e-6 * values[-1]
    projection = (vectors[:, kept] / np.sqrt(values[kept])).astype(view.X.dtype)
    features: Floats = np.empty((len(rows), projection.shape[1]), projection.dtype)
    for i in range(0, len(rows), 4096):
        features[i : i + 4096] = view.kernel(rows[i : i + 4096], landmarks) @ projection
    return features


def dual_weighted(view: FitSample, m: int, rng: np.random.Generator) -> Indices:
    """Draw rows with P(i) ∝ |α_i| (Nyström based kernel classification for big data, 2015, equation 8).

    If fewer than m rows have α ≠ 0, all of them are used, and the remaining landmarks are drawn uniformly.
    """
    rows, alpha = dual_weights(view, m, rng)
    return fill_up(rows[draw(alpha, m, rng)], np.arange(len(view.X)), m, rng)


def dual_kmeans(view: FitSample, m: int, rng: np.random.Generator) -> Floats:
    """Return k-means centres with the weights α_i² (Nyström based kernel classification for big data, 2015, eq. 9).

    If at most m rows have α ≠ 0, these rows are landmarks, and the remaining landmarks are drawn uniformly.
    """
    rows, alpha = dual_weights(view, m, rng)
    squares = alpha**2
    weighing = squares > 0.0
    if np.count_nonzero(weighing) <= m:
        return view.X[fill_up(rows[weighing], np.arange(len(view.X)), m, rng)]
    return weighted_kmeans(view, rows[weighing], squares[weighing], m, rng)


def residual(view: FitSample, m: int, rng: np.random.Generator) -> Indices:
    """Draw m/2 rows uniformly, then others with P(i) ∝ Σ_c |y_ic − f_c(x_i)|, with f from ridge on the first m/2.

    No row is drawn twice. Classes count as targets of 0 and 1, with one column each. If the features (n, m/2) are more
    than 2²⁵ numbers, a random subset of the rows is used.
    """
    if view.label is None:
        raise TypeError("residual: expected a label, which a config check should have required")
    every = np.arange(len(view.X))
    first = np.sort(rng.choice(len(every), size=max(1, m // 2), replace=False))
    rows = view.rows(len(first), rng)
    weights = _residuals(nystroem_features(view, rows, first), targets_to_learn(view.label)[rows])
    weights[np.isin(rows, first)] = 0.0
    others, size = np.setdiff1d(every, first), m - len(first)
    return np.concatenate([first, fill_up(rows[draw(weights, size, rng)], others, size, rng)])


# The number of rows that are converted to float64 at a time.
_BLOCK = 4096


def _residuals(Z: Floats, Y: Floats) -> Floats:
    """Return Σ_c |y_ic − f_c(z_i)| for every row, (n,), where f is ridge regression of Y (n, k) on Z (n, D)."""
    middle, B = Z.mean(axis=0), Y - Y.mean(axis=0)
    blocks = [slice(i, i + _BLOCK) for i in range(0, len(Z), _BLOCK)]
    gram, moments = np.zeros((Z.shape[1], Z.shape[1])), np.zeros((Z.shape[1], Y.shape[1]))
    for block in blocks:
        A = (Z[block] - middle).astype(np.float64)
        gram += A.T @ A
        moments += A.T @ B[block]
    gram.flat[:: len(gram) + 1] += _PENALTY * np.trace(gram) / max(len(gram), 1) + np.finfo(np.float64).tiny
    W = np.linalg.solve(gram, moments)
    left = [np.abs(B[block] - (Z[block] - middle).astype(np.float64) @ W).sum(axis=1) for block in blocks]
    return np.concatenate(left)
