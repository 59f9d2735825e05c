"""Sums over sets of columns as operators: halves of the columns are merged, a logarithm of the width times."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kafeat.onnx.graph import Graph, Value
from kafeat.types import Floats

# Numbers that a row takes in each operator.
_NUMBERS = 4096

Parts = list[Value | None]
"""Sums over sets of some of the columns each, (n, rows, columns); None: 0."""
Merge = Callable[[Graph, Parts, Parts], Parts]
"""The sums over sets of the columns of both."""


def sets_of_size(graph: Graph, x: Value, rows: Floats, size: int) -> Value:
    """Σ_{|S| = size} Π_{i ∈ S} x_i r_i of every row r of a matrix (m, d), (n, m)."""
    return _merged(graph, x, rows, 0.0, lambda term: [term, *[None] * (size - 1)], _of_sizes)


def larger_sets(graph: Graph, x: Value, rows: Floats, least: int) -> Value:
    """Σ_{|S| ≥ least} Π_{i ∈ S} x_i r_i, least = 1 or 2, (n, m)."""
    if least == 1:
        return _merged(graph, x, rows, 0.0, lambda term: [term], _of_one)
    return _merged(graph, x, rows, 0.0, lambda term: [term, None], _of_two)


def all_sets(graph: Graph, x: Value, rows: Floats, share: float = 1.0) -> Value:
    """Π_i (share + x_i r_i), (n, m)."""
    return _merged(graph, x, rows, share, lambda term: [term], lambda g, a, b: [_times(g, a[0], b[0])])


def _merged(
    graph: Graph, x: Value, rows: Floats, share: float, start: Callable[[Value], Parts], merge: Merge
) -> Value:
    """The last part of all columns."""
    x = graph.op("Unsqueeze", x, np.array([1]))
    m, d = rows.shape
    some, blocks = max(1, _NUMBERS // d), []
    for first in range(0, m, some):
        terms = graph.op("Mul", x, rows[first : first + some])
        parts, width = start(graph.op("Add", terms, share) if share else terms), d
        while width > 1:
            half = width // 2
            left, right = (_span(graph, parts, at, at + half) for at in (0, half))
            merged = merge(graph, left, right)
            if width % 2:
                merged = [
                    _beside(graph, one, rest)
                    for one, rest in zip(merged, _span(graph, parts, width - 1, width), strict=True)
                ]
            parts, width = merged, width - half
        last = parts[-1] or graph.op("Mul", parts[0] or "", 0.0)
        blocks.append(graph.op("Squeeze", last, np.array([2])))
    return graph.beside(blocks)


def _of_sizes(graph: Graph, a: Parts, b: Parts) -> Parts:
    sums: Parts = []
    for q in range(len(a)):
        total = _plus(graph, a[q], b[q])
        for s in range(q):
            total = _plus(graph, total, _times(graph, a[s], b[q - 1 - s]))
        sums.append(total)
    return sums


def _of_one(graph: Graph, a: Parts, b: Parts) -> Parts:
    return [_plus(graph, _plus(graph, a[0], b[0]), _times(graph, a[0], b[0]))]


def _of_two(graph: Graph, a: Parts, b: Parts) -> Parts:
    """Single columns, and sets of two or more: those of one half, and any of one beside any of the other."""
    of_both = _times(graph, _plus(graph, a[0], a[1]), _plus(graph, b[0], b[1]))
    return [_plus(graph, a[0], b[0]), _plus(graph, _plus(graph, a[1], b[1]), of_both)]


def _plus(graph: Graph, a: Value | None, b: Value | None) -> Value | None:
    return graph.op("Add", a, b) if a and b else a or b


def _times(graph: Graph, a: Value | None, b: Value | None) -> Value | None:
    return graph.op("Mul", a, b) if a and b else None


def _span(graph: Graph, parts: Parts, start: int, stop: int) -> Parts:
    ends = np.array([start]), np.array([stop]), np.array([2])
    return [graph.op("Slice", part, *ends) if part else None for part in parts]


def _beside(graph: Graph, part: Value | None, rest: Value | None) -> Value | None:
    """Both side by side, the rest being one column; where it has nothing, 0."""
    if part is None:
        return None  # no half had any, and then one column has none
    if rest is None:
        column = graph.op("Slice", part, np.array([0]), np.array([1]), np.array([2]))
        rest = graph.op("Mul", column, 0.0)
    return graph.op("Concat", part, rest, axis=2)
