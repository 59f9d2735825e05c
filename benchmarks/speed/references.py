"""Reference values of ZZᵀ, in float64 and by scikit-learn's exact kernels: neither side is the judge of the other."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import (
    chi2_kernel,
    laplacian_kernel,
    linear_kernel,
    polynomial_kernel,
    rbf_kernel,
)

ROWS = 300
Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]
Reference = Callable[[Any, np.ndarray], np.ndarray]
"""(a fitted side, rows) → the matrix that its features of these rows should be near."""


def rows(d: int, positive: bool, dtype: str) -> np.ndarray:
    """Rows with something in common, so that their kernel is far from the identity."""
    rng = np.random.default_rng(7)
    if positive:
        return rng.random((ROWS, d)).astype(dtype)
    common = rng.standard_normal(d)
    return (np.sqrt(0.6) * common + np.sqrt(0.4) * rng.standard_normal((ROWS, d))).astype(dtype)


def error(Z: np.ndarray, K: np.ndarray) -> float:
    """The root mean square over all pairs x, y of (z(x)·z(y) − k(x, y))/√(k(x, x) k(y, y))."""
    Z = np.asarray(Z, dtype=np.float64)
    root = np.sqrt(K.diagonal())
    return float(np.sqrt(np.mean(((Z @ Z.T - K) / np.outer(root, root)) ** 2)))


def kernel(exact: Kernel) -> Reference:
    """The exact kernel itself."""
    return lambda _, X: exact(X.astype(np.float64), X.astype(np.float64))


def of_landmarks(exact: Kernel) -> Reference:
    """K_nm K_mm⁺ K_mn with the side's own landmarks: what Nyström features are to give, by definition."""

    def reference(side: Any, X: np.ndarray) -> np.ndarray:
        L = side.chain.steps[0].state["landmarks"] if hasattr(side, "chain") else side.components_
        L, X = (np.asarray(rows, dtype=np.float64) for rows in (L, X))
        C = exact(X, L)
        return C @ np.linalg.pinv(exact(L, L), rcond=1e-10, hermitian=True) @ C.T

    return reference


def rbf(gamma: float) -> Kernel:
    return lambda X, Y: rbf_kernel(X, Y, gamma=gamma)


def laplacian(gamma: float) -> Kernel:
    return lambda X, Y: laplacian_kernel(X, Y, gamma=gamma)


def chi2(gamma: float) -> Kernel:
    return lambda X, Y: chi2_kernel(X, Y, gamma=gamma)


def polynomial(gamma: float, degree: int) -> Kernel:
    return lambda X, Y: polynomial_kernel(X, Y, degree=degree, gamma=gamma, coef0=1.0)


def additive_chi2(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Σ 2xy/(x + y)."""
    return np.stack([(2.0 * x * Y / (x + Y)).sum(axis=1) for x in X])


def skewed_chi2(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Π 2√((x + 1)(y + 1))/(x + y + 2)."""
    return np.stack([(2.0 * np.sqrt((x + 1.0) * (Y + 1.0)) / (x + Y + 2.0)).prod(axis=1) for x in X])


linear: Kernel = linear_kernel
