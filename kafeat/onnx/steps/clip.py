"""min(max(x, a), b)."""

from __future__ import annotations

from kafeat.chain.chain import FittedStep
from kafeat.onnx.graph import Graph, Value


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    return graph.op("Min", graph.op("Max", x, fitted.state["low"]), fitted.state["high"])
