"""Unions and products as operators."""

from __future__ import annotations

from functools import reduce
from operator import mul
from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.chain.parallel import ParallelChains
from kafeat.errors import UsageError
from kafeat.onnx.chain import emit_chain
from kafeat.onnx.elementary import flattened, product
from kafeat.onnx.graph import Value, beside
from kafeat.samplers.product import Product
from kafeat.samplers.union import Union


def emit_union(fitted: FittedStep, x: Value) -> Value:
    """Chains side by side, each on its columns and times the root of its weight."""
    step = cast(Union, fitted.step)
    parts = zip(step.maps, _maps(step, fitted, x), strict=True)
    return beside([z if part.weight == 1.0 else z * np.sqrt(part.weight) for part, z in parts])


def emit_product(fitted: FittedStep, x: Value) -> Value:
    """All products of the outputs of the chains, or products of random sums of them."""
    step = cast(Product, fitted.step)
    outputs = _maps(step, fitted, x)
    if step.n_components is not None:
        share = step.n_components ** (-0.5 / len(outputs))
        return reduce(mul, (product(z, share * fitted.state[f"signs.{i}"]) for i, z in enumerate(outputs)))
    total, *rest = outputs
    width, *widths = step.widths(fitted.state, fitted.n_features_in)
    for z, own in zip(rest, widths, strict=True):
        width *= own
        total = flattened(total.with_axis(2) * z.with_axis(1), width)
    return total


def _maps(step: ParallelChains, fitted: FittedStep, x: Value) -> list[Value]:
    """The outputs of each chain."""
    graph, parts = x.graph, []
    dtype, chains = (
        fitted.bind(graph.dtype).reads(graph.dtype),
        step.chains(fitted.state, fitted.n_features_in),
    )
    for i, (part, (indices, chain)) in enumerate(zip(step.maps, chains, strict=True)):
        with graph.inside(f"maps[{i}]"):
            try:
                own = x if part.columns is None else x.columns(indices)
                parts.append(emit_chain(chain, own, dtype))
            except UsageError as error:
                raise UsageError(f"maps[{i}].{error}") from None
    return parts
