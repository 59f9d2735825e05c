"""Formulas that several steps share, where ONNX has no operator of that name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kafeat.maths.fourier.structured import StructuredAngles
from kafeat.onnx.graph import Graph, Value
from kafeat.types import Array, Floats, State


def log1p(graph: Graph, x: Value) -> Value:
    """log(1 + x) to the last digits also for tiny x: log(u)·x/(u − 1) with u = fl(1 + x), and x where u is 1.

    The rounding of u is in both factors and cancels (Kahan; Higham 2002, section 1.14.1).
    """
    u = graph.op("Add", x, 1.0)
    less = graph.op("Sub", u, 1.0)
    tiny = graph.op("Equal", less, 0.0)
    divisor = graph.op("Where", tiny, 1.0, less)
    return graph.op("Where", tiny, x, graph.op("Mul", graph.op("Log", u), graph.op("Div", x, divisor)))


def positive_or_one(graph: Graph, x: Value) -> Value:
    """x where it is above 0, and 1 elsewhere: what norms divide by."""
    return graph.op("Where", graph.op("Greater", x, 0.0), x, 1.0)


def refuse_negative(graph: Graph, x: Value) -> None:
    """Histogram kernels are defined for x ≥ 0."""
    graph.refuse(graph.op("Less", x, 0.0))


def same_in_all_rows(graph: Graph, x: Value, values: Array) -> Value:
    """A matrix with a row of `values` for every row of x."""
    rows = graph.op("Gather", graph.op("Shape", x), np.array([0]), axis=0)
    return graph.op("Expand", values[None, :], graph.op("Concat", rows, np.array([len(values)]), axis=0))


def flattened(graph: Graph, x: Value, width: int) -> Value:
    """(n, ...) as (n, width)."""
    return graph.op("Reshape", x, np.array([-1, width]))


def product(graph: Graph, x: Value, matrix: Floats) -> Value:
    """x Mᵀ of a matrix M (m, d)."""
    return graph.matmul(x, np.ascontiguousarray(matrix.T))


Complex = tuple[Value, Value]
"""The real and the imaginary part."""


def linear_form(graph: Graph, x: Value, matrix: Array, n_features: int) -> Value:
    """M [x, 1] of a real matrix M (m, n_features + 1), or M x of one without the last column."""
    dots = product(graph, x, matrix[:, :n_features])
    return graph.op("Add", dots, matrix[:, -1]) if matrix.shape[1] > n_features else dots


def complex_product(graph: Graph, x: Value, matrices: Sequence[Array], n_features: int) -> Complex:
    """The entrywise product of the forms of complex matrices."""
    total: Complex | None = None
    for matrix in matrices:
        re, im = (
            linear_form(graph, x, np.ascontiguousarray(part), n_features)
            for part in (matrix.real, matrix.imag)
        )
        total = (re, im) if total is None else _times(graph, total, (re, im))
    if total is None:
        raise ValueError("expected at least one factor")
    return total


def _times(graph: Graph, a: Complex, b: Complex) -> Complex:
    def mul(u: Value, v: Value) -> Value:
        return graph.op("Mul", u, v)

    re = graph.op("Sub", mul(a[0], b[0]), mul(a[1], b[1]))
    return re, graph.op("Add", mul(a[0], b[1]), mul(a[1], b[0]))


def emit_cosines(
    graph: Graph, state: State, n_features: int, x: Value, input_scale: Floats | None = None
) -> Value:
    """√a_j [cos ω_j·x, sin ω_j·x], or √(2a_j) cos(ω_j·x + b_j) where there are phases b."""
    frequencies = _frequencies(graph, state, n_features)
    m = len(frequencies)
    weights = state["weights"] if "weights" in state else np.array(1.0 / m)
    angles = product(graph, x, frequencies if input_scale is None else frequencies * input_scale)
    if "phases" in state:
        angles = graph.op("Add", angles, state["phases"])
        return graph.op("Mul", graph.cos(angles), np.sqrt(2.0 * weights))
    both = graph.beside([graph.cos(angles), graph.op("Sin", angles)])
    return graph.op("Mul", both, np.sqrt(np.tile(weights, 2) if weights.ndim else weights))


def _frequencies(graph: Graph, state: State, n_features: int) -> Floats:
    if "frequencies" in state:
        return state["frequencies"]
    graph.reserve(len(state["radii"]), n_features)
    return StructuredAngles.matrix(state, n_features)
