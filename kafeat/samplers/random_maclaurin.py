"""Random products of columns for kernels of dot products: polynomial and exponential."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import field_validator

from kafeat.contract.checks import count_rows
from kafeat.contract.kernel_inputs import KernelInputs
from kafeat.contract.memory import blocks
from kafeat.contract.step import N_COMPONENTS, Sample, Step, Transform, Width, parameter
from kafeat.contract.tile import is_feature_major, shaped
from kafeat.contract.traits import ExactTraits, Traits
from kafeat.errors import DataError
from kafeat.maths.dot_products import (
    COEFFICIENTS,
    GAMMA,
    MOST_DEGREES,
    Coef0,
    Coefficients,
    Degree,
    ExactTerms,
    Gamma,
    check_series,
    fit_gamma,
)
from kafeat.maths.kernel import KernelParameters, spelled_out
from kafeat.maths.kernels import find_kernel
from kafeat.types import Array, ArrayOf, Floats, Shapes, State

_PAIRS = 1_000
# Degrees that are less likely than the resolution of a random number are left out.
_RESOLUTION = 2.0**-53
# If the last degree has more than this share of the outputs, fitting fails, because higher degrees would be missing.
_CUT_OFF = 1e-4


class RandomMaclaurin(Step):
    """Random Maclaurin features: z(x)·z(y) ≈ (γ x·y + c₀)^p, e^{γ x·y}, or any Σ a_n (γ x·y)^n with a_n ≥ 0, unbiased.

    Each kernel is a series Σ a_n (γ x·y)^n. If a₀ > 0, one output is √a₀, which gives the term n = 0 exactly. The
    linear term is exact as well if its d outputs √(a₁γ) x leave less variance than drawn outputs. The other m outputs
    are drawn: each is √(a_n/(m q_n)) Π_{j ≤ n} √γ w_j·x, with random signs w_j and a degree n that has the probability
    q_n. The estimate is unbiased for all q_n > 0, and its variance is least for q_n ∝ a_n√V_n. V_n is the variance of
    one product of degree n, estimated on the fit sample. The error falls like 1/√D.

    Source: Kar & Karnick 2012, algorithm 1 and section 6 (H0/1).
    """

    always: ClassVar[Traits] = Traits(exact=ExactTraits(needs_coordinates=False))

    kernel: Literal["polynomial", "exponential", "series"] = parameter(
        "polynomial", "the kernel to approximate; series is given by `coefficients`"
    )
    coefficients: Coefficients | None = COEFFICIENTS
    degree: Degree = parameter(2, "p, the degree of a polynomial kernel")
    gamma: Gamma = GAMMA
    coef0: Coef0 = parameter(1.0, "c₀ of a polynomial kernel")
    n_components: Width = N_COMPONENTS

    @field_validator("kernel", mode="before")
    @classmethod
    def _long_name(cls, kernel: object) -> object:
        return spelled_out(kernel)

    def check_parameters(self) -> None:
        check_series(self, self.kernel, self.coefficients)

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        of_gamma, of_pairs, of_degrees, of_signs = rng.spawn(4)
        d = sample.X.shape[1]
        gamma = fit_gamma(self.gamma, sample.X, of_gamma)
        logs = self._log_coefficients()
        squares, moments = _of_pairs(sample.X, gamma, of_pairs)
        plan = self._plan(logs, _log_spread(squares, moments, len(logs)), d)
        q = plan.probabilities
        if self.kernel == "exponential" and q[-1] > _CUT_OFF:
            raise DataError(
                "random_maclaurin: expected rows for which the series of e^(gamma x·y) ends before degree "
                f"{MOST_DEGREES}, got some for which that degree has a share of {q[-1]:.2g}: scale the input, or "
                "lower gamma"
            )
        degrees = _systematic(q, plan.m, of_degrees)
        with np.errstate(divide="ignore"):
            log_weights = 0.5 * (logs[degrees] - np.log(q[degrees]) - np.log(max(plan.m, 1)))
        return {
            "degrees": degrees,
            "weights": np.exp(log_weights) if q.any() else np.zeros(plan.m),
            "signs": of_signs.choice(np.array([-1, 1], dtype=np.int8), size=(int(degrees.sum()), d)),
            "linear": np.array(plan.linear),
            "gamma": np.array(gamma),
        }

    def _log_coefficients(self) -> Floats:
        """Return log a_n for n = 0, 1, … of the kernel Σ a_n (γ x·y)^n. It is −∞ where a_n is 0."""
        from scipy.special import gammaln

        if self.kernel == "exponential":
            return -gammaln(np.arange(MOST_DEGREES) + 1.0)
        if self.coefficients is not None:
            with np.errstate(divide="ignore"):
                # at least two coefficients, because `_plan` reads that of the linear part
                series: Floats = np.log(np.array([*self.coefficients, 0.0]))
            return series
        n, p = np.arange(self.degree + 1), self.degree
        with np.errstate(divide="ignore", invalid="ignore"):
            powers = np.where(n == p, 0.0, (p - n) * np.log(self.coef0))
        return gammaln(p + 1.0) - gammaln(n + 1.0) - gammaln(p - n + 1.0) + powers

    @property
    def _constant(self) -> bool:
        """True if the first output carries a₀ exactly."""
        first = self.coef0 if self.coefficients is None else self.coefficients[0]
        return self.n_components > 1 and (self.kernel == "exponential" or first > 0)

    def _plan(self, logs: Floats, spread: Floats, d: int) -> _Monomials:
        """Return the plan of least variance: the degrees to draw, how many, and whether degree 1 is exact."""
        sizes = logs + spread
        if self._constant:
            sizes[0] = -np.inf
        m = self.n_components - self._constant
        drawn = _Monomials(False, m, sizes)
        if m <= d or logs[1] == -np.inf:
            return drawn
        without = sizes.copy()
        without[1] = -np.inf
        exact = _Monomials(True, m - d, without)
        return exact if exact.log_variance < drawn.log_variance else drawn

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        linear = bool(state["linear"].any()) if "linear" in state else False
        m = self.n_components - self._constant - (n_features_in if linear else 0)
        return {
            "degrees": ArrayOf((m,), "int64", below=MOST_DEGREES),
            "weights": (m,),
            "signs": ArrayOf((count_rows(state, "signs"), n_features_in), "int8"),
            "linear": ArrayOf((), "bool"),
            "gamma": (),
        }

    def check_state(self, state: State, n_features_in: int) -> None:
        super().check_state(state, n_features_in)
        degrees, signs = state["degrees"], state["signs"]
        if int(degrees.sum()) != len(signs) or (np.diff(degrees) > 0).any():
            raise ValueError("state.degrees: expected falling numbers whose sum is the number of signs")

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return _MaclaurinTransform(state, n_features_in, self.exact_terms(state), dtype)

    def exact_terms(self, state: State) -> ExactTerms:
        """Return the terms √a₀ and √(a₁γ) x that outputs carry exactly."""
        roots = np.exp(0.5 * self._log_coefficients()[:2])
        linear = float(roots[1]) * float(np.sqrt(float(state["gamma"])))
        return ExactTerms(float(roots[0]) if self._constant else None, linear if state["linear"] else None)

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        return find_kernel(self.kernel).gram(pair, KernelParameters.of(self, float(state["gamma"])))


@dataclass(frozen=True)
class _Monomials:
    """A plan: m outputs with degrees drawn in proportion to exp(log_sizes), and whether degree 1 is exact."""

    linear: bool
    m: int
    log_sizes: Floats

    @property
    def probabilities(self) -> Floats:
        """The probabilities q of the degrees, all 0 if nothing is left to draw."""
        top = self.log_sizes.max()
        if top == -np.inf:
            return np.zeros(len(self.log_sizes))
        q = np.exp(self.log_sizes - top)
        q /= q.sum()
        q[q < _RESOLUTION] = 0.0
        return q / q.sum()

    @property
    def log_variance(self) -> float:
        """The logarithm of the least possible variance, (Σ a_n√V_n)²/m."""
        total = float(np.logaddexp.reduce(self.log_sizes))
        return 2.0 * total - float(np.log(self.m)) if total > -np.inf else -np.inf


def _of_pairs(X: Floats, gamma: float, rng: np.random.Generator) -> Floats:
    """Return the `_moments` of random pairs of rows of √γ·X, (2, pairs)."""
    pairs = rng.integers(len(X), size=(2, _PAIRS))
    some = (X[pairs[:, block]].astype(np.float64) for block in blocks(_PAIRS, X.shape[1]))
    return np.hstack([_moments(*(np.sqrt(gamma) * rows)) for rows in some])


def _moments(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return (x·y)² and E[(w·x)²(w·y)²] over random signs w, for each row x and y of (n, d), (n,)."""
    dots = np.einsum("ij,ij->i", x, y) ** 2
    sizes = np.einsum("ij,ij->i", x, x) * np.einsum("ij,ij->i", y, y)
    return dots, sizes + 2.0 * (dots - np.einsum("ij,ij->i", x**2, y**2))


