"""How far a random projection moves the distances, beside what Johnson and Lindenstrauss promise."""

from __future__ import annotations

import numpy as np

from kafeat.types import Floats


def distortion(K: Floats, Z: Floats) -> dict[str, float]:
    """Over all pairs of rows, |‖z(x) − z(y)‖²/‖x − y‖² − 1|: its largest, its mean, and the ε that the lemma gives.

    K (n, n) are the exact dot products. ε is the smallest with D ≥ 4 ln n/(ε²/2 − ε³/3), and 1 or more says nothing.
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
    """The smallest ε in (0, 1) with D ≥ 4 ln n/(ε²/2 − ε³/3), by bisection; 1 if there is none."""
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
