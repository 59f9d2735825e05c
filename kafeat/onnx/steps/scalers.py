"""Scalers as operators."""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.onnx import elementary
from kafeat.onnx.elementary import positive_or_one
from kafeat.onnx.graph import Graph, Value
from kafeat.scalers.minmax import Minmax
from kafeat.scalers.normalize import Normalize
from kafeat.scalers.one_hot import outputs_of, width_of
from kafeat.scalers.quantile import Quantile
from kafeat.types import Floats


def emit_clip(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """min(max(x, a), b)."""
    return graph.op("Min", graph.op("Max", x, fitted.state["low"]), fitted.state["high"])


def emit_impute(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """The fill in the place of NaN."""
    return graph.op("Where", graph.op("IsNaN", x), fitted.state["fill"], x)


def emit_log1p(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """log(1 + x), of x above −1."""
    del fitted
    graph.refuse(graph.op("LessOrEqual", x, -1.0))
    return elementary.log1p(graph, x)


def emit_minmax(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """(x − min)/(max − min), clipped to [0, 1] if asked."""
    step = cast(Minmax, fitted.step)
    moved = graph.op("Div", graph.op("Sub", x, fitted.state["low"]), fitted.state["width"])
    return graph.op("Clip", moved, 0.0, 1.0) if step.clip else moved


def emit_normalize(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """x/‖x‖, divided by the largest entry first, so that squares neither overflow nor vanish."""
    step = cast(Normalize, fitted.step)
    largest = graph.along_rows("ReduceMax", graph.op("Abs", x))
    scaled = graph.op("Div", x, positive_or_one(graph, largest))
    if step.norm == "max":
        return scaled
    return graph.op("Div", scaled, positive_or_one(graph, _norms(graph, step, scaled)))


def _norms(graph: Graph, step: Normalize, x: Value) -> Value:
    if step.norm == "l2":
        return graph.op("Sqrt", graph.along_rows("ReduceSum", graph.op("Mul", x, x)))
    sizes = graph.op("Abs", x)
    if step.norm == "l1":
        return graph.along_rows("ReduceSum", sizes)
    powers = graph.along_rows("ReduceSum", graph.op("Pow", sizes, step.homogeneity))
    return graph.op("Pow", powers, 1.0 / step.homogeneity)


def emit_one_hot(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """Zeros, and a one where a code points to."""
    columns = fitted.state["columns"]
    others = np.setdiff1d(np.arange(fitted.n_features_in), columns)
    parts = [graph.columns(x, others)] if len(others) else []
    for column, outputs in zip(columns, outputs_of(fitted.state), strict=True):
        code = graph.op("Round", graph.columns(x, np.array([column])))
        places = np.arange(float(len(outputs)))[None, :]
        ones = graph.cast(graph.op("Equal", code, places), graph.dtype)
        if width_of(outputs) < len(outputs):
            ones = graph.matmul(ones, np.eye(width_of(outputs))[outputs])
        parts.append(ones)
    return graph.beside(parts)


def emit_missing_indicator(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """The rows, and beside them ones in the place of NaN."""
    columns = fitted.state["columns"]
    if not len(columns):
        return x
    missing = graph.op("IsNaN", graph.columns(x, columns))
    return graph.beside([x, graph.cast(missing, graph.dtype)])


def emit_power(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """The Yeo–Johnson transformation, by logarithms as the scaler computes it."""
    exponent = fitted.state["exponent"]
    power = graph.op("Where", graph.op("Less", x, 0.0), 2.0 - exponent, exponent)
    linear = graph.op("Less", graph.op("Abs", power), float(np.finfo(graph.dtype).eps))
    logs = elementary.log1p(graph, graph.op("Abs", x))
    bent = elementary.expm1(graph, graph.op("Mul", power, logs))
    bent = graph.op("Div", bent, graph.op("Where", linear, 1.0, power))
    bent = graph.op("Mul", graph.op("Where", linear, logs, bent), graph.op("Sign", x))
    return graph.op("Div", graph.op("Sub", bent, fitted.state["mean"]), fitted.state["scale"])


def emit_quantile(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """Ranks by counting the quantiles at or below a value, and the normal quantile function by rational functions."""
    step, quantiles = cast(Quantile, fitted.step), fitted.state["quantiles"]
    columns = np.ascontiguousarray(quantiles.T)
    each = graph.op("Unsqueeze", x, np.array([2]))
    sides = [
        _level(graph, x, columns, _count(graph, graph.op(comparison, each, columns)))
        for comparison in ("GreaterOrEqual", "Greater")
    ]
    level = graph.op("Mul", graph.op("Add", *sides), 0.5)
    return level if step.output == "uniform" else elementary.normal_quantile(graph, level, step.clip)


def _count(graph: Graph, true: Value) -> Value:
    """Count along the last axis, (n, d, q) to (n, d)."""
    return graph.op("ReduceSum", graph.cast(true, graph.dtype), np.array([2]), keepdims=0)


def _level(graph: Graph, x: Value, columns: Floats, count: Value) -> Value:
    """Interpolate in the segment that ends at the quantile with this number; columns are (d, q)."""
    d, q = columns.shape
    end = graph.cast(graph.op("Clip", count, 1.0, float(q - 1)), np.dtype(np.int64))
    end = graph.op("Add", end, np.arange(d, dtype=np.int64) * q)
    width = np.diff(columns, axis=1, prepend=0.0)
    right = graph.op("Gather", columns.ravel(), end, axis=0)
    span = graph.op("Gather", np.where(width > 0.0, width, 1.0).ravel(), end, axis=0)
    levels = np.tile(np.linspace(0.0, 1.0, q), d)
    back = graph.op("Div", graph.op("Mul", graph.op("Sub", right, x), 1.0 / (q - 1)), span)
    level = graph.op("Sub", graph.op("Gather", levels, end, axis=0), back)
    level = graph.op("Where", graph.op("Equal", count, 0.0), 0.0, level)
    return graph.op("Where", graph.op("Equal", count, float(q)), 1.0, level)


def emit_robust(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """(x − m)/(q₃ − q₁)."""
    return graph.op("Div", graph.op("Sub", x, fitted.state["centre"]), fitted.state["width"])


def emit_standardize(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """(x − μ)/σ."""
    return graph.op("Div", graph.op("Sub", x, fitted.state["mean"]), fitted.state["scale"])
