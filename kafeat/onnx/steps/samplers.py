"""Samplers as operators: cosines, rectified units, exponentials, a few features per column, projections, products."""

from __future__ import annotations

from functools import reduce
from operator import mul
from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.chain.parallel import ParallelChains
from kafeat.errors import UsageError
from kafeat.maths.fourier.features import length_scales
from kafeat.maths.fourier.structured import StructuredAngles
from kafeat.onnx.elementary import flattened, product, refuse_negative
from kafeat.onnx.graph import Graph, Value, beside
from kafeat.onnx.model import emit_chain
from kafeat.samplers.arc_cosine import ArcCosine
from kafeat.samplers.fourier import Fourier
from kafeat.samplers.homogeneous import Homogeneous
from kafeat.samplers.intersection_bins import IntersectionBins
from kafeat.samplers.positive_exponential import PositiveExponential, exponent_terms
from kafeat.samplers.product import Product
from kafeat.samplers.projection import Projection
from kafeat.samplers.skewed import Skewed
from kafeat.samplers.union import Union
from kafeat.types import Floats, State


def emit_fourier(fitted: FittedStep, x: Value) -> Value:
    """Return random Fourier features: cosines of one product with the matrix of frequencies."""
    step = cast(Fourier, fitted.step)
    scales = length_scales(step.length_scale, fitted.n_features_in)
    return _cosines(fitted.state, fitted.n_features_in, x, scales)


def emit_skewed(fitted: FittedStep, x: Value) -> Value:
    """Return Fourier features of log(x + c), for x above −c."""
    moved = x + cast(Skewed, fitted.step).skewedness
    x.graph.refuse(moved <= 0.0)
    return _cosines(fitted.state, fitted.n_features_in, moved.op("Log"))


def _cosines(state: State, n_features: int, x: Value, input_scale: Floats | None = None) -> Value:
    """Return √a_j [cos ω_j·x, sin ω_j·x], or √(2a_j) cos(ω_j·x + b_j) if there are phases b."""
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


def emit_arc_cosine(fitted: FittedStep, x: Value) -> Value:
    """Return rectified linear units, or steps, of one matrix product."""
    step = cast(ArcCosine, fitted.step)
    scale = float(np.sqrt(2.0 / step.n_components))
    products = product(x, fitted.state["directions"] * (scale if step.order else 1.0))
    if step.order:
        first = products.op("Relu")
    else:  # steps, which are ½ at 0
        halves = products.op("Sign") + 1.0
        first = halves * (0.5 * scale)
    if step.features == "plain":
        return first
    return beside([first, first - products if step.order else scale - first])


def emit_positive_exponential(fitted: FittedStep, x: Value) -> Value:
    """Return exponentials of exponents from one matrix product."""
    step = cast(PositiveExponential, fitted.step)
    w, shifts, root = exponent_terms(fitted.state, step.n_components)
    angles, scaled = product(x, w), x * root
    squares = (scaled * scaled).row_sum()
    exponents = [shifts + angles - squares]
    if step.features == "hyperbolic":
        exponents.append(shifts - angles - squares)
    both = beside(exponents)
    _refuse_range(both)
    return both.op("Exp")


def _refuse_range(exponents: Value) -> None:
    """Refuse a row whose largest output overflows or vanishes, because its features would be infinite or all 0."""
    graph, largest = exponents.graph, exponents.row_max()
    bounds = np.finfo(graph.dtype)
    graph.refuse(~((largest > float(np.log(bounds.tiny))) & (largest < float(np.log(bounds.max)))))


def emit_homogeneous(fitted: FittedStep, x: Value) -> Value:
    """Return √(x^γ) times cosines and sines of multiples of log x, for all frequencies at once."""
    step, state, d = cast(Homogeneous, fitted.step), fitted.state, fitted.n_features_in
    if step.negative == "error":
        refuse_negative(x)
    size = abs(x)
    root = size.op("Sqrt") if step.homogeneity == 1.0 else size.op("Pow", step.homogeneity / 2.0)
    if step.negative == "signed":
        root = root * x.op("Sign")
    first, *rest = state["coefficients"]
    constant: Value = root * np.sqrt(first)
    if not rest:
        return constant
    # The shapes are (n, 1, d) and (order, 1). log 0 would be −∞, so it is replaced; the factor `root` is 0 there.
    logs = size.op("Max", float(np.finfo(x.graph.dtype).tiny)).op("Log")
    angles = logs.with_axis(1) * state["frequencies"][:, None]
    scaled = root.with_axis(1) * np.sqrt(2.0 * np.array(rest))[:, None]
    cosines, sines = ((wave * scaled).with_axis(2) for wave in (angles.cos(), angles.op("Sin")))
    return beside([constant, flattened(cosines.op("Concat", sines, axis=2), 2 * step.n * d)])


def emit_intersection_bins(fitted: FittedStep, x: Value) -> Value:
    """Return clip(N x/max − l, 0, 1) for every bin l, times √(max/N)."""
    N, maximum = cast(IntersectionBins, fitted.step).n_bins, fitted.state["maximum"]
    refuse_negative(x)
    share = x.op("Min", maximum) / np.where(maximum > 0.0, maximum, 1.0)
    level = (share * float(N)).with_axis(1)
    part = (level - np.arange(float(N))[:, None]).op("Clip", 0.0, 1.0)
    return flattened(part * np.sqrt(maximum / N), N * fitted.n_features_in)


def emit_projection(fitted: FittedStep, x: Value) -> Value:
    """Return A x for the projection as a dense matrix A."""
    step, state, d = cast(Projection, fitted.step), fitted.state, fitted.n_features_in
    x.graph.reserve(step.n_features_out(state, d), d)
    return product(x, step.written_out(state, d))


def emit_union(fitted: FittedStep, x: Value) -> Value:
    """Return the outputs of all chains, each on its own columns and times the root of its weight."""
    step = cast(Union, fitted.step)
    parts = zip(step.maps, _maps(step, fitted, x), strict=True)
    return beside([z if part.weight == 1.0 else z * np.sqrt(part.weight) for part, z in parts])


def emit_product(fitted: FittedStep, x: Value) -> Value:
    """Return all products of outputs of the chains, or products of random sums of each chain's outputs."""
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
    """Return the outputs of each chain."""
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
