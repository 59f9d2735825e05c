"""Frequencies and coefficients κ_j ≥ 0 of a homogeneous map: k̂(ω) = κ₀ + 2 Σ_j κ_j cos(jLω) approximates 𝒦(ω).

Each window is a pair: the frequencies L, 2L, …, nL (n,), and the coefficients κ₀, …, κ_n (n + 1,).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from kafeat.maths.kernels.histograms import spectral_kernel
from kafeat.types import Floats

Coefficients = tuple[Floats, Floats]

MOST_SOLVED = 32
"""The highest order that is optimized. Above it, a rectangular window's error is below the solver's precision."""
# The grid of ω = log(y/x), for ratios up to 10,000, on which `minimax` minimizes the largest error.
_RATIOS = np.linspace(0.0, np.log(1e4), 256)
# Periods to try, relative to the rectangular window's, before the best one is refined.
_PERIODS = np.geomspace(0.6, 1.7, 24)


def uniform(kernel: str, order: int, period: float | None) -> Coefficients:
    """Return the uniform window: samples L κ(jL) of the spectrum (Vedaldi & Zisserman 2012, equation 15)."""
    spectral = spectral_kernel(kernel)
    step = 2.0 * np.pi / (period or spectral.period("uniform", order))
    frequencies = step * np.arange(order + 1)
    return frequencies[1:], step * spectral.spectrum(frequencies)


def rectangular(kernel: str, order: int, period: float | None) -> Coefficients:
    """Return the rectangular window: positive Fourier coefficients of 𝒦 cut to one period (equation 18)."""
    from scipy.integrate import quad

    spectral = spectral_kernel(kernel)
    step = 2.0 * np.pi / (period or spectral.period("rectangular", order))
    half = np.pi / step
    pairs: list[tuple[float, float]] = []
    j = 0
    while len(pairs) <= order:
        # With weight="cos", `quad` integrates 𝒦(ω) cos(jLω) even where the cosine oscillates fast.
        value = (
            quad(
                lambda ratio: float(spectral.signature(np.asarray(ratio))),
                0.0,
                half,
                weight="cos",
                wvar=j * step,
                limit=200,
            )[0]
            / half
        )
        if value > 0.0 or j == 0 or j > 4 * order + 8:
            pairs.append((j * step, max(value, 0.0)))
        j += 1
    frequencies, coefficients = np.array(pairs).T
    return frequencies[1:], coefficients


def minimax(
    kernel: str, order: int, period: float | None, widest: float = 20.0, beyond: float | None = None
) -> Coefficients:
    """Return the coefficients that minimize the maximum of |k̂ − k|/max(x, y)^γ, equal to e^{−|ω|/2}|ε(ω)|.

    ε is k̂ − 𝒦. The error of ratios above `widest` has the weight `beyond` (by default a fifth for chi2 and
    jensen_shannon). Such ratios are rare and their kernel is small, but errors would be large without any weight. For
    intersection, every ratio has the weight 1, because with less weight for large ratios, only the error at the kink of
    the signature would be reduced.
    """
    if order > MOST_SOLVED:
        return rectangular(kernel, order, period)
    if beyond is None:
        beyond = 1.0 if kernel == "intersection" else 0.2
    window = _minimax(kernel, order, period, widest, beyond)
    return window[0].copy(), window[1].copy()


@lru_cache(maxsize=64)
def _minimax(kernel: str, order: int, period: float | None, widest: float, beyond: float) -> Coefficients:
    weights = np.exp(-0.5 * _RATIOS) * np.where(np.log(widest) >= _RATIOS, 1.0, beyond)
    target = spectral_kernel(kernel).signature(_RATIOS)

    def solve(step: float) -> tuple[float, Floats]:
        return _least_maximum(_waves(_RATIOS, order, step), target, weights)

    return _best_period(kernel, order, period, solve) or rectangular(kernel, order, period)


def least_squares(
    kernel: str, order: int, period: float | None, ratios: Floats, weights: Floats
) -> Coefficients:
    """Return the κ_j ≥ 0 that minimize Σ weight·(k̂ − 𝒦)²(ω). If `period` is None, the best period is used."""
    from scipy.optimize import nnls

    if order > MOST_SOLVED:
        return rectangular(kernel, order, period)
    roots = np.sqrt(weights)
    target = roots * spectral_kernel(kernel).signature(ratios)

    def solve(step: float) -> tuple[float, Floats]:
        try:
            coefficients, residual = nnls(roots[:, None] * _waves(ratios, order, step), target)
        except RuntimeError:  # no convergence; another period will do better
            return np.inf, np.zeros(order + 1)
        return float(residual), coefficients

    return _best_period(kernel, order, period, solve) or rectangular(kernel, order, period)


def _waves(ratios: Floats, order: int, step: float) -> Floats:
    waves: Floats = 2.0 * np.cos(np.multiply.outer(ratios, step * np.arange(order + 1)))
    waves[:, 0] = 1.0
    return waves


def _best_period(
    kernel: str, order: int, period: float | None, solve: Callable[[float], tuple[float, Floats]]
) -> Coefficients | None:
    """Return frequencies and coefficients for the given or the best period, or None if no solution was found."""
    if period is None:
        start = spectral_kernel(kernel).period("rectangular", order)
        period = start if order == 0 else _search(lambda p: solve(2.0 * np.pi / p)[0], start * _PERIODS)
    step = 2.0 * np.pi / period
    loss, coefficients = solve(step)
    return (step * np.arange(1, order + 1), coefficients) if np.isfinite(loss) else None


def _search(loss: Callable[[float], float], periods: Floats) -> float:
    """Return the best of `periods`, refined by golden-section search between its neighbours."""
    losses = [loss(float(p)) for p in periods]
    best = int(np.argmin(losses))
    low, high = periods[max(best - 1, 0)], periods[min(best + 1, len(periods) - 1)]
    golden = (np.sqrt(5.0) - 1.0) / 2.0
    inner = [high - golden * (high - low), low + golden * (high - low)]
    values = [loss(p) for p in inner]
    for _ in range(12):
        if values[0] <= values[1]:
            high, inner, values = inner[1], [0.0, inner[0]], [0.0, values[0]]
            inner[0] = high - golden * (high - low)
            values[0] = loss(inner[0])
        else:
            low, inner, values = inner[0], [inner[1], 0.0], [values[1], 0.0]
            inner[1] = low + golden * (high - low)
            values[1] = loss(inner[1])
    best_inner = int(values[1] < values[0])
    return float(inner[best_inner] if values[best_inner] < losses[best] else periods[best])


def _least_maximum(waves: Floats, target: Floats, weights: Floats) -> tuple[float, Floats]:
    """Return the minimum of max weight·|waves κ − target| over κ ≥ 0, and that κ, by a linear program."""
    from scipy.optimize import linprog

    A, b = waves * weights[:, None], target * weights
    bound = np.ones((len(b), 1))
    solved = linprog(
        np.append(np.zeros(A.shape[1]), 1.0),
        np.block([[A, -bound], [-A, -bound]]),
        np.concatenate([b, -b]),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if not solved.success or solved.x is None:
        return np.inf, np.zeros(A.shape[1])
    return float(solved.x[-1]), np.maximum(solved.x[:-1], 0.0)


# The width of a bin of log(y/x). An entry is divided between its two nearest bins, so the error is of second order.
_BIN = 0.02
# Entries with weights below this share of the column's largest weight are left out, and so are ratios above e^64.
_LIGHTEST = 1e-8
_WIDEST = 64.0
# The most entries of the sample that are used.
_MOST_ENTRIES = 1 << 22


def ratio_weights(X: Floats, homogeneity: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return a grid of ω ≥ 0, and for each the sum of (xy)^γ over pairs of entries of a column with |log(y/x)| ≈ ω.

    The sums are autocorrelations of weighted histograms of log x, so that all pairs are counted in about linear time.
    If there are more than about four million entries, a random subset of the rows is used.
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
    """Return the ratio e^ω below which all but `share` of the weight lies."""
    below = np.cumsum(weights)
    return float(np.exp(ratios[np.searchsorted(below, (1.0 - share) * below[-1])]))
