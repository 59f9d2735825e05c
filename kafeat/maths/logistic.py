"""Multinomial logistic regression on features in memory, by L-BFGS.

The loss is −Σ_i Σ_c q_ic log softmax(Wᵀz_i + b)_c + λ/2 ‖W‖². The q_ic are probabilities of the classes, or 1 for the
class of row i and 0 elsewhere. The loss is minimized over V with W = R⁻¹V, where RᵀR is the centred ZᵀZ/4 + λ. The
Hessian of the loss is at most ZᵀZ/2 + λ (Böhning 1992), so in V it is near the identity, and about twenty iterations
are enough even for strongly correlated features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kafeat.contract.memory import blocks, require_memory
from kafeat.maths import lapack
from kafeat.maths.calibration import softmax
from kafeat.maths.ridge import FEWER_COLUMNS, LEAST, each, rounding_of
from kafeat.types import Array, Floats

_MOST_NUMBERS = 1 << 21
_MOST_ITERATIONS = 500
# Tolerance of the mean loss per row, far below the statistical error.
_TOLERANCE = 1e-9


class LogisticProblem:
    """A logistic regression on features Z (n, D) with row weights (n,). The rows of `targets` (n, c) sum to 1.

    Penalties are multiples of the mean diagonal of the centred ZᵀZ. `jobs` threads add blocks of rows in a fixed order.
    """

    def __init__(self, Z: Floats, targets: Floats, weights: Floats, jobs: int) -> None:
        width = Z.shape[1]
        require_memory(5.0 * width * width, f"logistic: {width:,} columns", FEWER_COLUMNS)
        self._Z, self._targets, self._weights, self._jobs = Z, targets, weights, jobs
        total = float(weights.sum())
        self._blocks = blocks(len(Z), width, _MOST_NUMBERS)
        self._mean = sum(each(self._sum, self._blocks, jobs)) / total
        zz: Floats = np.zeros((width, width))
        for block in self._blocks:
            z = Z[block] - self._mean
            zz += z.T @ (z * weights[block, None])
        self._zz, self._total = zz, total
        self._diagonal = float(np.trace(zz)) / len(zz)
        shares = (weights[:, None] * targets).sum(axis=0) / total
        self._prior = np.log(np.maximum(shares, 1e-9))

    def _sum(self, block: slice) -> Floats:
        return self._weights[block] @ self._Z[block].astype(np.float64, copy=False)

    def penalty(self, multiple: float) -> float:
        """Return λ for this multiple of the mean diagonal, but at least the size of rounding errors."""
        return max(multiple * (self._diagonal or 1.0), rounding_of(self._diagonal, len(self._zz)), LEAST)

    def fit(
        self, penalty: float, start: Floats | None = None, tolerance: float = _TOLERANCE
    ) -> tuple[Floats, Floats]:
        """Return W (D, c) and b (c,) for a penalty λ.

        `start` (D, c) is the initial W, and `tolerance` applies to the mean loss per row.
        """
        from scipy.linalg import solve_triangular
        from scipy.optimize import minimize

        D, c = len(self._zz), self._targets.shape[1]
        R = lapack.cholesky(self._zz / 4.0 + penalty * np.eye(D))
        # Intercepts are scaled by this unit, so that the curvature of the loss is about 1 in them, as it is in V.
        unit = np.sqrt(self._total / 4.0)

        def loss(flat: Floats) -> tuple[float, Floats]:
            V = flat.reshape(D + 1, c)
            W = solve_triangular(R, V[:D], check_finite=False)
            value, of_W, of_b = self._loss(W, V[D] / unit)
            of_W += penalty * W
            gradient = np.vstack([solve_triangular(R, of_W, trans=1, check_finite=False), of_b / unit])
            return (value + penalty / 2.0 * float((W**2).sum())) / self._total, gradient.ravel() / self._total

        V = np.zeros((D, c)) if start is None else R @ start
        first = np.vstack([V, self._prior * unit]).ravel()
        options: Any = {"maxiter": _MOST_ITERATIONS, "ftol": tolerance * 1e-3, "gtol": tolerance}
        V = minimize(loss, first, jac=True, method="L-BFGS-B", options=options).x.reshape(D + 1, c)
        W: Floats = solve_triangular(R, V[:D], check_finite=False)
        return W, V[D] / unit - self._mean @ W

    def _loss(self, W: Floats, b: Floats) -> tuple[float, Floats, Floats]:
        """Return the loss without the penalty, and its gradients with respect to W and to b, for centred features."""
        narrow = W.astype(self._Z.dtype)
        offset = b - self._mean @ W

        def of_block(block: slice) -> tuple[float, Floats, Floats]:
            Z, targets, w = self._Z[block], self._targets[block], self._weights[block]
            scores = (Z @ narrow).astype(np.float64) + offset
            scores -= scores.max(axis=1, keepdims=True)
            p = np.exp(scores)
            sums = p.sum(axis=1)
            value = float(w @ (np.log(sums) - (targets * scores).sum(axis=1)))
            p /= sums[:, None]
            p -= targets
            p *= w[:, None]
            return value, (Z.T @ p.astype(Z.dtype)).astype(np.float64), p.sum(axis=0)

        parts = each(of_block, self._blocks, self._jobs)
        of_b: Floats = np.sum([part[2] for part in parts], axis=0)
        of_W: Floats = np.sum([part[1] for part in parts], axis=0)
        return float(sum(part[0] for part in parts)), of_W - np.outer(self._mean, of_b), of_b


class LogisticMachine:
    """Logistic regression in memory with a given penalty λ. For a kernel K = LLᵀ, the features are L.

    For two classes, λ is the penalty of one vector w, as in other libraries. The softmax uses ±w/2, with half of ‖w‖².
    """

    def __init__(self, penalty: float, is_kernel: bool = False) -> None:
        self._penalty, self._is_kernel = penalty, is_kernel

    def fit(self, Z: Floats, y: Array) -> None:
        """Learn from rows Z (n, D), or their kernel (n, n), with classes y (n,)."""
        from scipy.linalg import solve_triangular

        self.classes_, numbers = np.unique(y, return_inverse=True)
        if self._is_kernel:
            jitter = rounding_of(float(np.abs(Z).max()), len(Z))
            Z = lapack.cholesky(Z + jitter * np.eye(len(Z)), lower=True)
        c = len(self.classes_)
        problem = LogisticProblem(Z, np.eye(c)[numbers], np.ones(len(y)), 1)
        W, self._intercept = problem.fit(self._penalty * (2.0 if c == 2 else 1.0))
        if self._is_kernel:  # f(x) = k(x, ·)L⁻ᵀw
            W = solve_triangular(Z, W, trans="T", lower=True)
        self.coef_ = W.T

    def predict_proba(self, Z: Floats) -> Floats:
        """Return the class probabilities (m, c) for features, or for kernel values with the training rows."""
        out: Floats = Z @ self.coef_.T + self._intercept
        softmax(out, 1.0, out)
        return out

    def score(self, Z: Floats, y: Array) -> float:
        """Return the accuracy."""
        return float((self.classes_[self.predict_proba(Z).argmax(axis=1)] == y).mean())
