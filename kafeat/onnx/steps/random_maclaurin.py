"""Products of random signs, level by level from the last: level j multiplies the outputs of degree j and more."""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.onnx.elementary import product, same_in_all_rows
from kafeat.onnx.graph import Graph, Value
from kafeat.samplers.random_maclaurin import RandomMaclaurin
from kafeat.types import State


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    state, parts = fitted.state, []
    root = float(np.sqrt(float(state["gamma"])))
    constant, linear = cast(RandomMaclaurin, fitted.step).exact_terms(state)
    if constant is not None:
        parts.append(same_in_all_rows(graph, x, np.array([constant])))
    if linear is not None:
        parts.append(graph.op("Mul", x, linear * root))
    drawn = _products(graph, state, root, x)
    if drawn is not None:
        parts.append(drawn)
    of_degree_0 = state["weights"][state["degrees"] == 0]
    if len(of_degree_0):
        parts.append(same_in_all_rows(graph, x, of_degree_0))
    return graph.beside(parts)


def _products(graph: Graph, state: State, root: float, x: Value) -> Value | None:
    """The outputs of degree 1 and more, which come first, by falling degree."""
    degrees, weights = state["degrees"], state["weights"]
    levels = int(degrees.max(initial=0))
    counts = [int((degrees >= level).sum()) for level in range(1, levels + 1)]
    ends, z, done = np.cumsum([0, *counts]), None, 0
    for level in reversed(range(levels)):
        factors = root * state["signs"][ends[level] : ends[level + 1]]
        # An output takes its weight with its last factor, so that no product leaves the range without it.
        factors[done:] *= weights[done : counts[level], None]
        new = product(graph, x, factors)
        if z is not None:
            longer = graph.op("Mul", graph.span(new, 0, done), z)
            rest = [graph.span(new, done, counts[level])] if counts[level] > done else []
            new = graph.beside([longer, *rest])
        z, done = new, counts[level]
    return z
