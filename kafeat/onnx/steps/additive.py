"""Maps of additive kernels as operators: a few features per column."""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.onnx.elementary import flattened, refuse_negative
from kafeat.onnx.graph import Graph, Value
from kafeat.samplers.homogeneous import Homogeneous
from kafeat.samplers.intersection_bins import IntersectionBins


def emit_homogeneous(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """√(x^γ) times cosines and sines of multiples of log x, all frequencies at once."""
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


def emit_intersection_bins(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """clip(N x/max − l, 0, 1) of every bin l, times √(max/N)."""
    step, maximum = cast(IntersectionBins, fitted.step), fitted.state["maximum"]
    refuse_negative(graph, x)
    N = step.n_bins
    share = graph.op("Div", graph.op("Min", x, maximum), np.where(maximum > 0.0, maximum, 1.0))
    level = graph.op("Unsqueeze", graph.op("Mul", share, float(N)), np.array([1]))
    part = graph.op("Clip", graph.op("Sub", level, np.arange(float(N))[:, None]), 0.0, 1.0)
    return flattened(graph, graph.op("Mul", part, np.sqrt(maximum / N)), N * fitted.n_features_in)
