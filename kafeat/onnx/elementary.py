"""Formulas that several steps share, where ONNX has no operator of that name."""

from __future__ import annotations

import numpy as np

from kafeat.onnx.graph import Graph, Value
from kafeat.types import Array, Floats


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
