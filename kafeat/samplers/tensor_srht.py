"""The polynomial kernel of high degree: random sums of products of columns, by Hadamard transforms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kafeat.contract.step import InTwos, Sample, Transform, parameter
from kafeat.maths.dot_products import PolynomialSketch, fit_gamma, rest_of_product
from kafeat.maths.hadamard import (
    SampledHadamard,
    count_blocks,
    draw_rows,
    padded_width,
    written_out,
)
from kafeat.types import Array, ArrayOf, Floats, Scratch, Shape, Shapes, State

_REAL = np.array([1.0, -1.0])
_COMPLEX = np.array([1.0, 1.0j, -1.0, -1.0j])


class TensorSrht(PolynomialSketch, InTwos):
    """Products of randomised Hadamard projections: z(x)·z(y) ≈ (γ x·y + c₀)^p, unbiased.

    An output is √(1/m) Π_q (H F_q u)_{r_q}, with u = [√γ x, √c₀] padded to a power of two, H of entries ±1, F_q
    diagonal and random, and rows r_q drawn without replacement. If there are more outputs than the padded width,
    independent blocks are stacked. The rows of a block are orthogonal, while independent projections are not. The error
    falls like 1/√D. One output carries c₀^p exactly, and d outputs carry the linear part if that leaves less variance.
    With `complex_to_real`, F has entries 1, i, −1, −i, and the real and imaginary parts of m = D/2 products are the
    outputs. The fourth moment of a product of p factors is then 2^p instead of 3^p.

    Source: Ahle et al. 2020 (TensorSRHT); Wacker, Kanagawa & Filippone 2022, algorithm 1 (complex to real).
    """

    twos = ("complex_to_real", True, "with complex_to_real")

    complex_to_real: bool = parameter(True, "complex signs, half as many products: a lower variance")

    def _shapes(self, state: State, n_features: int) -> tuple[Shape, Shape]:
        m = max(0, self.n_sketched(state, n_features)) // (2 if self.complex_to_real else 1)
        # Without c₀ there is no constant input, so a d that is a power of two needs no padding.
        width = n_features + (self.coef0 > 0)
        return (self.degree, count_blocks(m, width), width), (self.degree, m)

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        gamma = fit_gamma(self.gamma, sample.X, rng)
        least = 2 if self.complex_to_real else 1
        carried = self.choose_terms(sample.X, gamma, least)
        state = {**carried, "gamma": np.array(gamma)}
        of_turns, (_, m) = self._shapes(state, sample.X.shape[1])
        turns = rng.integers(4 if self.complex_to_real else 2, size=of_turns, dtype=np.int8)
        rows = np.stack([draw_rows(m, of_turns[-1], rng) for _ in range(self.degree)])
        return {**state, "turns": turns, "rows": rows}

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        of_turns, of_rows = self._shapes(state, n_features_in)
        return {
            "turns": ArrayOf(of_turns, "int8", below=4 if self.complex_to_real else 2),
            "rows": ArrayOf(of_rows, "int64", below=padded_width(of_turns[-1])),
            "gamma": (),
            "linear": ArrayOf((), "bool", optional=True),  # maps of the first formats have no exact terms
        }

    def check_state(self, state: State, n_features_in: int) -> None:
        super().check_state(state, n_features_in)
        if not state["rows"].shape[1]:
            raise ValueError("state.linear: expected fewer exact outputs than there are outputs")

    def factors(self, state: State, n_features_in: int) -> Array:
        """Return the factors of the inputs, and of the constant after them, (degree, blocks, width)."""
        scale = np.full(state["turns"].shape[-1], np.sqrt(float(state["gamma"])))
        scale[n_features_in:] = np.sqrt(self.coef0)
        # √(1/m) in equal parts, so that no single factor exceeds the range of the dtype
        scale *= state["rows"].shape[1] ** (-0.5 / self.degree)
        return (_COMPLEX if self.complex_to_real else _REAL)[state["turns"]] * scale

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return _SrhtTransform(self, state, n_features_in, dtype)


class _SrhtTransform(Transform):
    """A transform by one fast projection per degree. The projections are multiplied entry by entry."""

    def __init__(self, recipe: TensorSrht, state: State, n_features: int, dtype: np.dtype[Any]) -> None:
        self.n_features_in, self.n_features_out = n_features, recipe.n_components
        self._width = state["turns"].shape[-1]
        self._m = state["rows"].shape[1]
        self._terms = recipe.exact_terms(state)
        self._exact = self._terms.count(n_features)
        factors = recipe.factors(state, n_features)
        if self._terms.constant is not None:
            # the last input is the constant, whose projections are computed once
            last = factors.shape[2] - 1
            of_constant = [written_out(*pair, last) for pair in zip(factors, state["rows"], strict=True)]
            factors[:, :, -1] = 0.0
        self._factors = [SampledHadamard(*pair, dtype) for pair in zip(factors, state["rows"], strict=True)]
        if self._terms.constant is not None:
            self._constants = [column.astype(self._factors[0].dtype) for column in of_constant]
        self._dtype = dtype

    def scratch(self, rows: int) -> Scratch:
        # The last input is the constant 1, which carries c₀.
        first = self._factors[0]
        products = np.empty((self._m, rows), dtype=first.dtype)
        inputs = np.ones((self._width, rows), dtype=self._dtype)
        return inputs, products, np.empty_like(products), first.scratch(rows)

    def apply(self, X: Floats, out: Floats, scratch: Scratch) -> None:
        inputs, products, factor, inner = scratch
        inputs[: self.n_features_in] = X.T
        if self._terms.constant is not None:
            self._terms.write(X, out)
            rest = rest_of_product(
                self._projections(scratch), self._constants, self._terms.linear is not None
            )
            _write_parts(rest, out[:, self._exact :])
            return
        self._factors[0](inputs, products, inner)
        for project in self._factors[1:]:
            project(inputs, factor, inner)
            np.multiply(products, factor, out=products)
        _write_parts(products, out)

    def _projections(self, scratch: Scratch) -> Iterator[Array]:
        """Yield the projections one by one. The first one has its own buffer, and all others share one."""
        inputs, products, factor, inner = scratch
        for i, project in enumerate(self._factors):
            out = factor if i else products
            project(inputs, out, inner)
            yield out


def _write_parts(products: Array, out: Floats) -> None:
    m = len(products)
    if products.dtype.kind == "c":
        out[:, :m] = products.real.T
        out[:, m : 2 * m] = products.imag.T
        out[:, 2 * m :] = 0.0  # the last output, if their number is odd
    else:
        out[...] = products.T
