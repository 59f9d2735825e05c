"""Linear maps as operators: projections and PCA."""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.maths.hadamard import written_out
from kafeat.onnx.elementary import product
from kafeat.onnx.graph import Value
from kafeat.samplers.projection import Projection


def emit_metric(fitted: FittedStep, x: Value) -> Value:
    """xL, or x times the weight of its column."""
    root = fitted.state["root"]
    return x * root if root.ndim == 1 else product(x, root.T)


def emit_pca(fitted: FittedStep, x: Value) -> Value:
    """(x − μ)V/σ."""
    state = fitted.state
    return product(x - state["mean"], state["components"]) / state["scale"]


def emit_projection(fitted: FittedStep, x: Value) -> Value:
    """A x, the matrix written out."""
    state, d = fitted.state, fitted.n_features_in
    match cast(Projection, fitted.step).matrix:
        case "gaussian":
            matrix = state["matrix"]
        case "srht":
            x.graph.reserve(len(state["rows"]), d)
            matrix = written_out(state["signs"] / np.sqrt(len(state["rows"])), state["rows"])
        case "sparse":
            D = len(state["starts"]) - 1
            x.graph.reserve(D, d)
            matrix = np.zeros((D, d))
            matrix[np.repeat(np.arange(D), np.diff(state["starts"])), state["columns"]] = state["values"]
    return product(x, matrix)
