"""Exponents by one matrix product, then one exponential."""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.onnx.elementary import product
from kafeat.onnx.graph import Graph, Value
from kafeat.samplers.positive_exponential import PositiveExponential


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    step, state = cast(PositiveExponential, fitted.step), fitted.state
    w, gamma, tilt = state["directions"], float(state["gamma"]), float(state["tilt"])
    d = w.shape[1]
    angles = product(graph, x, np.sqrt(gamma * (1.0 - 4.0 * tilt)) * w)
    shifts = tilt * (w**2).sum(axis=1) + d / 4.0 * np.log1p(-4.0 * tilt) - 0.5 * np.log(step.n_components)
    scaled = graph.op("Mul", x, float(np.sqrt(gamma / 2.0)))
    squares = graph.along_rows("ReduceSum", graph.op("Mul", scaled, scaled))
    signs = ("Add", "Sub") if step.features == "hyperbolic" else ("Add",)
    exponents = graph.beside([graph.op("Sub", graph.op(sign, shifts, angles), squares) for sign in signs])
    _refuse_range(graph, exponents)
    return graph.op("Exp", exponents)


def _refuse_range(graph: Graph, exponents: Value) -> None:
    """A row whose largest output the dtype cannot hold, or holds as 0, has lost its kernel."""
    bounds = np.finfo(graph.dtype)
    largest = graph.along_rows("ReduceMax", exponents)
    above = graph.op("Greater", largest, float(np.log(bounds.tiny)))
    below = graph.op("Less", largest, float(np.log(bounds.max)))
    graph.refuse(graph.op("Not", graph.op("And", above, below)))
