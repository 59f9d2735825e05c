"""Probabilities of classes from scores: a softmax with one temperature and a bias for each class, from held-out rows.

A temperature without biases cannot fit unequal shares of the classes. Source: Guo, Pleiss, Sun & Weinberger 2017,
section 4.2 (bias-corrected temperature scaling: Alexandari, Kundaje & Shrikumar 2020).
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from kafeat.types import Array, Floats

# Bounds of the temperature, because scores that separate all rows would have a temperature of 0.
_LEAST, _MOST = 1e-4, 1e2


def softmax(scores: Floats, temperature: float, out: Floats) -> None:
    """Write exp(s/T) / Σ exp(s/T) of scores (n, c) in float64 into `out` (n, c), which may be the same memory."""
    np.subtract(scores, scores.max(axis=1, keepdims=True), out=out)
    out /= temperature
    np.exp(out, out=out)
    out /= out.sum(axis=1, keepdims=True)


def softmax_loss(scores: Floats, targets: Floats, weights: Floats | None = None) -> float:
    """Return the mean of −Σ q log softmax(s) over rows with scores and targets q (n, c), which sum to 1."""
    losses = -(targets * _log_softmax(scores)).sum(axis=1)
    return float(np.average(losses, weights=weights))


def _log_softmax(scores: Floats) -> Floats:
    s = scores - scores.max(axis=1, keepdims=True)
    logs: Floats = s - np.log(np.exp(s).sum(axis=1, keepdims=True))
    return logs


def rows_of(weights: Floats) -> float:
    """Return how many rows the weights (n,) count for: their sum, but at least the number of rows.

    Weights may be shares of a whole, whose sum is 1.
    """
    return max(float(len(weights)), float(weights.sum()))


class Calibration(NamedTuple):
    """The parameters of p = softmax(s/T + a) for scores s (n, c)."""

    temperature: float
    biases: Floats

    def __call__(self, scores: Floats) -> Floats:
        probabilities: Floats = np.empty(scores.shape)
        softmax(scores + self.temperature * self.biases, self.temperature, probabilities)
        return probabilities


def fit_calibration(scores: Floats, targets: Floats, weights: Floats | None = None) -> Calibration:
    """Return the calibration with the least log loss, or T = 1 and no biases if the scores are not informative.

    The targets (n, c) of a row are probabilities, or 1 for its class and 0 elsewhere. Each row counts in part for the
    shares of all classes, together as much as one row. Otherwise, scores that separate these rows would make every
    error on other rows a certain one (Platt 1999, with equal shares). The biases have a penalty that counts as much as
    one row, so that a class without a row keeps a probability.
    """
    from scipy.optimize import minimize

    n, c = scores.shape
    if not n or not np.isfinite(scores).all() or not np.ptp(scores, axis=1).any():
        return Calibration(1.0, np.zeros(c))
    weights, rows = (np.ones(n), n) if weights is None else (weights, rows_of(weights))
    weights = weights / weights.sum()
    unit = float(np.std(scores - scores.mean(axis=1, keepdims=True)))
    shares = (weights[:, None] * targets).sum(axis=0)
    wanted = shares / (rows + 1.0) + targets * (rows / (rows + 1.0))

    def loss(parameters: Floats) -> tuple[float, Floats]:
        power, biases = parameters[0], parameters[1:]
        inverse = np.exp(power) / unit
        logs = _log_softmax(scores * inverse + biases)
        value = 0.5 * float(biases @ biases) / rows - float(weights @ (wanted * logs).sum(axis=1))
        p = (np.exp(logs) - wanted) * weights[:, None]
        return value, np.append(inverse * float((p * scores).sum()), p.sum(axis=0) + biases / rows)

    bounds = [(np.log(unit / _MOST), np.log(unit / _LEAST)), *[(None, None)] * c]
    start = np.append(np.clip(0.0, *bounds[0]), np.zeros(c))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-12}).x
    return Calibration(unit / float(np.exp(found[0])), found[1:])


def of_all_classes(scores: Floats) -> Floats:
    """Return scores (n, c) of all classes. For two classes, `scores` may be those of the second one, (n, 1)."""
    return np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores


def held_out_probabilities(scores: Floats, targets: Floats, weights: Floats | None = None) -> Floats:
    """Return probabilities of rows with scores and targets (n, c). Each half is calibrated on the other.

    For two classes, the scores may be those of the second one, (n, 1).
    """
    scores = of_all_classes(scores)
    out: Floats = np.empty(scores.shape)
    for half, other in ((slice(0, None, 2), slice(1, None, 2)), (slice(1, None, 2), slice(0, None, 2))):
        known = None if weights is None else weights[other]
        out[half] = fit_calibration(scores[other], targets[other], known)(scores[half])
    return out


BINS = 15
"""Number of bins of equal width, by the probability of the predicted class."""
# The fewest training rows in each bin of a comparison, and the number of random draws.
_LEAST_ROWS, _DRAWS = 10, 400


class Reliability(NamedTuple):
    """Rows in bins of equal width, by the probability of the predicted class, without empty bins."""

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

    @classmethod
    def of(cls, sums: Floats) -> Self:
        """Return the means of `binned` rows."""
        rows, sure, right = sums[sums[:, 0] > 0.0].T
        return cls(sure / rows, right / rows, rows / rows.sum())


def binned(probabilities: Floats, classes: Array, weights: Floats | None = None) -> Floats:
    """Return the number of rows, and the sums of their probabilities and of right predictions, in each bin, (15, 3).

    Rows have probabilities (n, c) and the classes with these numbers (n,). Weights (n,) count as the number of rows
    with which a mean would have the same variance.
    """
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == classes
    bins = np.clip(np.ceil(sure * BINS).astype(int) - 1, 0, BINS - 1)
    rows = np.ones(len(sure)) if weights is None else weights * (weights.sum() / (weights**2).sum())
    return np.column_stack([np.bincount(bins, rows * one, BINS) for one in (np.ones(len(sure)), sure, right)])


def reliability(probabilities: Floats, classes: Array) -> Reliability:
    """Compare the confidence of predictions (n, c) for classes (n,) with how often they are right."""
    return Reliability.of(binned(probabilities, classes))


def calibration_p_value(probabilities: Floats, classes: Array, of_fit: Floats, seed: int = 0) -> float:
    """Return the p-value for a calibration of rows (n, c) that is worse than that of the `binned` training rows.

    In a bin, the gap is the accuracy minus the mean probability. The statistic is the mean of |gap here − gap in
    training| over the rows here. It is compared with outcomes drawn for both from the gap of all rows of the bin. An
    error that is not larger than in training gives 1. Bins with few training rows are joined with the next. More rows
    than in training do not make the test sharper, because the calibration in training stays as uncertain as it was.
    """
    rng, most = np.random.default_rng(seed), max(1, round(float(of_fit[:, 0].sum())))
    if len(classes) > most:
        some = rng.choice(len(classes), most, replace=False)
        probabilities, classes = probabilities[some], classes[some]
    here = binned(probabilities, classes)
    if Reliability.of(here).error <= Reliability.of(of_fit).error:
        return 1.0
    starts = _joined(of_fit[:, 0])
    sums = [np.add.reduceat(one, starts, axis=0) for one in (here, of_fit)]
    rows, sure, right = sums[0].T + sums[1].T
    gap = (right - sure) / np.maximum(rows, 1.0)
    found, drawn = np.zeros(len(gap)), np.zeros((_DRAWS, len(gap)))
    for sign, (rows, sure, right) in zip((1.0, -1.0), (one.T for one in sums), strict=True):
        rows = np.maximum(np.rint(rows), 1.0)
        chance = np.clip(sure / rows + gap, 0.0, 1.0)
        found += sign * (right - sure) / rows
        drawn += sign * (rng.binomial(rows.astype(int), chance, drawn.shape) - sure) / rows
    at_least = np.abs(drawn) @ sums[0][:, 0] >= np.abs(found) @ sums[0][:, 0] * (1.0 - 1e-12)
    return float(1 + at_least.sum()) / (1 + _DRAWS)


def _joined(rows: Floats) -> list[int]:
    """Group neighbouring bins until each has enough of these rows (15,). Return the first bin of each group."""
    before, starts = np.concatenate([[0.0], rows.cumsum()]), [0]
    for i in range(1, len(rows)):
        if min(before[i] - before[starts[-1]], before[-1] - before[i]) >= _LEAST_ROWS:
            starts.append(i)
    return starts
