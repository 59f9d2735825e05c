"""Products of the spectra of count sketches, each a matrix product: sketch and Fourier transform are linear."""

from __future__ import annotations

from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.onnx.elementary import Complex, complex_product
from kafeat.onnx.graph import Graph, Value
from kafeat.samplers.tensor_sketch import TensorSketch, amplitudes
from kafeat.types import Array


def emit(graph: Graph, fitted: FittedStep, x: Value) -> Value:
    step, d = cast(TensorSketch, fitted.step), fitted.n_features_in
    D = step.n_components
    graph.reserve(step.degree, D // 2 + 1, 2, d + 1)
    scale = np.full(d + 1, np.sqrt(float(fitted.state["gamma"])))
    scale[-1] = np.sqrt(step.coef0)
    pairs = zip(fitted.state["buckets"], fitted.state["signs"] * scale, strict=True)
    spectrum = complex_product(graph, x, [_spectrum(buckets, values, D) for buckets, values in pairs], d)
    return _in_time(graph, spectrum, D) if step.domain == "time" else _in_frequency(graph, spectrum, D)


def _spectrum(buckets: Array, values: Array, D: int) -> Array:
    """The Fourier transform of a count sketch, (D//2 + 1, d + 1): of entry i, value · e^{−2πi k bucket/D}."""
    # whole turns are taken out, so that the angle is exact to the last digits
    turns = np.outer(np.arange(D // 2 + 1), buckets) % D
    spectrum: Array = values * np.exp(-2j * np.pi / D * turns)
    return spectrum


def _in_frequency(graph: Graph, spectrum: Complex, D: int) -> Value:
    """Re P₀, then Re P_k and Im P_k in turn; of the last one of an even number only the real part."""
    output = np.arange(D)
    re, im = (output + 1) // 2, D // 2 + 1 + output // 2
    places = np.where(output % 2 == 0, im, re)
    places[0] = 0
    return graph.op("Mul", graph.columns(graph.beside(list(spectrum)), places), amplitudes(D))


def _in_time(graph: Graph, spectrum: Complex, D: int) -> Value:
    """The inverse transform as a matrix: of a real sketch one of each ±k says all."""
    graph.reserve(2 * (D // 2 + 1), D)
    k = np.arange(D // 2 + 1)
    twice = np.where((k == 0) | (2 * k == D), 1.0, 2.0)[:, None] / D
    waves = twice * np.exp(2j * np.pi / D * (np.outer(k, np.arange(D)) % D))
    return graph.matmul(graph.beside(list(spectrum)), np.vstack([waves.real, -waves.imag]))
