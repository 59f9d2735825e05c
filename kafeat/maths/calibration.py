"""Probabilities of classes from scores: a softmax with one temperature, which held-out rows choose.

Dividing by a temperature changes no prediction, only how sure it is. Source: Guo, Pleiss, Sun & Weinberger 2017.
"""

from __future__ import annotations

import numpy as np

from kafeat.types import Array, Floats

# Scores that separate all rows would have a temperature of 0.
_LEAST, _MOST = 1e-4, 1e2


def softmax(scores: Floats, temperature: float, out: Floats) -> None:
    """Write exp(s/T) / Σ exp(s/T) of scores (n, c) in float64 into `out` (n, c), which may be the same memory."""
    np.subtract(scores, scores.max(axis=1, keepdims=True), out=out)
    out /= temperature
    np.exp(out, out=out)
    out /= out.sum(axis=1, keepdims=True)


def log_loss(scores: Floats, classes: Array, temperature: float, weights: Floats | None = None) -> float:
    """Return the mean of −log p over rows with scores (n, c), of the classes with these numbers (n,)."""
    s = scores / temperature
    s -= s.max(axis=1, keepdims=True)
    losses = np.log(np.exp(s).sum(axis=1)) - s[np.arange(len(s)), classes]
    return float(np.average(losses, weights=weights))


def fit_temperature(scores: Floats, classes: Array, weights: Floats | None = None) -> float:
    """Return the temperature with the least log loss; 1 if there are no rows, or their scores say nothing."""
    from scipy.optimize import minimize_scalar

    if not len(scores) or not np.isfinite(scores).all() or not np.ptp(scores, axis=1).any():
        return 1.0
    # The loss is convex in 1/T, so it has one minimum in log T, too.
    found = minimize_scalar(
        lambda power: log_loss(scores, classes, float(np.exp(power)), weights),
        bounds=(np.log(_LEAST), np.log(_MOST)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(np.exp(found.x))
