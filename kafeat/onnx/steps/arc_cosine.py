"""One matrix product, then rectified linear units or steps."""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.onnx.elementary import product
from kafeat.onnx.graph import Graph, Value
from kafeat.samplers.arc_cosine import ArcCosine


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    step = cast(ArcCosine, fitted.step)
    scale = float(np.sqrt(2.0 / step.n_components))
    products = product(graph, x, fitted.state["directions"] * (scale if step.order else 1.0))
    if step.order:
        first = graph.op("Relu", products)
    else:  # ½ at 0
        halves = graph.op("Add", graph.op("Sign", products), 1.0)
        first = graph.op("Mul", halves, 0.5 * scale)
    if step.features == "plain":
        return first
    second = graph.op("Sub", first, products) if step.order else graph.op("Sub", scale, first)
    return graph.beside([first, second])
