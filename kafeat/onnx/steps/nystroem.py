"""The Nyström map as operators. Each kernel between rows and landmarks has a function of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.errors import UsageError
from kafeat.maths.kernel import KernelParameters
from kafeat.maths.kernel_tiles import Landmarks
from kafeat.maths.kernels.dot_products import scaled_series
from kafeat.onnx.elementary import (
    all_sets,
    blocks,
    log1p,
    positive_or_one,
    product,
    refuse_negative,
    sets_of_size,
)
from kafeat.onnx.graph import Value, beside
from kafeat.samplers.nystroem import Nystroem
from kafeat.types import Floats


def emit_nystroem(fitted: FittedStep, x: Value) -> Value:
    """Return the kernel of rows and landmarks, times the projection matrix, in the dtype of the map's products."""
    step, state, outer = cast(Nystroem, fitted.step), fitted.state, x.graph.dtype
    if not isinstance(step.kernel, str):
        raise UsageError(
            "kernel: expected a kernel by name, got a Python function, which no ONNX operator calls"
        )
    landmarks = Landmarks(state["landmarks"], outer, float(state["scale"]), state.get("centre"))
    # k(x, l_j)/scale for every row of x (n, d) and every landmark, (n, m)
    kernel: Callable[[Value, Landmarks, KernelParameters], Value] = globals()[step.kernel]
    inner = step.precision(state, outer)
    with x.graph.computing_in(inner):
        if inner != outer:
            x = x.cast(inner)
        parameters = KernelParameters.of(step, float(state["gamma"]))
        z = kernel(x, landmarks, parameters).matmul(state["projection"])
    return z if inner == outer else z.cast(outer)


def linear(x: Value, of: Landmarks, _p: KernelParameters) -> Value:
    """Return x·l."""
    return product(x, of.doubles / of.scale)


def polynomial(x: Value, of: Landmarks, p: KernelParameters) -> Value:
    """Return (γ x·l + c₀)^degree."""
    root = of.scale ** (1.0 / p.degree)
    dots = product(x, of.doubles * (p.gamma / root))
    moved: Value = dots + p.coef0 / root
    return moved.op("Pow", float(p.degree))


def sigmoid(x: Value, of: Landmarks, p: KernelParameters) -> Value:
    """Return tanh(γ x·l + c₀)."""
    return (product(x, of.doubles) * p.gamma + p.coef0).op("Tanh")


def series(x: Value, of: Landmarks, p: KernelParameters) -> Value:
    """Return Σ a_n (γ x·l)^n, by Horner's rule."""
    lower, last, factor = scaled_series(p.coefficients, of.scale)
    dots = product(x, of.doubles * (p.gamma * factor))
    total = dots * 0.0 + last
    for coefficient in reversed(lower):
        total = total * dots + coefficient
    return total


def anova(x: Value, of: Landmarks, p: KernelParameters) -> Value:
    """Return Σ over sets of `degree` columns of Π γ x_i l_i."""
    factor = p.gamma / of.scale ** (1.0 / p.degree)
    return sets_of_size(x, of.doubles * factor, p.degree)


def all_subsets(x: Value, of: Landmarks, p: KernelParameters) -> Value:
    """Return Π_i (1 + γ x_i l_i)."""
    share = of.scale ** (-1.0 / of.doubles.shape[1])
    return all_sets(x, of.doubles * (p.gamma * share), share)


def cosine(x: Value, of: Landmarks, _p: KernelParameters) -> Value:
    """Return x·l/(‖x‖‖l‖), and 0 where one of the rows is 0."""
    lengths = np.linalg.norm(of.doubles, axis=1, keepdims=True)
    # Divide by the largest entry first, so that squares stay within the dtype.
    x = x / positive_or_one(abs(x).row_max())
    dots = product(x, of.doubles / np.where(lengths > 0.0, lengths, 1.0))
    return dots / positive_or_one((x * x).row_sum().op("Sqrt"))


def hellinger(x: Value, of: Landmarks, _p: KernelParameters) -> Value:
    """Return Σ_i √x_i √l_i."""
    refuse_negative(x)
    return product(x.op("Sqrt"), np.sqrt(of.doubles))


def precomputed(x: Value, of: Landmarks, _p: KernelParameters) -> Value:
    """Return the columns of x whose numbers are the landmarks, because a row x already holds its kernel values."""
    return x.columns(of.rows) / of.scale


def rbf(x: Value, of: Landmarks, p: KernelParameters) -> Value:
    """Return exp(−γ‖x − l‖²)."""
    return _squared(x, of, -p.gamma).op("Exp")


