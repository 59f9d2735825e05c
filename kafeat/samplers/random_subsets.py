"""Random products of different columns: the ANOVA and all-subsets kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from kafeat.contract.kernel_inputs import KernelInputs
from kafeat.contract.step import (
    N_COMPONENTS,
    Sample,
    Step,
    Transform,
    Width,
    parameter,
    refuse_beside,
)
from kafeat.maths.dot_products import GAMMA, Degree, ExactTerms, Gamma, fit_gamma
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels import find_kernel
from kafeat.maths.kernels.column_sets import all_sets, degree_warning, larger_sets, sets_of_size
from kafeat.types import ArrayOf, Floats, Shapes, State

# The numbers in a buffer of rows and outputs, so that sums stay in the second-level cache.
_CACHED = 32_768


class RandomSubsets(Step):
    """Random features of column sets: z(x)·z(y) ≈ Σ_{|S|=p} Π_{i∈S} γ x_i y_i (anova) or Π (1 + γ x_i y_i), unbiased.

    An output is the same sum over sets with random signs in place of one of the rows: Σ_{|S|=p} Π_{i∈S} w_i √γ x_i, or
    Π (1 + w_i √γ x_i). Products of signs of different sets are uncorrelated, so the mean over the signs is the kernel.
    For all_subsets, one output carries the empty set exactly, and d outputs carry the single columns if that leaves
    less variance. The other outputs omit these sets. The error falls like 1/√D.

    Source: Shawe-Taylor & Cristianini 2004, section 9.2 (kernels); Atarashi, Maji & Oyama 2019 (features).
    """

    kernel: Literal["anova", "all_subsets"] = parameter(
        "anova", "sets of `degree` columns, or sets of any size"
    )
    degree: Degree = parameter(2, "p, the number of columns in a set of anova")
    gamma: Gamma = GAMMA
    n_components: Width = N_COMPONENTS

    def check_parameters(self) -> None:
        if self.kernel == "all_subsets":
            refuse_beside(self, ("degree",), "kernel: all_subsets")

    def width_warning(self, n_features_in: int) -> str | None:
        return degree_warning(self.kind, self.degree, n_features_in) if self.kernel == "anova" else None

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        of_gamma, of_signs = rng.spawn(2)
        d = sample.X.shape[1]
        gamma = fit_gamma(self.gamma, sample.X, of_gamma)
        linear = self.kernel == "all_subsets" and self._less_without_columns(np.sqrt(gamma) * sample.X)
        drawn = self._drawn(linear, d)
        return {
            "signs": of_signs.choice(np.array([-1, 1], dtype=np.int8), size=(drawn, d)),
            "linear": np.array(linear),
            "gamma": np.array(gamma),
        }

    @property
    def _constant(self) -> bool:
        """True if the first output is 1, the exact term of the empty set."""
        return self.kernel == "all_subsets" and self.n_components > 1

    def _drawn(self, linear: bool, d: int) -> int:
        return self.n_components - self._constant - (d if linear else 0)

    def _less_without_columns(self, X: Floats) -> bool:
        """Return True if carrying the single columns exactly reduces the variance of the other outputs.

        The variance of these outputs is about the squared mean of r(x, x), divided by their number. r is the part of
        the kernel that they approximate.
        """
        n, d = X.shape
        if self._drawn(True, d) < 1:
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            of_rest = [
                float(larger_sets(X.T**2, least, np.empty((2, n)), np.empty(n)).mean())
                / self._drawn(linear, d) ** 0.5
                for least, linear in ((1, False), (2, True))
            ]
        return bool(of_rest[1] < of_rest[0])

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        linear = bool(state["linear"].any()) if "linear" in state else False
        drawn = max(0, self._drawn(linear, n_features_in))
        return {"signs": ArrayOf((drawn, n_features_in), "int8"), "linear": ArrayOf((), "bool"), "gamma": ()}

    def check_state(self, state: State, n_features_in: int) -> None:
        super().check_state(state, n_features_in)
        if state["linear"] and (self.kernel == "anova" or self._drawn(True, n_features_in) < 1):
            raise ValueError("state.linear: expected false where no outputs are left for the single columns")

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        size = self.degree if self.kernel == "anova" else None
        return _SubsetsTransform(state, size, self.least_set(state), self.exact_terms(state), dtype)

    def least_set(self, state: State) -> int:
        """Return the size of the smallest sets in the random outputs. Other outputs carry all smaller sets exactly."""
        return int(self._constant) + int(bool(state["linear"]))

    def exact_terms(self, state: State) -> ExactTerms:
        """Return the terms 1 and √γ x that outputs carry exactly."""
        least, root = self.least_set(state), float(np.sqrt(float(state["gamma"])))
        return ExactTerms(1.0 if least > 0 else None, root if least > 1 else None)

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        return find_kernel(self.kernel).gram(pair, KernelParameters.of(self, float(state["gamma"])))


class _SubsetsTransform(Transform):
    """A transform that sums over sets of √γ w_i x_i by recurrence over the columns, some outputs at a time."""

    def __init__(
        self, state: State, size: int | None, least: int, terms: ExactTerms, dtype: np.dtype[Any]
    ) -> None:
        m, d = state["signs"].shape
        self.n_features_in, self.n_features_out = d, m + terms.count(d)
        self._size, self._least, self._terms, self._dtype = size, least, terms, dtype
        self._root, self._weight = dtype.type(np.sqrt(float(state["gamma"]))), dtype.type(m**-0.5)
        self._signs = np.ascontiguousarray(state["signs"].T, dtype=dtype)

    @property
    def _parts(self) -> int:
        """The number of buffers: some for the sums of the recurrence, one for a term, and one for a product."""
        return (self._size or 2) + 2

    def scratch(self, rows: int) -> Floats:
        m = self._signs.shape[1]
        return np.empty(self._parts * rows * min(m, max(64, _CACHED // max(1, rows))), dtype=self._dtype)

    def apply(self, X: Floats, out: Floats, scratch: Floats) -> None:
        n, m = len(X), self._signs.shape[1]
        self._terms.write(X, out)
        scaled, drawn = X.T * self._root, out[:, self.n_features_out - m :]
        block = len(scratch) // max(1, self._parts * n)
        for start in range(0, m, max(1, block)):
            signs = self._signs[:, start : start + block]
            buffers = scratch[: self._parts * n * signs.shape[1]].reshape(self._parts, n, -1)
            values = self._sums(_terms(scaled, signs, buffers[-1]), buffers[:-2], buffers[-2])
            np.multiply(values, self._weight, out=drawn[:, start : start + block])

    def _sums(self, terms: Iterator[Floats], sums: Floats, product: Floats) -> Floats:
        if self._size is not None:
            return sets_of_size(terms, sums, product)
        return larger_sets(terms, self._least, sums, product) if self._least else all_sets(terms, sums[0])


def _terms(columns: Floats, signs: Floats, product: Floats) -> Iterator[Floats]:
    """Yield w_i x_i for each column i, for all rows and outputs, always in the same buffer (n, m)."""
    for x, w in zip(columns, signs, strict=True):
        yield np.multiply(x[:, None], w, out=product)
