"""Every monomial, degree by degree: a variable times a monomial of one degree less."""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.onnx.elementary import same_in_all_rows
from kafeat.onnx.graph import Graph, Value
from kafeat.samplers.polynomial_features import PolynomialFeatures, count_monomials, monomial_weights
from kafeat.types import Array


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    step, d = cast(PolynomialFeatures, fitted.step), fitted.n_features_in
    lowest = 0 if step.coef0 > 0 else step.degree
    scaled = graph.op("Mul", x, np.sqrt(float(fitted.state["gamma"])))
    monomials, parts = scaled, []
    for q in range(step.degree + 1):
        if q > 1:
            variables, lower = _factors(d, q)
            monomials = graph.op("Mul", graph.columns(monomials, lower), graph.columns(scaled, variables))
        if q >= lowest:
            weights = monomial_weights(step, d, q)
            parts.append(graph.op("Mul", monomials, weights) if q else same_in_all_rows(graph, x, weights))
    return graph.beside(parts)


def _factors(d: int, q: int) -> tuple[Array, Array]:
    """Of every monomial of degree q: its first variable, and which one of degree q − 1 it is multiplied by."""
    counts = [count_monomials(d - j, q - 1) for j in range(d)]
    # those without a variable before j are the last ones
    lower = [np.arange(counts[0] - count, counts[0]) for count in counts]
    return np.repeat(np.arange(d), counts), np.concatenate(lower)
