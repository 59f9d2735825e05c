"""Frequencies and weights fitted to the data: the same cost when transforming, but a fraction of the error.

A draw of frequencies has to serve every possible data set. Two methods improve the draw for one data set. Both use
random pairs of rows of the fit sample, whose kernel is known exactly:
- weights: in the estimate Σ_j a_j cos(ω_j·δ), replace a_j = 1/m by the least-squares solution with a ≥ 0, Σa = 1;
- learning: minimize the squared kernel error over the frequencies themselves, by gradient descent.
Held-out rows then decide whether the result or the original draw is kept. Both give a positive definite kernel with
k(x, x) = 1, but fitted frequencies and weights are no longer exactly unbiased.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from kafeat.contract.memory import blocks
from kafeat.contract.threads import check
from kafeat.maths.fourier.spectra import FrequencyDistribution
from kafeat.maths.fourier.transform import cos_sin
from kafeat.maths.kernel_error import power_of_two
from kafeat.types import Array, Floats

# If the sample has fewer rows than this, the drawn frequencies are not fitted.
_LEAST_ROWS = 100
# The most rows held out to compare fitted with drawn frequencies.
_MOST_HELD_OUT = 1000

_WEIGHT_PAIRS = 20_000
_WEIGHT_RIDGE = 1e-3

# Small batches and many steps, because the gradient's noise falls with the error itself.
_BATCH = 512
_STEPS = 1200
_LEAST_STEPS = 150
_RATE = 0.05
# The most floating-point operations for learning: about ten seconds of one core.
_BUDGET = 6e11

# Coordinates are clipped at this many wavelengths, because sums of squares must fit float32.
_FARTHEST = 2.0**40
# The pairs of rows in a strip. A block of their differences has at most _STRIP · max(m, _LEAST_WAVES) numbers.
_STRIP, _LEAST_WAVES = 2000, 4096


@dataclass(frozen=True)
class FittedFrequencies:
    """Frequencies (m, d), their weights, and the errors on held-out rows before and after fitting.

    `weights` (m,) are None if all are equal. Errors are None if nothing was fitted. `phases` (m,) replace the drawn
    phases of offset features; None keeps the drawn phases.
    """

    frequencies: Floats
    weights: Floats | None
    error_drawn: float | None
    error_kept: float | None
    phases: Floats | None = None


def fit_frequencies(
    drawn: Floats,
    law: FrequencyDistribution,
    X: Floats,
    rng: np.random.Generator,
    *,
    learn: bool,
    weigh: bool,
) -> FittedFrequencies:
    """Fit the drawn frequencies (m, d), and weights, to rows X (n, d) in the coordinates of the frequencies.

    The computation is in units of a typical frequency, in which all numbers fit float32 for any scale of the data.
    """
    if len(X) < _LEAST_ROWS or not (learn or weigh):
        return FittedFrequencies(drawn, None, None, None)
    of_split, of_learning, of_weights = rng.spawn(3)
    order = of_split.permutation(len(X))
    held = min(len(X) // 5, _MOST_HELD_OUT)
    # Centre the rows: only their differences matter, and differences of large numbers would lose their digits.
    middle, unit = middle_of(X, order[:_MOST_HELD_OUT]), frequency_unit(drawn)
    test = in_units(X, order[:held], middle, unit, np.float64)
    train = in_units(X, order[held:], middle, unit, np.float32)
    drawn, law = drawn / unit, law.scaled(1.0 / unit)
    candidates: list[tuple[Floats, Floats | None]] = [(drawn, None)]
    frequencies = drawn
    if learn:
        frequencies = learn_frequencies(drawn, law, train, of_learning)
        candidates.append((frequencies, None))
    if weigh:
        candidates.append((frequencies, fit_weights(frequencies, law, train, of_weights)))
    exact = exact_kernel(law, test)
    errors = [relative_error(*candidate, exact, test) for candidate in candidates]
    best = int(np.argmin(errors))
    frequencies, weights = candidates[best]
    return FittedFrequencies(frequencies * unit, weights, errors[0], errors[best])


def frequency_unit(drawn: Floats) -> float:
    """Return a power of two near a typical frequency. Multiplication and division by it are exact."""
    sizes = np.abs(drawn[drawn != 0.0])
    return float(power_of_two(np.median(sizes))) if len(sizes) else 1.0


def in_units(X: Floats, rows: Array, middle: Floats, unit: float, dtype: DTypeLike) -> Floats:
    """Return these rows of X (n, d) minus `middle`, times `unit`, with extreme entries clipped."""
    scaled = np.empty((len(rows), X.shape[1]), dtype=dtype)
    for some in blocks(*scaled.shape):
        with np.errstate(over="ignore"):
            block = X[rows[some]].astype(np.float64)
            block = (block - middle) * unit
        scaled[some] = np.clip(block, -_FARTHEST, _FARTHEST)
    return scaled


def middle_of(X: Floats, rows: Array) -> Floats:
    """Return the median (d,) of each column over these rows of X (n, d)."""
    return np.concatenate(
        [np.median(X[rows, some], axis=0) for some in blocks(X.shape[1], max(1, len(rows)))]
    )


def kernel_of(law: FrequencyDistribution, differences: Floats) -> Floats:
    """Return k(δ), (n,), for rows δ (n, d) of any dtype. Blocks of rows are converted to float64."""
    some = blocks(*differences.shape)
    return np.concatenate([law.kernel(differences[rows].astype(np.float64)) for rows in some])


def exact_kernel(law: FrequencyDistribution, X: Floats) -> Floats:
    """Return the kernel between all rows of X (n, d), (n, n)."""
    return np.stack([kernel_of(law, X - x) for x in X])


def relative_error(frequencies: Floats, weights: Floats | None, exact: Floats, X: Floats) -> float:
    """Return the relative Frobenius error of the kernel Σ_j a_j cos(ω_j·(x − y)) over all pairs of rows of X (n, d)."""
    amplitudes = np.sqrt(1.0 / len(frequencies) if weights is None else weights)
    waves = cos_sin(X @ frequencies.T).reshape(len(X), 2, -1) * amplitudes
    waves = waves.reshape(len(X), -1)
    return float(np.linalg.norm(waves @ waves.T - exact) / np.linalg.norm(exact))


def fit_weights(
    frequencies: Floats, law: FrequencyDistribution, X: Floats, rng: np.random.Generator
) -> Floats:
    """Return a ≥ 0 with Σa = 1 that minimises Σ_pairs (k(δ) − Σ_j a_j cos ω_j·δ)² + λ‖a − 1/m‖².

    It is non-negative least squares on the Cholesky factor of the m × m normal matrix. Σa = 1 keeps k(0) = 1. Without
    it, k(0) would be about ½ for heavy-tailed distributions.
    """
    from scipy.optimize import nnls

    m = len(frequencies)
    waves = np.empty((_WEIGHT_PAIRS, m), dtype=np.float32)
    exact = np.empty(_WEIGHT_PAIRS, dtype=np.float32)
    narrow = frequencies.T.astype(np.float32)
    for start in range(0, _WEIGHT_PAIRS, _STRIP):
        pairs = _pairs(len(X), _STRIP, rng)
        for some in blocks(_STRIP, X.shape[1], _STRIP * max(m, _LEAST_WAVES)):
            delta, place = _differences(X, pairs[:, some]), slice(start + some.start, start + some.stop)
            exact[place] = kernel_of(law, delta)
            waves[place] = cos_sin(delta @ narrow)[:, :m]
    ridge = _WEIGHT_RIDGE * _WEIGHT_PAIRS
    normal = (waves.T @ waves).astype(np.float64)
    target = (waves.T @ exact).astype(np.float64) + ridge / m
    # An extra equation Σa = 1 with a large weight makes the sum about 1, and a division at the end makes it exact.
    heavy = 100.0 * normal.diagonal().mean()
    factor = np.linalg.cholesky(normal + ridge * np.eye(m) + heavy)
    weights, _ = nnls(factor.T, np.linalg.solve(factor, target + heavy))
    return weights / weights.sum()


def learn_frequencies(
    drawn: Floats, law: FrequencyDistribution, X: Floats, rng: np.random.Generator
) -> Floats:
    """Minimize the mean squared kernel error by Adam (Kingma & Ba 2015), with new random pairs of rows at each step.

    With r = (1/m) Σ_j cos ω_j·δ − k(δ), the gradient with respect to ω_j is −(2/m) mean(r sin(ω_j·δ) δ): two matrix
    products per step. The learning rate, in units of a typical coordinate of ω, falls like half a cosine.
    """
    m, d = drawn.shape
    steps = int(np.clip(_BUDGET / (_BATCH * m * (4.0 * d + 200.0)), _LEAST_STEPS, _STEPS))
    # |N(0, 1)| has the median 0.6745, so for rbf the unit is the standard deviation √(2γ).
    unit = np.median(np.abs(drawn)) / 0.6745
    frequencies = drawn.astype(np.float32)
    mean, square = np.zeros_like(frequencies), np.zeros_like(frequencies)
    angles = np.empty((_BATCH, m), dtype=np.float32)
    for step in range(1, steps + 1):
        check()
        delta = _differences(X, _pairs(len(X), _BATCH, rng))
        np.matmul(delta, frequencies.T, out=angles)
        waves = cos_sin(angles)
        residual = waves[:, :m].mean(axis=1) - kernel_of(law, delta)
        gradient = waves[:, m:].T @ (delta * residual[:, None].astype(np.float32))
        gradient *= np.float32(-1.0)
        mean += np.float32(0.1) * (gradient - mean)
        square += np.float32(0.001) * (gradient**2 - square)
        rate = _RATE * unit * 0.5 * (1.0 + np.cos(np.pi * step / steps))
        size = np.sqrt(square / np.float32(1.0 - 0.999**step))
        size += np.finfo(np.float32).tiny
        frequencies -= np.float32(rate / (1.0 - 0.9**step)) * (mean / size)
    return frequencies.astype(np.float64)


def _pairs(rows: int, n: int, rng: np.random.Generator) -> Array:
    """Return n random pairs of different row numbers below `rows`, (2, n)."""
    first = rng.integers(rows, size=n)
    return np.array([first, (first + rng.integers(1, rows, size=n)) % rows])


def _differences(X: Floats, pairs: Array) -> Floats:
    """Return x − y for each of these pairs (2, n) of rows of X, (n, d) in float32."""
    first, second = pairs
    differences = X[first].astype(np.float32, copy=False)
    differences -= X[second]
    return differences


BATCH = 128
# The learning rate rises like a sine during this share of the steps, and then falls like half a cosine.
_WARM_UP = 0.2
# While training, rows are pulled in to this many median distances, because a few outliers could dominate the gradient.
_FARTHEST_ROW = 3.0


def waves(X: Floats, frequencies: Floats, phases: Floats | None) -> Floats:
    """Return the features [cos ω_j·x, sin ω_j·x], or cos(ω_j·x + b_j) with phases b, in the dtype of X."""
    angles = X @ frequencies.T.astype(X.dtype)
    if phases is None:
        return cos_sin(angles)
    angles += phases.astype(X.dtype)
    return cos_sin(angles)[:, : len(frequencies)]


def gradients(
    W: Floats, V: Floats, b: Floats, x: Floats, y: Floats, phases: Floats | None
) -> tuple[Floats, Floats, Floats]:
    """Return the gradients of ½ mean ‖f(x)V + b − y‖² over a batch with respect to W, V and b. f(x) are the `waves`.

    R is the residuals times Vᵀ, divided by the number of rows. The gradient with respect to the angles is R_sin·cos −
    R_cos·sin. Its product with x is the gradient with respect to W.
    """
    m, angles = len(W), x @ W.T
    if phases is not None:
        angles += phases
    both = cos_sin(angles)
    cosines, sines = both[:, :m], both[:, m:]
    F = both if phases is None else cosines
    residual = (F @ V + b - y) / y.dtype.type(len(y))
    R = residual @ V.T
    by_angles = -sines * R[:, :m]
    if phases is None:
        by_angles += cosines * R[:, m:]
    return by_angles.T @ x, F.T @ residual, residual.sum(axis=0)


def cycle(t: float) -> float:
    """Return the learning rate after the share t of all steps, relative to the largest rate."""
    if t < _WARM_UP:
        return float(np.sin(0.5 * np.pi * t / _WARM_UP))
    return float(0.5 * (1.0 + np.cos(np.pi * (t - _WARM_UP) / (1.0 - _WARM_UP))))


def batches(n: int, steps: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield the row numbers of each batch. Every row occurs once before any row occurs again."""
    order = rng.permutation(n)
    for _ in range(steps):
        check()
        if len(order) < BATCH:
            order = np.concatenate([order, rng.permutation(n)])
        yield order[:BATCH]
        order = order[BATCH:]


