"""A metric learned from a label: the average outer product of the gradients of a fitted function.

Directions in which a good predictor changes much count more in distances, and others less. The predictor is ridge on
orthogonal Fourier features of the rbf kernel, whose gradients have a closed form. Every estimate improves the next
predictor, so there are a few rounds.

Source: Radhakrishnan, Beaglehole, Pandit & Belkin, Science 383:1461, 2024.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2

import numpy as np

from kafeat.contract.folds import RowKeys
from kafeat.contract.kernel_inputs import squared_distances
from kafeat.maths.bandwidth import resolve_gamma
from kafeat.maths.fourier.learning import waves
from kafeat.maths.held_out_ridge import HeldOutRidge, clearly_better, fit_held_out_ridge, hold_out
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernel_error import power_of_two
from kafeat.maths.kernels.shift_invariant import RbfKernel
from kafeat.maths.nystroem.projection import whitening
from kafeat.types import Array, Floats

# With fewer rows, the metric is the identity.
LEAST_ROWS = 200
_FREQUENCIES = 256
# The landmarks of the Nyström map that judges a metric, and the relative eigenvalue below which the map drops
# directions.
_LANDMARKS, _RCOND = 512, 1e-8
# Directions with a smaller share of the variance than this count as constant.
_ROUNDING = 1e-12
# Candidates for γ, relative to the median rule in the first round, and to the best multiple so far in later rounds.
_FIRST_MULTIPLES = [0.1, 0.3, 1.0, 3.0]
_LATER_MULTIPLES = [0.3, 1.0, 3.0]


def learn_metric(
    X: Floats,
    Y: Floats,
    rng: np.random.Generator,
    *,
    alpha: float = 1.0,
    iterations: int = 5,
    rank: int | None = None,
    diagonal: bool = False,
    most_rows: int = 6000,
    keys: RowKeys | None = None,
) -> dict[str, Floats]:
    """Learn the metric of rows X (n, d) for the targets Y (n, k).

    M is the average outer product of gradients. L is M^(α/2), or its `rank` leading eigenvectors times the roots of
    their eigenvalues. With `diagonal`, only the diagonal of M is used. Without a rank, L is the identity unless M^(α/2)
    improves the predictions of held-out rows by more than the noise of the difference.

    Returns
    -------
    dict of arrays
        `root` is L (d, r), or the weights (d,) of x ↦ x∘L. M is described by `spectrum` (d,), its eigenvalues, of which
        the largest is 1, and by `importance` (d,), its diagonal divided by its sum. `error_identity` and `error_kept`
        are the errors with the identity and with L on rows that were used for nothing else, as shares of the variance
        of the targets. Both errors are absent if there are too few rows, or if all rows are equal.
    """
    identity = np.ones(X.shape[1]) if diagonal else np.eye(X.shape[1])
    of_rows, of_guard, of_rounds, of_judges = rng.spawn(4)
    rest, judged = hold_out(len(X), of_rows, most_rows, keys)
    of_rest = None if keys is None else keys.select(rest)
    train, held = (rest[part] for part in hold_out(len(rest), of_guard, len(rest), of_rest))
    if min(len(X), most_rows) < LEAST_ROWS or not (np.ptp(X[train], axis=0) > 0.0).any():
        root = _root(identity, alpha, rank)
        return {"root": root, "spectrum": np.ones(X.shape[1]), "importance": _shares(identity)}
    X, Y = _in_units(X, train), Y - Y[train].mean(axis=0)
    data = _Data(*(A[rows] for rows in (train, held) for A in (X, Y)))
    first, *learned = _rounds(
        data,
        _varying(X[np.concatenate([rest, judged])], diagonal),
        iterations,
        alpha,
        of_rounds,
    )
    best = min(learned, key=lambda found: found.ridge.error, default=first)
    # Held-out rows have chosen the best round. Other rows judge it by a Nyström map, the map that most often follows.
    seed = int(of_judges.integers(1 << 63))  # the same draws for the identity and for the best round
    before, after = (_mapped(data, X[judged], Y[judged], one.root, seed) for one in (first, best))
    better = rank is not None or clearly_better(after, before)
    M, error = (best.M, after) if better else (identity, before)
    variance = float((Y[judged] ** 2).sum(axis=1).mean()) or 1.0
    return {
        "root": _root(M, alpha, rank),
        "spectrum": _spectrum(best.M),
        "importance": _shares(best.M),
        "error_identity": np.array(float(before.mean()) / variance),
        "error_kept": np.array(float(error.mean()) / variance),
    }


def _varying(X: Floats, diagonal: bool) -> Floats:
    """Return the projection onto the directions in which rows vary: (d, d) or, if `diagonal`, a 1 or 0 per column.

    Cosines and sines also vary in the other directions, but the rows contain no information about them.
    """
    varies = np.ptp(X, axis=0) > 0.0
    if diagonal:
        return varies.astype(np.float64)
    units = np.where(varies, X.std(axis=0), 1.0)
    scaled = (X - X.mean(axis=0)) / units * varies
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    constant, _ = np.linalg.qr(vectors[:, values <= _ROUNDING * values[-1]] / units[:, None])
    return np.eye(X.shape[1]) - constant @ constant.T


def _in_units(X: Floats, rows: Array) -> Floats:
    """Return X minus the mean of these rows, in a unit in which squares fit float64."""
    centred: Floats = X - X[rows].mean(axis=0)
    centred /= power_of_two(np.abs(centred[rows]).mean())
    return centred


@dataclass(frozen=True)
class _Round:
    """An estimate of M, its root L, and a ridge regression on Fourier features of XL."""

    M: Floats
    root: Floats
    frequencies: Floats
    ridge: HeldOutRidge


@dataclass(frozen=True)
class _Data:
    X: Floats
    Y: Floats
    held: Floats
    held_targets: Floats


def _rounds(
    data: _Data, start: Floats, iterations: int, alpha: float, rng: np.random.Generator
) -> Iterator[_Round]:
    """Yield a round with the projection `start`, then one per iteration, until two in a row do not improve."""
    M = L = start
    multiple, multiples = 1.0, _FIRST_MULTIPLES
    least, since = np.inf, 0
    for stream in rng.spawn(iterations + 1):
        ridge, frequencies, multiple = _best_ridge(data, L, [multiple * m for m in multiples], stream)
        yield _Round(M, L, frequencies, ridge)
        since = 0 if ridge.error < least else since + 1
        least = min(least, ridge.error)
        if since == 2:
            return
        multiples = _LATER_MULTIPLES
        Z = apply_root(data.X, L)
        if M.ndim == 1:
            M = L**2 * mean_squared_gradients(Z, frequencies, ridge.w)
        else:
            M = L @ mean_gradient_product(Z, frequencies, ridge.w) @ L.T
        size = float(np.abs(M).max())
        if not size > 0.0:  # the predictor is constant
            return
        M = M / size
        M /= _spectrum(M)[0]
        L = _root(M, alpha, None)


def _best_ridge(
    data: _Data, L: Floats, multiples: list[float], rng: np.random.Generator
) -> tuple[HeldOutRidge, Floats, float]:
    """Return the ridge model with the least held-out error over multiples of γ, its frequencies, and that multiple."""
    of_gamma, of_draw = rng.spawn(2)
    Z, held = apply_root(data.X, L), apply_root(data.held, L)
    gamma = resolve_gamma("median", RbfKernel(), Z, of_gamma)
    drawn = (
        RbfKernel().frequencies(KernelParameters(gamma=gamma)).orthogonal(_FREQUENCIES, Z.shape[1], of_draw)
    )
    fits = []
    for multiple in multiples:
        frequencies = drawn * np.sqrt(multiple)
        ridge = fit_held_out_ridge(
            waves(Z, frequencies, None), data.Y, waves(held, frequencies, None), data.held_targets
        )
        fits.append((ridge, frequencies, multiple))
    return min(fits, key=lambda fit: fit[0].error)


def _mapped(data: _Data, X: Floats, Y: Floats, L: Floats, seed: int) -> Floats:
    """Estimate the squared errors (n,) of ridge with many rbf landmarks, for rows X (n, d) with targets Y (n, k).

    They are measured with m ≤ 512 landmarks. For many columns, a matrix L improves a map of few landmarks far more than
    a map of many. The errors are therefore extrapolated from m/2 and m to 2m landmarks. γ is chosen with m/2 landmarks.
    """
    train, held, new = (apply_root(rows, L) for rows in (data.X, data.held, X))
    gamma = resolve_gamma("median", RbfKernel(), train, np.random.default_rng(seed))
    squares = [squared_distances(rows, train[:_LANDMARKS]) for rows in (train[:_LANDMARKS], train, held, new)]

    def fitted(m: int, multiple: float) -> tuple[float, Floats]:
        """Return the mean error on the held-out rows, and the squared errors of the rows X."""
        K, *across = (np.exp(-multiple * gamma * squared[:, :m]) for squared in squares)
        white = whitening(*np.linalg.eigh(K[:m]), _RCOND)
        known, chosen, judged = (one @ white for one in across)
        ridge = fit_held_out_ridge(known, data.Y, chosen, data.held_targets)
        return ridge.error, ridge.residuals(judged, Y)

    m = min(_LANDMARKS, len(train))
    of_half = {multiple: fitted(m // 2, multiple) for multiple in _LATER_MULTIPLES}
    multiple = min(of_half, key=lambda one: of_half[one][0])
    errors, doublings = fitted(m, multiple)[1], min(1.0, log2(len(train) / m)) if L.ndim == 2 else 0.0
    return errors + doublings * (errors - of_half[multiple][1])


def mean_gradient_product(X: Floats, frequencies: Floats, weights: Floats) -> Floats:
    """Return (1/n) Σ_i Σ_c ∇f_c(x_i) ∇f_c(x_i)ᵀ, (d, d), of f = waves(x) @ weights, with weights (2m, k)."""
    return frequencies.T @ _between_frequencies(X, frequencies, weights) @ frequencies


def mean_squared_gradients(X: Floats, frequencies: Floats, weights: Floats) -> Floats:
    """Return the diagonal of `mean_gradient_product`, (d,)."""
    S = _between_frequencies(X, frequencies, weights)
    return np.einsum("jd,jd->d", S @ frequencies, frequencies)


def _between_frequencies(X: Floats, frequencies: Floats, weights: Floats) -> Floats:
    """Return S (m, m) with ΩᵀSΩ = (1/n) Σ_i Σ_c ∇f_c ∇f_cᵀ.

    ∇f_c = Σ_j (−a_jc sin ω_j·x + b_jc cos ω_j·x) ω_j, with weights a of the cosines and b of the sines. The sum over
    rows becomes products of waves, and the sum over targets becomes products of weights.
    """
    m = len(frequencies)
    features = waves(X, frequencies, None)
    products = features.T @ features / len(X)
    a, b = weights[:m], weights[m:]
    mixed = products[m:, :m] * (a @ b.T)
    return products[m:, m:] * (a @ a.T) + products[:m, :m] * (b @ b.T) - mixed - mixed.T


def apply_root(X: Floats, L: Floats) -> Floats:
    """Return XL, or X∘L for weights L (d,) of the columns."""
    return X * L if L.ndim == 1 else X @ L


def _spectrum(M: Floats) -> Floats:
    values = M if M.ndim == 1 else np.linalg.eigvalsh(M)
    return np.sort(np.maximum(values, 0.0))[::-1]


def _shares(M: Floats) -> Floats:
    weights = np.maximum(M if M.ndim == 1 else M.diagonal(), 0.0)
    return weights / weights.sum()


def _root(M: Floats, alpha: float, rank: int | None) -> Floats:
    """Return M^(α/2), (d, d) or (d,), or the leading eigenvectors times the roots of their eigenvalues, (d, rank)."""
    if M.ndim == 1:
        return np.maximum(M, 0.0) ** (alpha / 2.0)
    values, vectors = np.linalg.eigh(M)
    roots = np.maximum(values, 0.0) ** (alpha / 2.0)
    if rank is None:
        return (vectors * roots) @ vectors.T
    leading = vectors[:, ::-1][:, :rank]
    leading = leading * np.sign(leading[np.abs(leading).argmax(axis=0), np.arange(rank)])
    return leading * roots[::-1][:rank]
