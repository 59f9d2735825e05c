"""The weighted distribution of the ratios y/x between the entries of a sample, to which a window is fitted."""

from __future__ import annotations

import numpy as np

from kafeat.types import Floats

# Width of a bin of log(y/x). An entry is shared by its two nearest bins, so the error is of second order.
_BIN = 0.02
# Weights below this share of the largest in their column are left out, and so are ratios above e^64.
_LIGHTEST = 1e-8
_WIDEST = 64.0
# Entries that are looked at, at most.
_MOST_ENTRIES = 1 << 22


def ratio_weights(X: Floats, homogeneity: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """ω ≥ 0 on a grid, and the sum of (xy)^γ over all pairs of entries of one column with |log(y/x)| = ω.

    A column's pairs are the autocorrelation of its weighted histogram of log x: every pair is counted, in time
    that is linear in the entries. Of a sample beyond some four million entries, rows are drawn.
    """
    most = max(64, _MOST_ENTRIES // max(1, X.shape[1]))
    if len(X) > most:
        X = X[np.sort(rng.choice(len(X), most, replace=False))]
    reach = min(-np.log(_LIGHTEST) / homogeneity, _WIDEST)
    bins = int(reach / _BIN) + 2
    largest = float(np.abs(X).max(initial=0.0))
    total = np.zeros(bins)
    for column in X.T:
        logs = np.log(np.abs(column[column != 0.0]).astype(np.float64))
        if not len(logs):
            continue
        top = logs.max()
        weights = np.exp(homogeneity * (logs - np.log(largest)))
        place = (top - logs) / _BIN
        below = place.astype(np.intp)
        inside = below < bins - 1
        below, weights, share = below[inside], weights[inside], (place - below)[inside]
        histogram = np.bincount(below, weights * (1.0 - share), bins)
        histogram += np.bincount(below + 1, weights * share, bins)
        total += np.fft.irfft(np.abs(np.fft.rfft(histogram, 2 * bins)) ** 2, 2 * bins)[:bins]
    total[1:] *= 2.0
    return _BIN * np.arange(bins), np.maximum(total, 0.0)


def widest_ratio(ratios: Floats, weights: Floats, share: float) -> float:
    """e^ω with all but `share` of the weight at or below ω."""
    below = np.cumsum(weights)
    return float(np.exp(ratios[np.searchsorted(below, (1.0 - share) * below[-1])]))
