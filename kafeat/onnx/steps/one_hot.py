"""Zeros, and a one where a code points to."""

from __future__ import annotations

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.onnx.graph import Graph, Value


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    columns, sizes = fitted.state["columns"], fitted.state["sizes"]
    others = np.setdiff1d(np.arange(fitted.n_features_in), columns)
    parts = [graph.columns(x, others)] if len(others) else []
    for column, size in zip(columns, sizes, strict=True):
        code = graph.op("Round", graph.columns(x, np.array([column])))
        places = np.arange(float(size))[None, :]
        parts.append(graph.cast(graph.op("Equal", code, places), graph.dtype))
    return graph.beside(parts)
