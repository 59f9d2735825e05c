"""The fill in the place of NaN."""

from __future__ import annotations

from kafeat.chain.chain import FittedStep
from kafeat.onnx.graph import Graph, Value


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    return graph.op("Where", graph.op("IsNaN", x), fitted.state["fill"], x)
