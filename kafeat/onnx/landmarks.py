"""Kernels between rows and fixed landmarks as operators: a function of the name of each kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from kafeat.errors import UsageError
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernels.dot_products import scaled_series
from kafeat.onnx.elementary import log1p, positive_or_one, product, refuse_negative
from kafeat.onnx.graph import Graph, Value
from kafeat.onnx.subsets import all_sets, sets_of_size
from kafeat.types import Array, Floats


@dataclass(frozen=True, eq=False)
class LandmarkGraph:
    """Rows (m, d), float64, or numbers of columns (m,) of a precomputed kernel; the kernel is divided by `scale`."""

    rows: Array
    parameters: KernelParameters
    scale: float
    centre: Array | None = None
    """Of kernels of the distance, (d,): where both sides are moved to; None: the mean of the landmarks."""


Form: TypeAlias = Callable[[Graph, Value, LandmarkGraph], Value]
"""k(x, l_j)/scale of every row of x (n, d) with every landmark, (n, m)."""


def landmark_form(kernel: str) -> Form:
    """Return the operators of a kernel: the function of its name."""
    form: Form = globals()[kernel]
    return form


def linear(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """x·l."""
    return product(graph, x, of.rows / of.scale)


def polynomial(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """(γ x·l + c₀)^degree."""
    root = of.scale ** (1.0 / of.parameters.degree)
    dots = product(graph, x, of.rows * (of.parameters.gamma / root))
    return graph.op("Pow", graph.op("Add", dots, of.parameters.coef0 / root), float(of.parameters.degree))


def sigmoid(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """tanh(γ x·l + c₀)."""
    dots = graph.op("Mul", product(graph, x, of.rows), of.parameters.gamma)
    return graph.op("Tanh", graph.op("Add", dots, of.parameters.coef0))


def series(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """Σ a_n (γ x·l)^n, by Horner's rule."""
    lower, last, factor = scaled_series(of.parameters.coefficients, of.scale)
    dots = product(graph, x, of.rows * (of.parameters.gamma * factor))
    total = graph.op("Add", graph.op("Mul", dots, 0.0), last)
    for coefficient in reversed(lower):
        total = graph.op("Add", graph.op("Mul", total, dots), coefficient)
    return total


