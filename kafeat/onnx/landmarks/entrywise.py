"""Kernels that compare entry with entry: some landmarks at a time, (n, landmarks, d), and a sum over the entries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kafeat.onnx.elementary import refuse_negative
from kafeat.onnx.graph import Graph, Value
from kafeat.onnx.landmarks.products import LandmarkGraph
from kafeat.types import Floats

# Numbers that a row takes in each operator: what a batch needs of memory is some of these per row.
_NUMBERS = 4096

Terms = Callable[[Value, Floats], Value]
"""From x (n, 1, d) and landmarks (some, d) to what is summed, (n, some, d)."""


def _summed(graph: Graph, x: Value, landmarks: Floats, terms: Terms) -> Value:
    rows = graph.op("Unsqueeze", x, np.array([1]))
    m, d = landmarks.shape
    some = max(1, _NUMBERS // d)
    return graph.beside(
        [
            graph.op("ReduceSum", terms(rows, landmarks[start : start + some]), np.array([2]), keepdims=0)
            for start in range(0, m, some)
        ]
    )


def laplacian(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """exp(−γ‖x − l‖₁)."""

    def terms(rows: Value, some: Floats) -> Value:
        return graph.op("Abs", graph.op("Sub", rows, some))

    return graph.op("Exp", graph.op("Mul", _summed(graph, x, of.rows, terms), -of.parameters.gamma))


def intersection(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """Σ_i min(x_i, l_i)."""
    refuse_negative(graph, x)
    return _summed(graph, x, of.rows, lambda rows, some: graph.op("Min", rows, some))


def jensen_shannon(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """½ Σ_i x_i log₂((x_i + l_i)/x_i) + l_i log₂((x_i + l_i)/l_i), and a term of 0 counts as 0."""
    refuse_negative(graph, x)
    tiny = float(np.finfo(graph.dtype).tiny)

    def share(part: Value | Floats, total: Value) -> Value:
        logs = graph.op("Log", graph.op("Max", graph.op("Div", part, total), tiny))
        return graph.op("Mul", part, logs)

    def terms(rows: Value, some: Floats) -> Value:
        total = graph.op("Max", graph.op("Add", rows, some), tiny)
        return graph.op("Add", share(rows, total), share(some, total))

    return graph.op("Mul", _summed(graph, x, of.rows, terms), -0.5 / np.log(2.0))


def _harmonic(graph: Graph, x: Value, landmarks: Floats) -> Value:
    """Σ_i x_i l_i/(x_i + l_i), 0/0 counting as 0."""
    refuse_negative(graph, x)
    tiny = float(np.finfo(graph.dtype).tiny)

    def terms(rows: Value, some: Floats) -> Value:
        # x·(l/(x + l)): no factor is larger than it has to be
        total = graph.op("Max", graph.op("Add", rows, some), tiny)
        return graph.op("Mul", rows, graph.op("Div", some, total))

    return _summed(graph, x, landmarks, terms)


def additive_chi2(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """Σ_i 2 x_i l_i/(x_i + l_i)."""
    return graph.op("Mul", _harmonic(graph, x, of.rows), 2.0)


def chi2(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """exp(−γ Σ_i (x_i − l_i)²/(x_i + l_i)), the sum being that of x + l − 4xl/(x + l)."""
    harmonic = graph.op("Mul", _harmonic(graph, x, of.rows), 4.0)
    sums = graph.op("Add", graph.along_rows("ReduceSum", x), of.rows.sum(axis=1))
    return graph.op(
        "Exp", graph.op("Mul", graph.op("Min", graph.op("Sub", harmonic, sums), 0.0), of.parameters.gamma)
    )
