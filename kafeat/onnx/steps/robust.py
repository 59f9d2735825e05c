"""(x − m)/(q₃ − q₁)."""

from __future__ import annotations

from kafeat.chain.chain import FittedStep
from kafeat.onnx.graph import Graph, Value


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    return graph.op("Div", graph.op("Sub", x, fitted.state["centre"]), fitted.state["width"])
