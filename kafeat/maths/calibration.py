"""Probabilities of classes from scores: a softmax with one temperature and a bias per class, fitted on held-out rows.

A temperature without biases cannot match unequal class frequencies. Source: Guo, Pleiss, Sun & Weinberger 2017, section
4.2 (bias-corrected temperature scaling: Alexandari, Kundaje & Shrikumar 2020).
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from kafeat.types import Array, Floats

# Bounds of the temperature. Scores that separate all rows would drive it to 0.
_LEAST, _MOST = 1e-4, 1e2


def softmax(scores: Floats, temperature: float, out: Floats) -> None:
    """Write the softmax exp(s/T) / Σ exp(s/T) of `scores` (n, c) into `out`, which may be the same float64 array."""
    np.subtract(scores, scores.max(axis=1, keepdims=True), out=out)
    out /= temperature
    np.exp(out, out=out)
    out /= out.sum(axis=1, keepdims=True)


def softmax_loss(scores: Floats, targets: Floats, weights: Floats | None = None) -> float:
    """Return the mean cross-entropy −Σ q log softmax(s) of scores s and targets q (n, c). Each row of q sums to 1."""
    losses = -(targets * _log_softmax(scores)).sum(axis=1)
    return float(np.average(losses, weights=weights))


def _log_softmax(scores: Floats) -> Floats:
    s = scores - scores.max(axis=1, keepdims=True)
    logs: Floats = s - np.log(np.exp(s).sum(axis=1, keepdims=True))
    return logs


def rows_of(weights: Floats) -> float:
    """Return how many rows the weights (n,) stand for: their sum, but at least n, because weights may be fractions."""
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

    The targets (n, c) of a row are probabilities, or 1 for its class and 0 elsewhere. They are smoothed with the class
    frequencies, which count as much as one row in total. Without this smoothing, scores that separate these rows would
    give other rows a probability of 1 even where they are wrong (Platt 1999, with equal frequencies). The penalty of
    the biases also counts as much as one row, so that a class without rows keeps a positive probability.
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
    """Return the scores of all classes, (n, c). For two classes, the input may be the scores of the second, (n, 1)."""
    return np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores


def held_out_probabilities(scores: Floats, targets: Floats, weights: Floats | None = None) -> Floats:
    """Return calibrated probabilities (n, c) for scores and targets (n, c). Each half is calibrated on the other half.

    For two classes, the scores may be those of the second class, (n, 1).
    """
    scores = of_all_classes(scores)
    out: Floats = np.empty(scores.shape)
    for half, other in ((slice(0, None, 2), slice(1, None, 2)), (slice(1, None, 2), slice(0, None, 2))):
        known = None if weights is None else weights[other]
        out[half] = fit_calibration(scores[other], targets[other], known)(scores[half])
    return out


BINS = 15
"""Number of equally wide bins for the probability of the predicted class."""
# For the comparison of calibrations: the fewest training rows in a bin, and the number of random draws.
_LEAST_ROWS, _DRAWS = 10, 400


class Reliability(NamedTuple):
    """A reliability diagram: rows binned by the probability of the predicted class, without empty bins."""

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
        """Return the reliability diagram for sums from `binned`."""
        rows, sure, right = sums[sums[:, 0] > 0.0].T
        return cls(sure / rows, right / rows, rows / rows.sum())


def binned(probabilities: Floats, classes: Array, weights: Floats | None = None) -> Floats:
    """Return for each bin the number of rows, the sum of their largest probabilities, and how many are right, (15, 3).

    Rows have probabilities (n, c) and the class numbers `classes` (n,). Weights (n,) are scaled to add up to the
    effective number of rows, (Σw)²/Σw².
    """
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == classes
    bins = np.clip(np.ceil(sure * BINS).astype(int) - 1, 0, BINS - 1)
    rows = np.ones(len(sure)) if weights is None else weights * (weights.sum() / (weights**2).sum())
    return np.column_stack([np.bincount(bins, rows * one, BINS) for one in (np.ones(len(sure)), sure, right)])


def reliability(probabilities: Floats, classes: Array) -> Reliability:
    """Return the reliability diagram of probabilities (n, c) for rows of these classes (n,)."""
    return Reliability.of(binned(probabilities, classes))


def calibration_p_value(probabilities: Floats, classes: Array, of_fit: Floats, seed: int = 0) -> float:
    """Return the p-value of a test whether rows (n, c) are calibrated worse than training rows.

    `of_fit` is the result of `binned` for training rows. The gap of a bin is its accuracy minus its mean probability.
    The statistic is the mean of |gap − gap in training| over the rows to test. Under the null hypothesis, both gaps of
    a bin are equal: random outcomes with the gap of all its rows together give the distribution of the statistic. p is
    1 if the calibration error is not larger than in training. A bin with few training rows is joined with the next. No
    more rows are used than in training, because the calibration in training is uncertain as well.
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
    """Join neighbouring bins of `rows` (15,) rows to groups of at least `_LEAST_ROWS`. Return the first bin of each."""
    before, starts = np.concatenate([[0.0], rows.cumsum()]), [0]
    for i in range(1, len(rows)):
        if min(before[i] - before[starts[-1]], before[-1] - before[i]) >= _LEAST_ROWS:
            starts.append(i)
    return starts
