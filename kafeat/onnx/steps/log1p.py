"""log(1 + x), of x above −1."""

from __future__ import annotations

from kafeat.chain.chain import FittedStep
from kafeat.onnx import elementary
from kafeat.onnx.graph import Graph, Value


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    del fitted
    graph.refuse(graph.op("LessOrEqual", x, -1.0))
    return elementary.log1p(graph, x)
