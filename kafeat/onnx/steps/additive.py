"""Maps of additive kernels as operators: a few features per column."""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.onnx.elementary import flattened, refuse_negative
from kafeat.onnx.graph import Value, beside
from kafeat.samplers.homogeneous import Homogeneous
from kafeat.samplers.intersection_bins import IntersectionBins


def emit_homogeneous(fitted: FittedStep, x: Value) -> Value:
    """√(x^γ) times cosines and sines of multiples of log x, all frequencies at once."""
    step, state, d = cast(Homogeneous, fitted.step), fitted.state, fitted.n_features_in
    if step.negative == "error":
        refuse_negative(x)
    size = abs(x)
    root = size.op("Sqrt") if step.homogeneity == 1.0 else size.op("Pow", step.homogeneity / 2.0)
    if step.negative == "signed":
        root = root * x.op("Sign")
    first, *rest = state["coefficients"]
    constant: Value = root * np.sqrt(first)
    if not rest:
        return constant
    # (n, 1, d) times (order, 1): log 0 would be −∞, and any number does where the root is 0
    logs = size.op("Max", float(np.finfo(x.graph.dtype).tiny)).op("Log")
    angles = logs.with_axis(1) * state["frequencies"][:, None]
    scaled = root.with_axis(1) * np.sqrt(2.0 * np.array(rest))[:, None]
    cosines, sines = ((wave * scaled).with_axis(2) for wave in (angles.cos(), angles.op("Sin")))
    return beside([constant, flattened(cosines.op("Concat", sines, axis=2), 2 * step.n * d)])


def emit_intersection_bins(fitted: FittedStep, x: Value) -> Value:
    """clip(N x/max − l, 0, 1) of every bin l, times √(max/N)."""
    N, maximum = cast(IntersectionBins, fitted.step).n_bins, fitted.state["maximum"]
    refuse_negative(x)
    share = x.op("Min", maximum) / np.where(maximum > 0.0, maximum, 1.0)
    level = (share * float(N)).with_axis(1)
    part = (level - np.arange(float(N))[:, None]).op("Clip", 0.0, 1.0)
    return flattened(part * np.sqrt(maximum / N), N * fitted.n_features_in)
