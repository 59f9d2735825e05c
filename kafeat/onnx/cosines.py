"""Cosine features of frequencies, which structured ones are written out for."""

from __future__ import annotations

import numpy as np

from kafeat.onnx.elementary import product
from kafeat.onnx.graph import Graph, Value
from kafeat.structured import StructuredAngles
from kafeat.types import Floats, State


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
