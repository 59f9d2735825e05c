"""Ranks by counting the quantiles at or below a value, and the normal quantile function by rational functions."""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.onnx import elementary
from kafeat.onnx.graph import Graph, Value
from kafeat.scalers.quantile import Quantile
from kafeat.types import Floats


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
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
