"""Sums over sets of columns as operators: halves of the columns are merged, a logarithm of the width times."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kafeat.onnx.graph import Value, beside
from kafeat.types import Floats

# Numbers that a row takes in each operator.
_NUMBERS = 4096

Parts = list[Value | None]
"""Sums over sets of some of the columns each, (n, rows, columns); None: 0."""
Merge = Callable[[Parts, Parts], Parts]
"""The sums over sets of the columns of both."""


def sets_of_size(x: Value, rows: Floats, size: int) -> Value:
    """Σ_{|S| = size} Π_{i ∈ S} x_i r_i of every row r of a matrix (m, d), (n, m)."""
    return _merged(x, rows, 0.0, lambda term: [term, *[None] * (size - 1)], _of_sizes)


def larger_sets(x: Value, rows: Floats, least: int) -> Value:
    """Σ_{|S| ≥ least} Π_{i ∈ S} x_i r_i, least = 1 or 2, (n, m)."""
    if least == 1:
        return _merged(x, rows, 0.0, lambda term: [term], _of_one)
    return _merged(x, rows, 0.0, lambda term: [term, None], _of_two)


def all_sets(x: Value, rows: Floats, share: float = 1.0) -> Value:
    """Π_i (share + x_i r_i), (n, m)."""
    return _merged(x, rows, share, lambda term: [term], lambda a, b: [_times(a[0], b[0])])


def _merged(x: Value, rows: Floats, share: float, start: Callable[[Value], Parts], merge: Merge) -> Value:
    """The last part of all columns."""
    x = x.with_axis(1)
    m, d = rows.shape
    some, blocks = max(1, _NUMBERS // d), []
    for first in range(0, m, some):
        terms = x * rows[first : first + some]
        parts, width = start(terms + share if share else terms), d
        while width > 1:
            half = width // 2
            merged = merge(_span(parts, 0, half), _span(parts, half, 2 * half))
            if width % 2:
                rests = _span(parts, width - 1, width)
                merged = [_beside(one, rest) for one, rest in zip(merged, rests, strict=True)]
            parts, width = merged, width - half
        last = parts[-1] or terms * 0.0
        blocks.append(last.op("Squeeze", np.array([2])))
    return beside(blocks)


def _of_sizes(a: Parts, b: Parts) -> Parts:
    sums: Parts = []
    for q in range(len(a)):
        total = _plus(a[q], b[q])
        for s in range(q):
            total = _plus(total, _times(a[s], b[q - 1 - s]))
        sums.append(total)
    return sums


def _of_one(a: Parts, b: Parts) -> Parts:
    return [_plus(_plus(a[0], b[0]), _times(a[0], b[0]))]


def _of_two(a: Parts, b: Parts) -> Parts:
    """Single columns, and sets of two or more: those of one half, and any of one beside any of the other."""
    of_both = _times(_plus(a[0], a[1]), _plus(b[0], b[1]))
    return [_plus(a[0], b[0]), _plus(_plus(a[1], b[1]), of_both)]


def _plus(a: Value | None, b: Value | None) -> Value | None:
    return a + b if a and b else a or b


def _times(a: Value | None, b: Value | None) -> Value | None:
    return a * b if a and b else None


def _span(parts: Parts, start: int, stop: int) -> Parts:
    return [part and part.span(start, stop, axis=2) for part in parts]


def _beside(part: Value | None, rest: Value | None) -> Value | None:
    """Both side by side, the rest being one column; where it has nothing, 0."""
    if part is None:
        return None  # no half had any, and then one column has none
    return part.op("Concat", rest or part.span(0, 1, axis=2) * 0.0, axis=2)
