"""√(x^γ) times cosines and sines of multiples of log x, all frequencies at once."""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.onnx.elementary import flattened, refuse_negative
from kafeat.onnx.graph import Graph, Value
from kafeat.samplers.homogeneous import Homogeneous


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    step, state, d = cast(Homogeneous, fitted.step), fitted.state, fitted.n_features_in
    if step.negative == "error":
        refuse_negative(graph, x)
    size = graph.op("Abs", x)
    root = (
        graph.op("Sqrt", size) if step.homogeneity == 1.0 else graph.op("Pow", size, step.homogeneity / 2.0)
    )
    if step.negative == "signed":
        root = graph.op("Mul", root, graph.op("Sign", x))
    first, *rest = state["coefficients"]
    constant = graph.op("Mul", root, np.sqrt(first))
    if not rest:
        return constant
    # (n, 1, d) times (order, 1): log 0 would be −∞, and any number does where the root is 0
    logs = graph.op("Log", graph.op("Max", size, float(np.finfo(graph.dtype).tiny)))
    angles = graph.op("Mul", graph.op("Unsqueeze", logs, np.array([1])), state["frequencies"][:, None])
    amplitudes = np.sqrt(2.0 * np.array(rest))[:, None]
    scaled = graph.op("Mul", graph.op("Unsqueeze", root, np.array([1])), amplitudes)
    waves = [
        graph.op("Unsqueeze", graph.op("Mul", wave, scaled), np.array([2]))
        for wave in (graph.cos(angles), graph.op("Sin", angles))
    ]
    blocks = flattened(graph, graph.op("Concat", *waves, axis=2), 2 * step.n * d)
    return graph.beside([constant, blocks])
