"""Products of linear forms, entry by entry, which may be complex: what sketches of degree p are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kafeat.onnx.elementary import product
from kafeat.onnx.graph import Graph, Value
from kafeat.types import Array

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
