"""All products of up to p columns, so that dot products are exactly the polynomial kernel."""

from __future__ import annotations

from math import comb, lgamma, log
from typing import Any

import numpy as np

from kafeat.contract.step import Sample, Transform, parameter
from kafeat.errors import DataError
from kafeat.maths.dot_products import Coef0, PolynomialMap, fit_gamma
from kafeat.types import Array, Floats, Scratch, Shapes, State

MAX_WIDTH = 100_000


class PolynomialFeatures(PolynomialMap):
    """Every monomial: z(x)·z(y) = (γ x·y + c₀)^p, exactly.

    By the multinomial theorem, an output is √(p!/(k₀! k₁! … k_d!) c₀^{k₀}) Π (√γ x_i)^{k_i} for every k with Σk = p, by
    degree and then in the order of the columns. There are C(d + p, p) outputs, or C(d + p − 1, p) if c₀ is 0, but at
    most 100,000.

    Source: Cotter, Keshet & Srebro 2011, section 3 (explicit monomials of the polynomial kernel).
    """

    coef0: Coef0 = parameter(1.0, "c₀; 0 leaves the monomials of degree p only")

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        try:
            self._check_width(sample.X.shape[1])
        except ValueError as error:
            raise DataError(f"polynomial_features: {error}") from None
        return {"gamma": np.array(fit_gamma(self.gamma, sample.X, rng))}

    def _check_width(self, d: int) -> None:
        width = self._width(d)
        if width > MAX_WIDTH:
            raise ValueError(
                f"expected at most {MAX_WIDTH:,} outputs, got {width:,} from degree {self.degree} and {d:,} inputs: "
                "lower the degree, use fewer columns, or use tensor_sketch"
            )

    def _width(self, d: int) -> int:
        lowest = 0 if self.coef0 > 0 else self.degree
        return sum(count_monomials(d, q) for q in range(lowest, self.degree + 1))

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        return {"gamma": ()}

    def check_state(self, state: State, n_features_in: int) -> None:
        super().check_state(state, n_features_in)
        self._check_width(n_features_in)

    def n_features_out(self, state: State, n_features_in: int) -> int:
        return self._width(n_features_in)

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return _MonomialTransform(self, float(state["gamma"]), n_features_in, dtype)


def count_monomials(d: int, q: int) -> int:
    """Return the number of monomials of degree q in d variables."""
    return comb(d + q - 1, q)


def factors_of(d: int, q: int) -> tuple[Array, Array]:
    """Return for each monomial of degree q the index of its first variable, and of its factor of degree q − 1."""
    counts = [count_monomials(d - j, q - 1) for j in range(d)]
    # monomials without a variable before j come last
    lower = [np.arange(counts[0] - count, counts[0]) for count in counts]
    return np.repeat(np.arange(d), counts), np.concatenate(lower)


def monomial_weights(recipe: PolynomialFeatures, d: int, q: int) -> Floats:
    """Return the weights √(p!/(k₀! k₁! … k_d!) c₀^{k₀}) of the monomials of degree q, in their order."""
    p = recipe.degree
    of_constant = (p - q) * log(recipe.coef0) if p > q else 0.0
    return np.exp(_log_repeats(d, q) + 0.5 * (lgamma(p + 1) - lgamma(p - q + 1) + of_constant))


class _MonomialTransform(Transform):
    """A transform degree by degree: x_j is multiplied by the monomials of degree q − 1 without variables before j."""

    gives_sparse = True

    def __init__(self, recipe: PolynomialFeatures, gamma: float, d: int, dtype: np.dtype[Any]) -> None:
        self.n_features_in = d
        p = self._degree = recipe.degree
        self._widths = [count_monomials(d, q) for q in range(p + 1)]
        # Without c₀, the lower degrees are only intermediate results.
        self._lowest = 0 if recipe.coef0 > 0 else p
        self.n_features_out = sum(self._widths[self._lowest :])
        self._root = dtype.type(np.sqrt(gamma))
        self._weights = np.concatenate(
            [monomial_weights(recipe, d, q) for q in range(self._lowest, p + 1)]
        ).astype(dtype)
        self._dtype = dtype

    def scratch(self, rows: int) -> Scratch:
        lower = np.empty(rows * sum(self._widths[: self._lowest]), dtype=self._dtype)
        return np.empty((rows, self.n_features_in), dtype=self._dtype), lower

    def apply(self, X: Floats, out: Floats, scratch: Scratch) -> None:
        scaled, below = scratch
        np.multiply(X, self._root, out=scaled)
        levels = self._levels(out, below)
        levels[0][...] = 1.0
        d = self.n_features_in
        for q in range(1, self._degree + 1):
            lower, target, start = levels[q - 1], levels[q], 0
            for j in range(d):
                # monomials without a variable before j come last
                count = count_monomials(d - j, q - 1)
                np.multiply(
                    lower[:, lower.shape[1] - count :],
                    scaled[:, j : j + 1],
                    out=target[:, start : start + count],
                )
                start += count
        out *= self._weights

    def _levels(self, out: Floats, flat: Floats) -> list[Floats]:
        """Return arrays for the monomials of each degree: parts of `out`, or of a buffer for intermediate results."""
        rows = len(out)
        below = flat.reshape(rows, -1) if out.strides[0] >= out.strides[1] else flat.reshape(-1, rows).T
        levels, starts = [], [0, 0]
        for q, width in enumerate(self._widths):
            target, which = (below, 0) if q < self._lowest else (out, 1)
            levels.append(target[:, starts[which] : starts[which] + width])
            starts[which] += width
        return levels


def _log_repeats(d: int, q: int) -> Floats:
    """Return −½ Σ log k_i! for the monomials of degree q, in their order."""
    # A monomial is a sorted list of variables. One more in front starts a run of equal variables, or extends the first.
    if not q:
        return np.zeros(1)
    logs, first, run = np.zeros(d), np.arange(d), np.ones(d, dtype=np.int64)
    for degree in range(2, q + 1):
        variables, lower = factors_of(d, degree)
        run = np.where(first[lower] == variables, run[lower] + 1, 1)
        logs, first = logs[lower] - 0.5 * np.log(run), variables
    return logs
