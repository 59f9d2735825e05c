"""Unions and products as operators."""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.chain.parallel import ParallelChains
from kafeat.errors import UsageError
from kafeat.onnx.chain import emit_chain
from kafeat.onnx.elementary import flattened, product
from kafeat.onnx.graph import Graph, Value
from kafeat.samplers.product import Product
from kafeat.samplers.union import Union


def emit_union(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """Chains side by side, each on its columns and times the root of its weight."""
    step = cast(Union, fitted.step)
    parts = [
        z if part.weight == 1.0 else graph.op("Mul", z, np.sqrt(part.weight))
        for part, z in zip(step.maps, _maps(graph, step, fitted, x), strict=True)
    ]
    return graph.beside(parts)


def emit_product(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    """All products of the outputs of the chains, or products of random sums of them."""
    step, total = cast(Product, fitted.step), None
    outputs = _maps(graph, step, fitted, x)
    if step.n_components is not None:
        share = step.n_components ** (-0.5 / len(outputs))
        for i, z in enumerate(outputs):
            factor = product(graph, z, share * fitted.state[f"signs.{i}"])
            total = factor if total is None else graph.op("Mul", total, factor)
        return total or ""
    width = 1
    for z, own in zip(outputs, step.widths(fitted.state, fitted.n_features_in), strict=True):
        if total is None:
            total, width = z, own
            continue
        columns = graph.op("Unsqueeze", total, np.array([2])), graph.op("Unsqueeze", z, np.array([1]))
        width *= own
        total = flattened(graph, graph.op("Mul", *columns), width)
    return total or ""


def _maps(graph: Graph, step: ParallelChains, fitted: FittedStep, x: Value) -> list[Value]:
    """The outputs of each chain."""
    parts, dtype = [], fitted.bind(graph.dtype).reads(graph.dtype)
    for i, (part, (indices, chain)) in enumerate(
        zip(step.maps, step.chains(fitted.state, fitted.n_features_in), strict=True)
    ):
        with graph.inside(f"maps[{i}]"):
            try:
                own = x if part.columns is None else graph.columns(x, indices)
                parts.append(emit_chain(graph, chain, own, dtype))
            except UsageError as error:
                raise UsageError(f"maps[{i}].{error}") from None
    return parts
