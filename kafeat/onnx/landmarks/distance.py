"""Kernels of the Euclidean distance: one matrix product, then a function of it."""

from __future__ import annotations

import numpy as np

from kafeat.errors import UsageError
from kafeat.onnx.elementary import log1p
from kafeat.onnx.graph import Graph, Value
from kafeat.onnx.landmarks.products import LandmarkGraph


def rbf(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """exp(−γr²)."""
    return graph.op("Exp", _squared(graph, x, of, -of.parameters.gamma))


def rational_quadratic(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """(1 + γr²/α)^{−α}."""
    logs = log1p(graph, _squared(graph, x, of, of.parameters.gamma / of.parameters.alpha))
    return graph.op("Exp", graph.op("Mul", logs, -of.parameters.alpha))


def matern(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """Of s = √(2νγ)·r: e^{−s}, (1 + s)e^{−s}, (1 + s + s²/3)e^{−s} for ν = ½, 3/2, 5/2."""
    if of.parameters.nu not in (0.5, 1.5, 2.5):
        raise UsageError(
            f"nu: expected 0.5, 1.5 or 2.5, got {of.parameters.nu:g}, whose matern kernel is a Bessel function: "
            "ONNX has no operator for it"
        )
    s = graph.op("Sqrt", _squared(graph, x, of, 2.0 * of.parameters.nu * of.parameters.gamma))
    decay = graph.op("Exp", graph.op("Neg", s))
    if of.parameters.nu == 0.5:
        return decay
    factor = s
    if of.parameters.nu == 2.5:
        factor = graph.op("Mul", s, graph.op("Add", graph.op("Mul", s, 1.0 / 3.0), 1.0))
    return graph.op("Mul", graph.op("Add", factor, 1.0), decay)


def _squared(graph: Graph, x: Value, of: LandmarkGraph, factor: float) -> Value:
    """c‖x − l‖² by one product, around a centre, which lets the sum cancel less."""
    centre = (of.rows.mean(axis=0) if of.centre is None else of.centre).astype(graph.dtype)
    moved = of.rows - centre
    norms = np.einsum("ij,ij->i", moved, moved)
    rows = graph.op("Sub", x, centre)
    squares = graph.along_rows("ReduceSum", graph.op("Mul", rows, rows))
    both = np.vstack([-2.0 * factor * moved.T, np.full(len(moved), factor)])
    sums = graph.op("Add", graph.matmul(graph.beside([rows, squares]), both), factor * norms)
    # rounding must not take r² below 0
    return graph.op("Max" if factor > 0.0 else "Min", sums, 0.0)