def rational_quadratic(x: Value, of: Landmarks, p: KernelParameters) -> Value:
    """Return (1 + γ‖x − l‖²/α)^{−α}."""
    alpha = p.alpha
    return (log1p(_squared(x, of, p.gamma / alpha)) * -alpha).op("Exp")


def matern(x: Value, of: Landmarks, p: KernelParameters) -> Value:
    """Return e^{−s}, (1 + s)e^{−s}, (1 + s + s²/3)e^{−s} for ν = ½, 3/2, 5/2, with s = √(2νγ)·‖x − l‖."""
    nu = p.nu
    if nu not in (0.5, 1.5, 2.5):
        raise UsageError(
            f"nu: expected 0.5, 1.5 or 2.5, got {nu:g}, whose matern kernel is a Bessel function: "
            "ONNX has no operator for it"
        )
    s = _squared(x, of, 2.0 * nu * p.gamma).op("Sqrt")
    decay = (-s).op("Exp")
    if nu == 0.5:
        return decay
    factor = s * (s * (1.0 / 3.0) + 1.0) if nu == 2.5 else s
    return (factor + 1.0) * decay


def _squared(x: Value, of: Landmarks, factor: float) -> Value:
    """Return c‖x − l‖² for c = `factor` by one matrix product, around a centre that reduces cancellation."""
    centre = (of.doubles.mean(axis=0) if of.centre is None else of.centre).astype(x.graph.dtype)
    moved = of.doubles - centre
    norms = np.einsum("ij,ij->i", moved, moved)
    rows = x - centre
    both = np.vstack([-2.0 * factor * moved.T, np.full(len(moved), factor)])
    sums: Value = beside([rows, (rows * rows).row_sum()]).matmul(both) + factor * norms
    # rounding must not make r² negative
    return sums.op("Max" if factor > 0.0 else "Min", 0.0)


Terms = Callable[[Value, Floats], Value]
"""Returns the terms of a sum over columns, (n, k, d), for x (n, 1, d) and k landmarks (k, d)."""


def _summed(x: Value, landmarks: Floats, terms: Terms) -> Value:
    rows = x.with_axis(1)
    return beside([terms(rows, block).sum(2) for block in blocks(landmarks)])


def laplacian(x: Value, of: Landmarks, p: KernelParameters) -> Value:
    """Return exp(−γ‖x − l‖₁)."""
    distances = _summed(x, of.doubles, lambda rows, some: abs(rows - some))
    return (distances * -p.gamma).op("Exp")


def intersection(x: Value, of: Landmarks, _p: KernelParameters) -> Value:
    """Return Σ_i min(x_i, l_i)."""
    refuse_negative(x)
    return _summed(x, of.doubles, lambda rows, some: rows.op("Min", some))


def jensen_shannon(x: Value, of: Landmarks, _p: KernelParameters) -> Value:
    """Return ½ Σ_i x_i log₂((x_i + l_i)/x_i) + l_i log₂((x_i + l_i)/l_i). A term with x_i or l_i = 0 counts as 0."""
    refuse_negative(x)
    tiny = float(np.finfo(x.graph.dtype).tiny)

    def share(part: Value | Floats, total: Value) -> Value:
        shared: Value = part / total
        logs = shared.op("Max", tiny).op("Log")
        return x.graph.op("Mul", part, logs)

    def terms(rows: Value, some: Floats) -> Value:
        total = (rows + some).op("Max", tiny)
        return share(rows, total) + share(some, total)

    return _summed(x, of.doubles, terms) * (-0.5 / float(np.log(2.0)))


def _harmonic(x: Value, landmarks: Floats) -> Value:
    """Return Σ_i x_i l_i/(x_i + l_i), where 0/0 counts as 0."""
    refuse_negative(x)
    tiny = float(np.finfo(x.graph.dtype).tiny)
    # x·(l/(x + l)), so that no factor is larger than necessary
    return _summed(x, landmarks, lambda rows, some: rows * (some / (rows + some).op("Max", tiny)))


def additive_chi2(x: Value, of: Landmarks, _p: KernelParameters) -> Value:
    """Return Σ_i 2 x_i l_i/(x_i + l_i)."""
    return _harmonic(x, of.doubles) * 2.0


def chi2(x: Value, of: Landmarks, p: KernelParameters) -> Value:
    """Return exp(−γ Σ_i (x_i − l_i)²/(x_i + l_i)), whose terms are x_i + l_i − 4x_i l_i/(x_i + l_i)."""
    harmonic = _harmonic(x, of.doubles) * 4.0
    sums: Value = x.row_sum() + of.doubles.sum(axis=1)
    return ((harmonic - sums).op("Min", 0.0) * p.gamma).op("Exp")
