"""Formulas that several steps share, where ONNX has no operator of that name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from kafeat.maths.fourier.structured import StructuredAngles
from kafeat.onnx.graph import Graph, Value, beside, where
from kafeat.types import Array, Floats, State


def log1p(x: Value) -> Value:
    """log(1 + x) to the last digits also for tiny x: log(u)·x/(u − 1) with u = fl(1 + x), and x where u is 1.

    The rounding of u is in both factors and cancels (Kahan; Higham 2002, section 1.14.1).
    """
    u = x + 1.0
    less = u - 1.0
    tiny = less.op("Equal", 0.0)
    divisor = where(tiny, 1.0, less)
    return where(tiny, x, u.op("Log") * (x / divisor))


def positive_or_one(x: Value) -> Value:
    """x where it is above 0, and 1 elsewhere: what norms divide by."""
    return where(x > 0.0, x, 1.0)


def refuse_negative(x: Value) -> None:
    """Histogram kernels are defined for x ≥ 0."""
    x.graph.refuse(x < 0.0)


def same_in_all_rows(x: Value, values: Array) -> Value:
    """A matrix with a row of `values` for every row of x."""
    rows = x.op("Shape").op("Gather", np.array([0]), axis=0)
    return x.graph.op("Expand", values[None, :], rows.op("Concat", np.array([len(values)]), axis=0))


def flattened(x: Value, width: int) -> Value:
    """(n, ...) as (n, width)."""
    return x.op("Reshape", np.array([-1, width]))


def product(x: Value, matrix: Floats) -> Value:
    """x Mᵀ of a matrix M (m, d)."""
    return x.matmul(np.ascontiguousarray(matrix.T))


def form_product(x: Value, matrices: Sequence[Array], n_features: int) -> list[Value]:
    """The entrywise product of M [x, 1] of matrices M (m, n_features + 1), or of M x of those without the last column.

    It is one value for real matrices, and the real and the imaginary part for complex ones.
    """
    return reduce(_times, (_form(x, matrix, n_features) for matrix in matrices))


def _form(x: Value, matrix: Array, n_features: int) -> list[Value]:
    values = []
    for part in (matrix.real, matrix.imag) if np.iscomplexobj(matrix) else (matrix,):
        dots = product(x, part[:, :n_features])
        values.append(dots + part[:, -1] if part.shape[1] > n_features else dots)
    return values


def _times(a: list[Value], b: list[Value]) -> list[Value]:
    if len(a) == 1:
        return [a[0] * b[0]]
    return [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]


def emit_cosines(state: State, n_features: int, x: Value, input_scale: Floats | None = None) -> Value:
    """√a_j [cos ω_j·x, sin ω_j·x], or √(2a_j) cos(ω_j·x + b_j) where there are phases b."""
    frequencies = _frequencies(x.graph, state, n_features)
    m = len(frequencies)
    weights = state["weights"] if "weights" in state else np.array(1.0 / m)
    angles = product(x, frequencies if input_scale is None else frequencies * input_scale)
    if "phases" in state:
        return (angles + state["phases"]).cos() * np.sqrt(2.0 * weights)
    both = beside([angles.cos(), angles.op("Sin")])
    amplitudes: Floats = np.sqrt(np.tile(weights, 2) if weights.ndim else weights)
    return both * amplitudes


def _frequencies(graph: Graph, state: State, n_features: int) -> Floats:
    if "frequencies" in state:
        return state["frequencies"]
    graph.reserve(len(state["radii"]), n_features)
    return StructuredAngles.matrix(state, n_features)


def expm1(x: Value) -> Value:
    """e^x − 1 to the last digits also for tiny x: (u − 1)·x/log(u) with u = fl(e^x), and x where u is 1.

    Below −80 it is −1 to the last digit, and log(u) is no number soon.
    """
    x = x.op("Max", -80.0)
    u = x.op("Exp")
    less = u - 1.0
    tiny = less.op("Equal", 0.0)
    divisor = where(tiny, 1.0, u.op("Log"))
    return where(tiny, x, less * (x / divisor))


def normal_quantile(p: Value, most: float) -> Value:
    """Φ⁻¹(p), from −`most` to `most`; p below 1.4e-11 counts as that. Source: Wichura 1988, algorithm AS 241."""
    centred = p - 0.5
    middle = 0.425**2 - centred * centred
    near = centred * _ratio(middle.op("Max", 0.0), _NEAR)
    tail = p.op("Min", 1.0 - p).op("Max", float(np.exp(-25.0)))
    distance = (-tail.op("Log")).op("Sqrt") - 1.6
    far = _ratio(distance, _FAR) * centred.op("Sign")
    value = where(abs(centred) > 0.425, far, near)
    value = where(p <= 0.0, -most, value)
    value = where(p >= 1.0, most, value)
    return value.op("Clip", -most, most)


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


def _ratio(x: Value, coefficients: tuple[Sequence[float], Sequence[float]]) -> Value:
    above, below = (_polynomial(x, one) for one in coefficients)
    return above / below


def _polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """By Horner's rule; coefficients from the constant on."""
    total = x.graph.constant(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total
