"""Products of sampled Hadamard transforms, written out as matrices."""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.maths.hadamard import written_out
from kafeat.onnx.elementary import complex_product, linear_form
from kafeat.onnx.graph import Graph, Value
from kafeat.samplers.tensor_srht import TensorSrht
from kafeat.types import Array


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    step, d = cast(TensorSrht, fitted.step), fitted.n_features_in
    matrices = _factors(graph, step, fitted)
    if step.complex_to_real:
        return graph.beside(list(complex_product(graph, x, matrices, d)))
    z = linear_form(graph, x, matrices[0], d)
    for matrix in matrices[1:]:
        z = graph.op("Mul", z, linear_form(graph, x, matrix, d))
    return z


def _factors(graph: Graph, step: TensorSrht, fitted: FittedStep) -> list[Array]:
    turns, rows, d = fitted.state["turns"], fitted.state["rows"], fitted.n_features_in
    m, width = rows.shape[1], turns.shape[-1]
    graph.reserve(step.degree, 2 if step.complex_to_real else 1, m, width)
    units = np.array([1.0, 1.0j, -1.0, -1.0j]) if step.complex_to_real else np.array([1.0, -1.0])
    scale = np.full(width, np.sqrt(float(fitted.state["gamma"])))
    scale[d:] = np.sqrt(step.coef0)
    # √(1/m) in equal parts, so that no factor leaves the range of the dtype alone
    scale *= m ** (-0.5 / step.degree)
    return [
        written_out(units[of_turns] * scale, of_rows) for of_turns, of_rows in zip(turns, rows, strict=True)
    ]
