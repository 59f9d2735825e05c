"""clip(N x/max − l, 0, 1) of every bin l, times √(max/N)."""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.onnx.elementary import flattened, refuse_negative
from kafeat.onnx.graph import Graph, Value
from kafeat.samplers.intersection_bins import IntersectionBins


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    step, maximum = cast(IntersectionBins, fitted.step), fitted.state["maximum"]
    refuse_negative(graph, x)
    N = step.n_bins
    share = graph.op("Div", graph.op("Min", x, maximum), np.where(maximum > 0.0, maximum, 1.0))
    level = graph.op("Unsqueeze", graph.op("Mul", share, float(N)), np.array([1]))
    part = graph.op("Clip", graph.op("Sub", level, np.arange(float(N))[:, None]), 0.0, 1.0)
    return flattened(graph, graph.op("Mul", part, np.sqrt(maximum / N)), N * fitted.n_features_in)
