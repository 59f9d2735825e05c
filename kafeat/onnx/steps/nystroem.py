"""The Nyström map as operators."""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.fitted_step import FittedStep
from kafeat.errors import UsageError
from kafeat.onnx.graph import Graph, Value
from kafeat.onnx.landmarks import LandmarkGraph, landmark_form
from kafeat.samplers.nystroem import Nystroem


def emit_nystroem(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """The kernel with the landmarks, then a matrix product; in float64 inside where the map computes in it."""
    step, state, outer = cast(Nystroem, fitted.step), fitted.state, graph.dtype
    if not isinstance(step.kernel, str):
        raise UsageError(
            "kernel: expected a kernel by name, got a Python function, which no ONNX operator calls"
        )
    rows = state["landmarks"]
    landmarks = LandmarkGraph(
        rows.astype(np.float64) if rows.dtype.kind == "f" else rows,
        step.landmark_kernel(float(state["gamma"])).parameters,
        float(state["scale"]),
        state.get("centre"),
    )
    inner = step.precision(state, outer)
    with graph.computing_in(inner):
        if inner != outer:
            x = graph.cast(x, inner)
        z = graph.matmul(landmark_form(step.kernel)(graph, x, landmarks), state["projection"])
    return z if inner == outer else graph.cast(z, outer)
