"""(x − min)/(max − min), clipped to [0, 1] if asked."""

from __future__ import annotations

from typing import cast

from kafeat.chain.chain import FittedStep
from kafeat.onnx.graph import Graph, Value
from kafeat.scalers.minmax import Minmax


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    step = cast(Minmax, fitted.step)
    moved = graph.op("Div", graph.op("Sub", x, fitted.state["low"]), fitted.state["width"])
    return graph.op("Clip", moved, 0.0, 1.0) if step.clip else moved