def _log_spread(squared_dots: Floats, moments: Floats, degrees: int) -> Floats:
    """Return ½ log V_n for n = 0 … degrees − 1. V_n is the mean over pairs of E[Π(w_j·x)²(w_j·y)²] − (x·y)^{2n}."""
    kept = moments > 0
    if not kept.any():
        return np.zeros(degrees)
    ratios = np.clip(squared_dots[kept] / moments[kept], 0.0, 1.0)
    # Moments are clipped, because a few outliers would give all weight to the highest degrees.
    logs = np.log(np.minimum(moments[kept], np.quantile(moments[kept], 0.95)))
    n = np.arange(degrees)[:, None]
    # A hundredth of the second moment is added, so that a degree remains possible even if its variance is 0.
    top = logs.max()
    with np.errstate(under="ignore"):
        variances = np.exp(n * (logs - top)) * (1.01 - ratios**n)
    return 0.5 * (np.log(variances.sum(axis=1) / len(moments)) + n[:, 0] * top)


def _systematic(q: Floats, m: int, rng: np.random.Generator) -> Array:
    """Draw m degrees in descending order. Degree n occurs m·q_n times, rounded up or down at random."""
    if not q.any():
        return np.zeros(m, dtype=np.int64)
    order = rng.permutation(len(q))
    ends = np.cumsum(q[order])
    drawn = order[
        np.minimum(
            np.searchsorted(ends, (rng.random() + np.arange(m)) / max(m, 1), side="right"),
            np.flatnonzero(q[order])[-1],
        )
    ]
    return -np.sort(-drawn.astype(np.int64))


