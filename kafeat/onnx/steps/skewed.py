"""Fourier features of log(x + c), for x above −c."""

from __future__ import annotations

from typing import cast

from kafeat.chain.chain import FittedStep
from kafeat.onnx.elementary import emit_cosines
from kafeat.onnx.graph import Graph, Value
from kafeat.samplers.skewed import Skewed


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    step = cast(Skewed, fitted.step)
    moved = graph.op("Add", x, step.skewedness)
    graph.refuse(graph.op("LessOrEqual", moved, 0.0))
    return emit_cosines(graph, fitted.state, fitted.n_features_in, graph.op("Log", moved))
