"""Unions as operators."""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.fitted_step import FittedStep
from kafeat.errors import UsageError
from kafeat.onnx.chain import emit_chain
from kafeat.onnx.graph import Graph, Value
from kafeat.samplers.union import Union


def emit_union(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """Chains side by side, each on its columns and times the root of its weight."""
    step, parts = cast(Union, fitted.step), []
    dtype = fitted.bind(graph.dtype).reads(graph.dtype)
    for i, (part, (indices, chain)) in enumerate(
        zip(step.maps, step.chains(fitted.state, fitted.n_features_in), strict=True)
    ):
        with graph.inside(f"maps[{i}]"):
            try:
                own = x if part.columns is None else graph.columns(x, indices)
                z = emit_chain(graph, chain, own, dtype)
            except UsageError as error:
                raise UsageError(f"maps[{i}].{error}") from None
            parts.append(z if part.weight == 1.0 else graph.op("Mul", z, np.sqrt(part.weight)))
    return graph.beside(parts)
