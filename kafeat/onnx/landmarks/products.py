"""Kernels of the dot product, and columns of a kernel matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from kafeat.maths.kernel import KernelParameters
from kafeat.onnx.elementary import positive_or_one, product, refuse_negative
from kafeat.onnx.graph import Graph, Value
from kafeat.types import Array


def linear(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """x·l."""
    return product(graph, x, of.rows / of.scale)


def polynomial(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """(γ x·l + c₀)^degree."""
    root = of.scale ** (1.0 / of.parameters.degree)
    dots = product(graph, x, of.rows * (of.parameters.gamma / root))
    return graph.op("Pow", graph.op("Add", dots, of.parameters.coef0 / root), float(of.parameters.degree))


def sigmoid(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """tanh(γ x·l + c₀)."""
    dots = graph.op("Mul", product(graph, x, of.rows), of.parameters.gamma)
    return graph.op("Tanh", graph.op("Add", dots, of.parameters.coef0))


def cosine(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """x·l/(‖x‖‖l‖), and 0 where one of them is 0."""
    lengths = np.linalg.norm(of.rows, axis=1, keepdims=True)
    # Divided by the largest entry first: squares stay within the dtype.
    largest = graph.along_rows("ReduceMax", graph.op("Abs", x))
    x = graph.op("Div", x, positive_or_one(graph, largest))
    dots = product(graph, x, of.rows / np.where(lengths > 0.0, lengths, 1.0))
    norms = graph.op("Sqrt", graph.along_rows("ReduceSum", graph.op("Mul", x, x)))
    return graph.op("Div", dots, positive_or_one(graph, norms))


def hellinger(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """Σ_i √x_i √l_i."""
    refuse_negative(graph, x)
    return product(graph, graph.op("Sqrt", x), np.sqrt(of.rows))


def precomputed(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """The row holds k(x, ·) already; landmarks are numbers of columns."""
    return graph.op("Div", graph.columns(x, of.rows), of.scale)


@dataclass(frozen=True, eq=False)
class LandmarkGraph:
    """Rows (m, d), float64, or numbers of columns (m,) of a precomputed kernel; the kernel is divided by `scale`."""

    rows: Array
    parameters: KernelParameters
    scale: float
    centre: Array | None = None
    """Of kernels of the distance, (d,): where both sides are moved to; None: the mean of the landmarks."""


Form: TypeAlias = Callable[[Graph, Value, LandmarkGraph], Value]
"""k(x, l_j)/scale of every row of x (n, d) with every landmark, (n, m)."""
