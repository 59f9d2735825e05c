"""Maps of one matrix product and a function of every entry as operators: cosines, rectified units and exponentials."""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.maths.fourier.features import length_scales
from kafeat.onnx.elementary import emit_cosines, product
from kafeat.onnx.graph import Graph, Value
from kafeat.samplers.arc_cosine import ArcCosine
from kafeat.samplers.fourier import Fourier
from kafeat.samplers.positive_exponential import PositiveExponential
from kafeat.samplers.skewed import Skewed


def emit_fourier(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """Random Fourier features: the frequencies written out, one matrix product, cosines."""
    step = cast(Fourier, fitted.step)
    scales = length_scales(step.length_scale, fitted.n_features_in)
    return emit_cosines(graph, fitted.state, fitted.n_features_in, x, scales)


def emit_skewed(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """Fourier features of log(x + c), for x above −c."""
    step = cast(Skewed, fitted.step)
    moved = graph.op("Add", x, step.skewedness)
    graph.refuse(graph.op("LessOrEqual", moved, 0.0))
    return emit_cosines(graph, fitted.state, fitted.n_features_in, graph.op("Log", moved))


def emit_arc_cosine(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """One matrix product, then rectified linear units or steps."""
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


def emit_positive_exponential(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """Exponents by one matrix product, then one exponential."""
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