def pull_in(X: Floats) -> Floats:
    """Return centred rows (n, d), scaled so that none is longer than `_FARTHEST_ROW` times the median length."""
    lengths = np.concatenate(
        [np.sqrt((X[some].astype(np.float64) ** 2).sum(axis=1)) for some in blocks(*X.shape)]
    )
    farthest = _FARTHEST_ROW * float(np.median(lengths))
    if not farthest:
        return X
    return X * (farthest / np.maximum(lengths, farthest))[:, None].astype(np.float32)


class Adam:
    """The optimizer Adam (Kingma & Ba 2015), which updates float32 arrays in place, each at its own rate."""

    def __init__(self, arrays: list[Floats], rates: list[float]) -> None:
        self._arrays, self._rates = arrays, rates
        self._means, self._squares = ([np.zeros_like(a) for a in arrays] for _ in range(2))
        self._t = 0

    def step(self, gradients: list[Floats], factor: float) -> None:
        """Update every array against its gradient. `factor` multiplies the learning rates."""
        self._t += 1
        one, two = 1.0 - 0.9**self._t, 1.0 - 0.99**self._t
        for array, gradient, rate, mean, square in zip(
            self._arrays, gradients, self._rates, self._means, self._squares, strict=True
        ):
            mean += np.float32(0.1) * (gradient - mean)
            square += np.float32(0.01) * (gradient * gradient - square)
            size = np.sqrt(square)
            size *= np.float32(1.0 / np.sqrt(two))
            size += np.finfo(np.float32).tiny
            array -= np.float32(factor * rate / one) * (mean / size)
