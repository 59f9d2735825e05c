"""Formulas that several steps share, for which ONNX has no operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from kafeat.onnx.graph import Value, beside, where
from kafeat.types import Array, Floats


def log1p(x: Value) -> Value:
    """Return log(1 + x) to the last digits also for tiny x: log(u)·x/(u − 1) with u = fl(1 + x), and x where u is 1.

    The rounding of u is in both factors and cancels (Kahan; Higham 2002, section 1.14.1).
    """
    u = x + 1.0
    less = u - 1.0
    tiny = less.op("Equal", 0.0)
    divisor = where(tiny, 1.0, less)
    return where(tiny, x, u.op("Log") * (x / divisor))


def positive_or_one(x: Value) -> Value:
    """Return x where it is above 0, and 1 elsewhere, as a divisor for norms."""
    return where(x > 0.0, x, 1.0)


def refuse_negative(x: Value) -> None:
    """Make the features of rows with negative numbers NaN, because histogram kernels are defined for x ≥ 0."""
    x.graph.refuse(x < 0.0)


def same_in_all_rows(x: Value, values: Array) -> Value:
    """Return a matrix that repeats `values` as a row for every row of x."""
    rows = x.op("Shape").op("Gather", np.array([0]), axis=0)
    return x.graph.op("Expand", values[None, :], rows.op("Concat", np.array([len(values)]), axis=0))


def flattened(x: Value, width: int) -> Value:
    """Return an array (n, …) in the shape (n, width)."""
    return x.op("Reshape", np.array([-1, width]))


def product(x: Value, matrix: Floats) -> Value:
    """Return x Mᵀ for a matrix M (m, d)."""
    return x.matmul(np.ascontiguousarray(matrix.T))


def expm1(x: Value) -> Value:
    """Return e^x − 1 to the last digits also for tiny x: (u − 1)·x/log(u) with u = fl(e^x), and x where u is 1.

    For x below −80, the result is −1 to the last digit, and log(u) would soon be infinite.
    """
    x = x.op("Max", -80.0)
    u = x.op("Exp")
    less = u - 1.0
    tiny = less.op("Equal", 0.0)
    divisor = where(tiny, 1.0, u.op("Log"))
    return where(tiny, x, less * (x / divisor))


def normal_quantile(p: Value, most: float) -> Value:
    """Return Φ⁻¹(p), clipped to ±`most`. p or 1 − p below e⁻²⁵ counts as e⁻²⁵. Source: Wichura 1988, AS 241."""
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


# The coefficients of numerators and denominators, from the constant up.
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
    """Return the polynomial with these coefficients, from the constant up, by Horner's rule."""
    total = x.graph.constant(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total


# The most numbers per row in the result of an operator. A batch needs a few times as much memory per row.
_NUMBERS = 4096


def blocks(rows: Floats) -> Iterator[Floats]:
    """Return blocks of rows of a matrix (m, d), with as many rows as one operator can process."""
    some = max(1, _NUMBERS // rows.shape[1])
    return (rows[start : start + some] for start in range(0, len(rows), some))


Parts = list[Value | None]
"""One array (n, rows, groups) per set size: Σ_S Π_{i ∈ S} x_i r_i over sets S of columns of a group. None means 0."""
Merge = Callable[[Parts, Parts], Parts]
"""Merges groups of columns in pairs: returns the sums of each pair from those of its two groups."""


def sets_of_size(x: Value, rows: Floats, size: int) -> Value:
    """Return Σ_{|S| = size} Π_{i ∈ S} x_i r_i for every row r of a matrix (m, d), (n, m)."""
    return _merged(x, rows, 0.0, lambda term: [term, *[None] * (size - 1)], _of_sizes)


def larger_sets(x: Value, rows: Floats, least: int) -> Value:
    """Return Σ_{|S| ≥ least} Π_{i ∈ S} x_i r_i, least = 1 or 2, (n, m)."""
    if least == 1:
        return _merged(x, rows, 0.0, lambda term: [term], _of_one)
    return _merged(x, rows, 0.0, lambda term: [term, None], _of_two)


def all_sets(x: Value, rows: Floats, share: float = 1.0) -> Value:
    """Return Π_i (share + x_i r_i), (n, m)."""
    return _merged(x, rows, share, lambda term: [term], lambda a, b: [_times(a[0], b[0])])


def _merged(x: Value, rows: Floats, share: float, start: Callable[[Value], Parts], merge: Merge) -> Value:
    """Merge columns in pairs until one group holds them all. Return the last of the `Parts` of this group, (n, m)."""
    x, sums = x.with_axis(1), []
    for block in blocks(rows):
        terms = x * block
        parts, width = start(terms + share if share else terms), rows.shape[1]
        while width > 1:
            half = width // 2
            merged = merge(_span(parts, 0, half), _span(parts, half, 2 * half))
            if width % 2:
                rests = _span(parts, width - 1, width)
                merged = [_beside(one, rest) for one, rest in zip(merged, rests, strict=True)]
            parts, width = merged, width - half
        last = parts[-1] or terms * 0.0
        sums.append(last.op("Squeeze", np.array([2])))
    return beside(sums)


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
    """Merge `Parts` [sums over single columns, sums over larger sets]. A larger set is in one group or spans both."""
    of_both = _times(_plus(a[0], a[1]), _plus(b[0], b[1]))
    return [_plus(a[0], b[0]), _plus(_plus(a[1], b[1]), of_both)]


def _plus(a: Value | None, b: Value | None) -> Value | None:
    return a + b if a and b else a or b


def _times(a: Value | None, b: Value | None) -> Value | None:
    return a * b if a and b else None


def _span(parts: Parts, start: int, stop: int) -> Parts:
    return [part and part.span(start, stop, axis=2) for part in parts]


def _beside(part: Value | None, rest: Value | None) -> Value | None:
    """Append the sums `rest` of one more group to the sums `part` of several groups. None means that all sums are 0."""
    if part is None:
        return None  # if larger groups have no sets of this size, the single column has none
    return part.op("Concat", rest or part.span(0, 1, axis=2) * 0.0, axis=2)
