"""A x, the matrix written out."""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.maths.hadamard import written_out
from kafeat.onnx.elementary import product
from kafeat.onnx.graph import Graph, Value
from kafeat.samplers.projection import Projection
from kafeat.types import Floats


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    return product(graph, x, _matrix(graph, fitted))


def _matrix(graph: Graph, fitted: FittedStep) -> Floats:
    state, d = fitted.state, fitted.n_features_in
    match cast(Projection, fitted.step).matrix:
        case "gaussian":
            return state["matrix"]
        case "srht":
            graph.reserve(len(state["rows"]), d)
            return written_out(state["signs"] / np.sqrt(len(state["rows"])), state["rows"])
        case "sparse":
            D = len(state["starts"]) - 1
            graph.reserve(D, d)
            matrix = np.zeros((D, d))
            matrix[np.repeat(np.arange(D), np.diff(state["starts"])), state["columns"]] = state["values"]
            return matrix