class _MaclaurinTransform(Transform):
    """A transform by one matrix product per level: level j multiplies the outputs of degree ≥ j by one more factor."""

    def __init__(self, state: State, d: int, terms: ExactTerms, dtype: np.dtype[Any]) -> None:
        root = np.sqrt(float(state["gamma"]))
        degrees, signs = state["degrees"], state["signs"]
        counts = [int((degrees >= level).sum()) for level in range(1, int(degrees.max(initial=0)) + 1)]
        ends = np.cumsum([0, *counts])
        self._levels = [
            np.ascontiguousarray(root * signs[start:stop], dtype=dtype) for start, stop in pairwise(ends)
        ]
        self._weights = state["weights"].astype(dtype)
        self.n_features_in, self._terms, self._exact = d, terms, terms.count(d)
        self.n_features_out = self._exact + len(degrees)
        self._dtype = dtype

    def scratch(self, rows: int) -> Floats:
        widest = len(self._levels[0]) if self._levels else 0
        return np.empty(rows * widest, dtype=self._dtype)

    def apply(self, X: Floats, out: Floats, scratch: Floats) -> None:
        self._terms.write(X, out)
        drawn = out[:, self._exact :]
        drawn[...] = self._weights
        for signs in self._levels:
            factor = shaped(scratch, (len(X), len(signs)), is_feature_major(out))
            np.matmul(X, signs.T, out=factor)
            drawn[:, : len(signs)] *= factor
