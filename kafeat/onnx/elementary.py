"""Formulas that several steps share, where ONNX has no operator of that name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kafeat.maths.fourier.structured import StructuredAngles
from kafeat.onnx.graph import Graph, Value
from kafeat.types import Array, Floats, State


def log1p(graph: Graph, x: Value) -> Value:
    """log(1 + x) to the last digits also for tiny x: log(u)·x/(u − 1) with u = fl(1 + x), and x where u is 1.

    The rounding of u is in both factors and cancels (Kahan; Higham 2002, section 1.14.1).
    """
    u = graph.op("Add", x, 1.0)
    less = graph.op("Sub", u, 1.0)
    tiny = graph.op("Equal", less, 0.0)
    divisor = graph.op("Where", tiny, 1.0, less)
    return graph.op("Where", tiny, x, graph.op("Mul", graph.op("Log", u), graph.op("Div", x, divisor)))


def positive_or_one(graph: Graph, x: Value) -> Value:
    """x where it is above 0, and 1 elsewhere: what norms divide by."""
    return graph.op("Where", graph.op("Greater", x, 0.0), x, 1.0)


def refuse_negative(graph: Graph, x: Value) -> None:
    """Histogram kernels are defined for x ≥ 0."""
    graph.refuse(graph.op("Less", x, 0.0))


def same_in_all_rows(graph: Graph, x: Value, values: Array) -> Value:
    """A matrix with a row of `values` for every row of x."""
    rows = graph.op("Gather", graph.op("Shape", x), np.array([0]), axis=0)
    return graph.op("Expand", values[None, :], graph.op("Concat", rows, np.array([len(values)]), axis=0))


def flattened(graph: Graph, x: Value, width: int) -> Value:
    """(n, ...) as (n, width)."""
    return graph.op("Reshape", x, np.array([-1, width]))


def product(graph: Graph, x: Value, matrix: Floats) -> Value:
    """x Mᵀ of a matrix M (m, d)."""
    return graph.matmul(x, np.ascontiguousarray(matrix.T))


Complex = tuple[Value, Value]
"""The real and the imaginary part."""


def linear_form(graph: Graph, x: Value, matrix: Array, n_features: int) -> Value:
    """M [x, 1] of a real matrix M (m, n_features + 1), or M x of one without the last column."""
    dots = product(graph, x, matrix[:, :n_features])
    return graph.op("Add", dots, matrix[:, -1]) if matrix.shape[1] > n_features else dots


def complex_product(graph: Graph, x: Value, matrices: Sequence[Array], n_features: int) -> Complex:
    """The entrywise product of the forms of complex matrices."""
    total: Complex | None = None
    for matrix in matrices:
        re, im = (
            linear_form(graph, x, np.ascontiguousarray(part), n_features)
            for part in (matrix.real, matrix.imag)
        )
        total = (re, im) if total is None else _times(graph, total, (re, im))
    if total is None:
        raise ValueError("expected at least one factor")
    return total


def _times(graph: Graph, a: Complex, b: Complex) -> Complex:
    def mul(u: Value, v: Value) -> Value:
        return graph.op("Mul", u, v)

    re = graph.op("Sub", mul(a[0], b[0]), mul(a[1], b[1]))
    return re, graph.op("Add", mul(a[0], b[1]), mul(a[1], b[0]))


def emit_cosines(
    graph: Graph, state: State, n_features: int, x: Value, input_scale: Floats | None = None
) -> Value:
    """√a_j [cos ω_j·x, sin ω_j·x], or √(2a_j) cos(ω_j·x + b_j) where there are phases b."""
    frequencies = _frequencies(graph, state, n_features)
    m = len(frequencies)
    weights = state["weights"] if "weights" in state else np.array(1.0 / m)
    angles = product(graph, x, frequencies if input_scale is None else frequencies * input_scale)
    if "phases" in state:
        angles = graph.op("Add", angles, state["phases"])
        return graph.op("Mul", graph.cos(angles), np.sqrt(2.0 * weights))
    both = graph.beside([graph.cos(angles), graph.op("Sin", angles)])
    return graph.op("Mul", both, np.sqrt(np.tile(weights, 2) if weights.ndim else weights))


def _frequencies(graph: Graph, state: State, n_features: int) -> Floats:
    if "frequencies" in state:
        return state["frequencies"]
    graph.reserve(len(state["radii"]), n_features)
    return StructuredAngles.matrix(state, n_features)


def expm1(graph: Graph, x: Value) -> Value:
    """e^x − 1 to the last digits also for tiny x: (u − 1)·x/log(u) with u = fl(e^x), and x where u is 1.

    Below −80 it is −1 to the last digit, and log(u) is no number soon.
    """
    x = graph.op("Max", x, -80.0)
    u = graph.op("Exp", x)
    less = graph.op("Sub", u, 1.0)
    tiny = graph.op("Equal", less, 0.0)
    divisor = graph.op("Where", tiny, 1.0, graph.op("Log", u))
    return graph.op("Where", tiny, x, graph.op("Mul", less, graph.op("Div", x, divisor)))


def normal_quantile(graph: Graph, p: Value, most: float) -> Value:
    """Φ⁻¹(p), from −`most` to `most`; p below 1.4e-11 counts as that. Source: Wichura 1988, algorithm AS 241."""
    centred = graph.op("Sub", p, 0.5)
    middle = graph.op("Sub", 0.425**2, graph.op("Mul", centred, centred))
    near = graph.op("Mul", centred, _ratio(graph, graph.op("Max", middle, 0.0), _NEAR))
    tail = graph.op("Max", graph.op("Min", p, graph.op("Sub", 1.0, p)), float(np.exp(-25.0)))
    distance = graph.op("Sub", graph.op("Sqrt", graph.op("Neg", graph.op("Log", tail))), 1.6)
    far = graph.op("Mul", _ratio(graph, distance, _FAR), graph.op("Sign", centred))
    value = graph.op("Where", graph.op("Greater", graph.op("Abs", centred), 0.425), far, near)
    value = graph.op("Where", graph.op("LessOrEqual", p, 0.0), -most, value)
    value = graph.op("Where", graph.op("GreaterOrEqual", p, 1.0), most, value)
    return graph.op("Clip", value, -most, most)


# Numerators and denominators, from the constant on.
_NEAR = (
    (
        3.3871328727963666080, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
        4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3,
    ),
    (
        1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4,
        3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3,
    ),
)  # fmt: skip
_FAR = (
    (
        1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550, 3.64784832476320460504,
        1.27045825245236838258, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4,
    ),
    (
        1.0, 2.05319162663775882187, 1.67638483018380384940, 6.89767334985100004550e-1, 1.48103976427480074590e-1,
        1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9,
    ),
)  # fmt: skip


def _ratio(graph: Graph, x: Value, coefficients: tuple[Sequence[float], Sequence[float]]) -> Value:
    return graph.op("Div", *(_polynomial(graph, x, one) for one in coefficients))


def _polynomial(graph: Graph, x: Value, coefficients: Sequence[float]) -> Value:
    """By Horner's rule; coefficients from the constant on."""
    total = graph.constant(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = graph.op("Add", graph.op("Mul", total, x), coefficient)
    return total
