"""A view on rows, as Nyström makes it, by plain formulas."""

import numpy as np
from scipy.spatial.distance import cdist

from kafeat.maths.nystroem.landmarks import FitSample, Profile


def rbf_view(
    X: np.ndarray, gamma: float = 0.3, label: np.ndarray | None = None, dual_l1: float = 0.0
) -> FitSample:
    K = rbf(X, X, gamma).astype(X.dtype)
    profile = Profile(lambda s: (np.exp(-gamma * s), -gamma * np.exp(-gamma * s)), gamma**-0.5)
    return FitSample(X, lambda i, j: K[np.ix_(i, j)], lambda i: K[i, i], label, dual_l1, profile)


def kernel_view(
    X: np.ndarray, K: np.ndarray, label: np.ndarray | None = None, dual_l1: float = 0.0
) -> FitSample:
    K = K.astype(X.dtype)
    return FitSample(X, lambda i, j: K[np.ix_(i, j)], lambda i: K[i, i], label, dual_l1)


def rbf(X: np.ndarray, Y: np.ndarray, gamma: float) -> np.ndarray:
    return np.exp(-gamma * cdist(X, Y, "sqeuclidean"))  # by differences, in float64
