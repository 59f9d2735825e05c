"""(x − μ)V/σ."""

from __future__ import annotations

from kafeat.chain.chain import FittedStep
from kafeat.onnx.elementary import product
from kafeat.onnx.graph import Graph, Value


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    state = fitted.state
    projected = product(graph, graph.op("Sub", x, state["mean"]), state["components"])
    return graph.op("Div", projected, state["scale"])
