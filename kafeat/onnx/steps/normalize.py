"""x/‖x‖, divided by the largest entry first, so that squares neither overflow nor vanish."""

from __future__ import annotations

from typing import cast

from kafeat.chain.chain import FittedStep
from kafeat.onnx.elementary import positive_or_one
from kafeat.onnx.graph import Graph, Value
from kafeat.scalers.normalize import Normalize


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    step = cast(Normalize, fitted.step)
    largest = graph.along_rows("ReduceMax", graph.op("Abs", x))
    scaled = graph.op("Div", x, positive_or_one(graph, largest))
    if step.norm == "max":
        return scaled
    return graph.op("Div", scaled, positive_or_one(graph, _norms(graph, step, scaled)))


def _norms(graph: Graph, step: Normalize, x: Value) -> Value:
    if step.norm == "l2":
        return graph.op("Sqrt", graph.along_rows("ReduceSum", graph.op("Mul", x, x)))
    sizes = graph.op("Abs", x)
    if step.norm == "l1":
        return graph.along_rows("ReduceSum", sizes)
    powers = graph.along_rows("ReduceSum", graph.op("Pow", sizes, step.homogeneity))
    return graph.op("Pow", powers, 1.0 / step.homogeneity)
