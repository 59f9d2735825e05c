"""The Yeo–Johnson transformation, by logarithms as the scaler computes it."""

from __future__ import annotations

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.onnx import elementary
from kafeat.onnx.graph import Graph, Value


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    exponent = fitted.state["exponent"]
    power = graph.op("Where", graph.op("Less", x, 0.0), 2.0 - exponent, exponent)
    linear = graph.op("Less", graph.op("Abs", power), float(np.finfo(graph.dtype).eps))
    logs = elementary.log1p(graph, graph.op("Abs", x))
    bent = elementary.expm1(graph, graph.op("Mul", power, logs))
    bent = graph.op("Div", bent, graph.op("Where", linear, 1.0, power))
    bent = graph.op("Mul", graph.op("Where", linear, logs, bent), graph.op("Sign", x))
    return graph.op("Div", graph.op("Sub", bent, fitted.state["mean"]), fitted.state["scale"])
