"""Probabilities of classes from scores: a softmax with one temperature, which held-out rows choose.

Dividing by a temperature changes no prediction, only how sure it is. Source: Guo, Pleiss, Sun & Weinberger 2017.
"""

from __future__ import annotations

from typing import NamedTuple

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


_BINS = 15


class Reliability(NamedTuple):
    """Rows by the probability of the predicted class, in bins of equal width that are not empty."""

    probability: Floats
    """The mean probability of the predicted class in each bin."""
    accuracy: Floats
    """The share of right predictions in each bin."""
    share: Floats
    """The share of all rows in each bin."""

    @property
    def error(self) -> float:
        """The expected calibration error: the mean of |accuracy − probability| over the rows (Guo et al. 2017)."""
        return float((self.share * np.abs(self.accuracy - self.probability)).sum())


def reliability(probabilities: Floats, classes: Array) -> Reliability:
    """Compare how sure predictions (n, c) of the classes with these numbers (n,) are with how often they are right."""
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == classes
    bins = np.clip(np.ceil(sure * _BINS).astype(int) - 1, 0, _BINS - 1)
    counts = np.bincount(bins, minlength=_BINS)
    some = counts > 0
    probability, hits = (
        np.bincount(bins, values, _BINS)[some] for values in (sure, right.astype(np.float64))
    )
    return Reliability(probability / counts[some], hits / counts[some], counts[some] / len(sure))
