"""Maps of one matrix product and a function of every entry as operators: cosines, rectified units and exponentials."""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.maths.fourier.features import length_scales
from kafeat.onnx.elementary import emit_cosines, product
from kafeat.onnx.graph import Value, beside
from kafeat.samplers.arc_cosine import ArcCosine
from kafeat.samplers.fourier import Fourier
from kafeat.samplers.positive_exponential import PositiveExponential
from kafeat.samplers.skewed import Skewed


def emit_fourier(fitted: FittedStep, x: Value) -> Value:
    """Random Fourier features: the frequencies written out, one matrix product, cosines."""
    step = cast(Fourier, fitted.step)
    scales = length_scales(step.length_scale, fitted.n_features_in)
    return emit_cosines(fitted.state, fitted.n_features_in, x, scales)


def emit_skewed(fitted: FittedStep, x: Value) -> Value:
    """Fourier features of log(x + c), for x above −c."""
    moved = x + cast(Skewed, fitted.step).skewedness
    x.graph.refuse(moved <= 0.0)
    return emit_cosines(fitted.state, fitted.n_features_in, moved.op("Log"))


def emit_arc_cosine(fitted: FittedStep, x: Value) -> Value:
    """One matrix product, then rectified linear units or steps."""
    step = cast(ArcCosine, fitted.step)
    scale = float(np.sqrt(2.0 / step.n_components))
    products = product(x, fitted.state["directions"] * (scale if step.order else 1.0))
    if step.order:
        first = products.op("Relu")
    else:  # ½ at 0
        halves = products.op("Sign") + 1.0
        first = halves * (0.5 * scale)
    if step.features == "plain":
        return first
    return beside([first, first - products if step.order else scale - first])


def emit_positive_exponential(fitted: FittedStep, x: Value) -> Value:
    """Exponents by one matrix product, then one exponential."""
    step, state = cast(PositiveExponential, fitted.step), fitted.state
    w, gamma, tilt = state["directions"], float(state["gamma"]), float(state["tilt"])
    d = w.shape[1]
    angles = product(x, np.sqrt(gamma * (1.0 - 4.0 * tilt)) * w)
    shifts = tilt * (w**2).sum(axis=1) + d / 4.0 * np.log1p(-4.0 * tilt) - 0.5 * np.log(step.n_components)
    scaled = x * float(np.sqrt(gamma / 2.0))
    squares = (scaled * scaled).row_sum()
    exponents = [shifts + angles - squares]
    if step.features == "hyperbolic":
        exponents.append(shifts - angles - squares)
    both = beside(exponents)
    _refuse_range(both)
    return both.op("Exp")


def _refuse_range(exponents: Value) -> None:
    """A row whose largest output the dtype cannot hold, or holds as 0, has lost its kernel."""
    graph, largest = exponents.graph, exponents.row_max()
    bounds = np.finfo(graph.dtype)
    graph.refuse(~((largest > float(np.log(bounds.tiny))) & (largest < float(np.log(bounds.max)))))