def anova(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """Σ over sets of `degree` columns of Π γ x_i l_i."""
    factor = of.parameters.gamma / of.scale ** (1.0 / of.parameters.degree)
    return sets_of_size(graph, x, of.rows * factor, of.parameters.degree)


def all_subsets(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """Π_i (1 + γ x_i l_i)."""
    share = of.scale ** (-1.0 / of.rows.shape[1])
    return all_sets(graph, x, of.rows * (of.parameters.gamma * share), share)


def cosine(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """x·l/(‖x‖‖l‖), and 0 where one of them is 0."""
    lengths = np.linalg.norm(of.rows, axis=1, keepdims=True)
    # Divided by the largest entry first: squares stay within the dtype.
    largest = graph.along_rows("ReduceMax", graph.op("Abs", x))
    x = graph.op("Div", x, positive_or_one(graph, largest))
    dots = product(graph, x, of.rows / np.where(lengths > 0.0, lengths, 1.0))
    norms = graph.op("Sqrt", graph.along_rows("ReduceSum", graph.op("Mul", x, x)))
    return graph.op("Div", dots, positive_or_one(graph, norms))


def hellinger(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """Σ_i √x_i √l_i."""
    refuse_negative(graph, x)
    return product(graph, graph.op("Sqrt", x), np.sqrt(of.rows))


def precomputed(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """The row holds k(x, ·) already; landmarks are numbers of columns."""
    return graph.op("Div", graph.columns(x, of.rows), of.scale)


def rbf(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """exp(−γr²)."""
    return graph.op("Exp", _squared(graph, x, of, -of.parameters.gamma))


def rational_quadratic(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """(1 + γr²/α)^{−α}."""
    logs = log1p(graph, _squared(graph, x, of, of.parameters.gamma / of.parameters.alpha))
    return graph.op("Exp", graph.op("Mul", logs, -of.parameters.alpha))


def matern(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """Of s = √(2νγ)·r: e^{−s}, (1 + s)e^{−s}, (1 + s + s²/3)e^{−s} for ν = ½, 3/2, 5/2."""
    if of.parameters.nu not in (0.5, 1.5, 2.5):
        raise UsageError(
            f"nu: expected 0.5, 1.5 or 2.5, got {of.parameters.nu:g}, whose matern kernel is a Bessel function: "
            "ONNX has no operator for it"
        )
    s = graph.op("Sqrt", _squared(graph, x, of, 2.0 * of.parameters.nu * of.parameters.gamma))
    decay = graph.op("Exp", graph.op("Neg", s))
    if of.parameters.nu == 0.5:
        return decay
    factor = s
    if of.parameters.nu == 2.5:
        factor = graph.op("Mul", s, graph.op("Add", graph.op("Mul", s, 1.0 / 3.0), 1.0))
    return graph.op("Mul", graph.op("Add", factor, 1.0), decay)


def _squared(graph: Graph, x: Value, of: LandmarkGraph, factor: float) -> Value:
    """c‖x − l‖² by one product, around a centre, which lets the sum cancel less."""
    centre = (of.rows.mean(axis=0) if of.centre is None else of.centre).astype(graph.dtype)
    moved = of.rows - centre
    norms = np.einsum("ij,ij->i", moved, moved)
    rows = graph.op("Sub", x, centre)
    squares = graph.along_rows("ReduceSum", graph.op("Mul", rows, rows))
    both = np.vstack([-2.0 * factor * moved.T, np.full(len(moved), factor)])
    sums = graph.op("Add", graph.matmul(graph.beside([rows, squares]), both), factor * norms)
    # rounding must not take r² below 0
    return graph.op("Max" if factor > 0.0 else "Min", sums, 0.0)


# Numbers that a row takes in each operator: what a batch needs of memory is some of these per row.
_NUMBERS = 4096

Terms = Callable[[Value, Floats], Value]
"""From x (n, 1, d) and landmarks (some, d) to what is summed, (n, some, d)."""


def _summed(graph: Graph, x: Value, landmarks: Floats, terms: Terms) -> Value:
    rows = graph.op("Unsqueeze", x, np.array([1]))
    m, d = landmarks.shape
    some = max(1, _NUMBERS // d)
    return graph.beside(
        [
            graph.op("ReduceSum", terms(rows, landmarks[start : start + some]), np.array([2]), keepdims=0)
            for start in range(0, m, some)
        ]
    )


def laplacian(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """exp(−γ‖x − l‖₁)."""

    def terms(rows: Value, some: Floats) -> Value:
        return graph.op("Abs", graph.op("Sub", rows, some))

    return graph.op("Exp", graph.op("Mul", _summed(graph, x, of.rows, terms), -of.parameters.gamma))


def intersection(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """Σ_i min(x_i, l_i)."""
    refuse_negative(graph, x)
    return _summed(graph, x, of.rows, lambda rows, some: graph.op("Min", rows, some))


def jensen_shannon(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """½ Σ_i x_i log₂((x_i + l_i)/x_i) + l_i log₂((x_i + l_i)/l_i), and a term of 0 counts as 0."""
    refuse_negative(graph, x)
    tiny = float(np.finfo(graph.dtype).tiny)

    def share(part: Value | Floats, total: Value) -> Value:
        logs = graph.op("Log", graph.op("Max", graph.op("Div", part, total), tiny))
        return graph.op("Mul", part, logs)

    def terms(rows: Value, some: Floats) -> Value:
        total = graph.op("Max", graph.op("Add", rows, some), tiny)
        return graph.op("Add", share(rows, total), share(some, total))

    return graph.op("Mul", _summed(graph, x, of.rows, terms), -0.5 / np.log(2.0))


def _harmonic(graph: Graph, x: Value, landmarks: Floats) -> Value:
    """Σ_i x_i l_i/(x_i + l_i), 0/0 counting as 0."""
    refuse_negative(graph, x)
    tiny = float(np.finfo(graph.dtype).tiny)

    def terms(rows: Value, some: Floats) -> Value:
        # x·(l/(x + l)): no factor is larger than it has to be
        total = graph.op("Max", graph.op("Add", rows, some), tiny)
        return graph.op("Mul", rows, graph.op("Div", some, total))

    return _summed(graph, x, landmarks, terms)


def additive_chi2(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """Σ_i 2 x_i l_i/(x_i + l_i)."""
    return graph.op("Mul", _harmonic(graph, x, of.rows), 2.0)


def chi2(graph: Graph, x: Value, of: LandmarkGraph) -> Value:
    """exp(−γ Σ_i (x_i − l_i)²/(x_i + l_i)), the sum being that of x + l − 4xl/(x + l)."""
    harmonic = graph.op("Mul", _harmonic(graph, x, of.rows), 4.0)
    sums = graph.op("Add", graph.along_rows("ReduceSum", x), of.rows.sum(axis=1))
    return graph.op(
        "Exp", graph.op("Mul", graph.op("Min", graph.op("Sub", harmonic, sums), 0.0), of.parameters.gamma)
    )
