"""Linear maps as operators: projections and PCA."""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.maths.hadamard import written_out
from kafeat.onnx.elementary import product
from kafeat.onnx.graph import Graph, Value
from kafeat.samplers.projection import Projection
from kafeat.types import Floats


def emit_metric(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """xL, or x times the weight of its column."""
    root = fitted.state["root"]
    return graph.op("Mul", x, root) if root.ndim == 1 else product(graph, x, root.T)


def emit_pca(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """(x − μ)V/σ."""
    state = fitted.state
    projected = product(graph, graph.op("Sub", x, state["mean"]), state["components"])
    return graph.op("Div", projected, state["scale"])


def emit_projection(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """A x, the matrix written out."""
    return product(graph, x, _matrix(graph, fitted))


def _matrix(graph: Graph, fitted: FittedStep) -> Floats:
    state, d = fitted.state, fitted.n_features_in
    match cast(Projection, fitted.step).matrix:
        case "gaussian":
            return state["matrix"]
        case "srht":
            graph.reserve(len(state["rows"]), d)
            return written_out(state["signs"] / np.sqrt(len(state["rows"])), state["rows"])
        case "sparse":
            D = len(state["starts"]) - 1
            graph.reserve(D, d)
            matrix = np.zeros((D, d))
            matrix[np.repeat(np.arange(D), np.diff(state["starts"])), state["columns"]] = state["values"]
            return matrix
