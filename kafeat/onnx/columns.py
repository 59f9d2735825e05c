"""The inputs of a graph: plain numbers as they are, and categories as numbers that become their codes.

A column whose categories are all whole numbers takes these numbers; of any other, whose categories are text, a graph
of numbers takes the codes, places in the list of categories that stands in the model's metadata.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from kafeat.io.columns.categories import Categories
from kafeat.io.columns.columns import Columns
from kafeat.onnx.graph import Graph, Value
from kafeat.types import Array

_WHOLE = re.compile(r"-?[0-9]+")
# Whole numbers beyond that are not all numbers of float32.
_LARGEST = 1 << 24


def coded(columns: Columns) -> dict[int, Categories]:
    """The features that are codes of categories, by place."""
    categories, at = {}, 0
    for column in columns.features:
        if isinstance(column.categories, Categories):
            categories[at] = column.categories
        at += column.n_features
    return categories


def takes_numbers(categories: Categories) -> bool:
    """Return True if the graph takes the categories themselves, and not their codes."""
    whole = [int(value) for value in categories.values if _WHOLE.fullmatch(value)]
    return len(set(whole)) == len(categories.values) and max(map(abs, whole)) <= _LARGEST


def numbers_of(categories: Categories) -> Array:
    """Return the graph's input for each category, in the order of their codes."""
    if takes_numbers(categories):
        return np.array([float(value) for value in categories.values])
    return np.arange(len(categories.values), dtype=np.float64)


def category_metadata(columns: Columns) -> dict[str, Any]:
    """Per column of categories: the list of them, and whether the input is the number itself or its place in it."""
    names = columns.names
    return {
        names[j]: {
            "categories": list(column.values),
            "input": "number" if takes_numbers(column) else "code",
            "unknown": "zeros" if column.lenient else "refused",
        }
        for j, column in coded(columns).items()
    }


def emit_columns(graph: Graph, columns: Columns, x: Value, dtype: np.dtype[Any]) -> Value:
    """The rows as the first step sees them, in `dtype`; those that a reader refuses are refused."""
    categories = coded(columns)
    with graph.computing_in(dtype), graph.inside("columns"):
        bad = graph.op("Not", _finite(graph, x))
        if columns.missing:
            bad = graph.op("And", bad, graph.op("Not", graph.op("IsNaN", x)))
        if not categories:
            graph.refuse(bad)
            return x
        plain = np.array([j not in categories for j in range(columns.n_features)])
        graph.refuse(graph.op("And", bad, plain[None, :]))
        parts, start = [], 0
        for j, column in [*categories.items(), (columns.n_features, None)]:
            if start < j:
                parts.append(graph.span(x, start, j))
            if column is not None:
                parts.append(_code(graph, graph.span(x, j, j + 1), column))
            start = j + 1
        return graph.beside(parts)


def _code(graph: Graph, x: Value, categories: Categories) -> Value:
    """The code of each number (n, 1); −1 of an unknown or a missing one, which is refused unless it is let through."""
    numbers = numbers_of(categories)
    # A one in the place of the category, times the places from 1 on.
    hits = graph.cast(graph.op("Equal", x, numbers[None, :]), graph.dtype)
    code = graph.op("Sub", graph.matmul(hits, np.arange(1.0, len(numbers) + 1)[:, None]), 1.0)
    if not categories.lenient:
        graph.refuse(graph.op("Less", code, 0.0))
        return code
    whole = graph.op("Equal", x, graph.op("Round", x))
    known = graph.op("And", whole, _finite(graph, x))
    graph.refuse(graph.op("Not", graph.op("Or", graph.op("IsNaN", x), known)))
    return code


def _finite(graph: Graph, x: Value) -> Value:
    """Return True where an entry is a finite number."""
    return graph.op("LessOrEqual", graph.op("Abs", x), float(np.finfo(graph.dtype).max))
