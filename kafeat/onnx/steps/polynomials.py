"""Maps of the polynomial and the dot-product kernels as operators."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import cast

import numpy as np

from kafeat.chain.chain import FittedStep
from kafeat.maths.dot_products import ExactTerms
from kafeat.maths.hadamard import written_out
from kafeat.maths.sketch_loop import Spectrum
from kafeat.onnx.elementary import all_sets, larger_sets, product, same_in_all_rows, sets_of_size
from kafeat.onnx.graph import Graph, Value, beside
from kafeat.samplers.polynomial_features import PolynomialFeatures, factors_of, monomial_weights
from kafeat.samplers.random_maclaurin import RandomMaclaurin
from kafeat.samplers.random_subsets import RandomSubsets
from kafeat.samplers.tensor_sketch import TensorSketch, bucket_spectra
from kafeat.samplers.tensor_srht import TensorSrht
from kafeat.types import Array, State


def emit_polynomial_features(fitted: FittedStep, x: Value) -> Value:
    """Return every monomial, degree by degree. A monomial is a variable times a monomial of one degree less."""
    step, d = cast(PolynomialFeatures, fitted.step), fitted.n_features_in
    lowest = 0 if step.coef0 > 0 else step.degree
    scaled = x * np.sqrt(float(fitted.state["gamma"]))
    monomials, parts = scaled, []
    for q in range(step.degree + 1):
        if q > 1:
            variables, lower = factors_of(d, q)
            monomials = monomials.columns(lower) * scaled.columns(variables)
        if q >= lowest:
            weights = monomial_weights(step, d, q)
            parts.append(monomials * weights if q else same_in_all_rows(x, weights))
    return beside(parts)


def emit_random_maclaurin(fitted: FittedStep, x: Value) -> Value:
    """Return random Maclaurin features: level j multiplies the outputs of degree ≥ j by sums with random signs."""
    state = fitted.state
    parts = _carried(x, cast(RandomMaclaurin, fitted.step).exact_terms(state))
    drawn = _random_products(state, float(np.sqrt(float(state["gamma"]))), x)
    if drawn is not None:
        parts.append(drawn)
    of_degree_0 = state["weights"][state["degrees"] == 0]
    if len(of_degree_0):
        parts.append(same_in_all_rows(x, of_degree_0))
    return beside(parts)


def _random_products(state: State, root: float, x: Value) -> Value | None:
    """Return the outputs of degree 1 and above, in descending order of degree, or None if there are none."""
    degrees, weights = state["degrees"], state["weights"]
    levels = int(degrees.max(initial=0))
    counts = [int((degrees >= level).sum()) for level in range(1, levels + 1)]
    ends, z, done = np.cumsum([0, *counts]), None, 0
    for level in reversed(range(levels)):
        factors = root * state["signs"][ends[level] : ends[level + 1]]
        # An output gets its weight with its last factor, so that partial products stay within the range.
        factors[done:] *= weights[done : counts[level], None]
        new = product(x, factors)
        if z is not None:
            longer = new.span(0, done) * z
            rest = [new.span(done, counts[level])] if counts[level] > done else []
            new = beside([longer, *rest])
        z, done = new, counts[level]
    return z


def emit_random_subsets(fitted: FittedStep, x: Value) -> Value:
    """Return the exact terms, then sums over sets of columns with random signs."""
    step, state = cast(RandomSubsets, fitted.step), fitted.state
    root = float(np.sqrt(float(state["gamma"])))
    m, least = len(state["signs"]), step.least_set(state)
    if step.kernel == "anova":
        drawn = sets_of_size(x, root * state["signs"], step.degree)
    elif least:
        drawn = larger_sets(x, root * state["signs"], least)
    else:
        drawn = all_sets(x, root * state["signs"])
    return beside([*_carried(x, step.exact_terms(state)), drawn * m**-0.5])


def emit_tensor_sketch(fitted: FittedStep, x: Value) -> Value:
    """Return products of spectra of count sketches. Each spectrum is linear in x, so one matrix product computes it."""
    step, d = cast(TensorSketch, fitted.step), fitted.n_features_in
    taken, terms = step.spectrum(fitted.state, d), step.exact_terms(fitted.state)
    x.graph.reserve(step.degree, taken.size, 2, d + 1)
    pairs = zip(fitted.state["buckets"], step.factors(fitted.state), strict=True)
    spectra = [np.stack([*bucket_spectra(*pair, taken.length)], axis=1) for pair in pairs]
    spectrum = _without_terms(x, spectra, terms, d)
    z = (_in_time if step.domain == "time" else _in_frequency)(spectrum, taken)
    return _beside_terms(x, terms, [z], step.n_components - terms.count(d) - taken.count)


def _without_terms(x: Value, matrices: list[Array], terms: ExactTerms, d: int) -> list[Value]:
    """Return Π_q M_q [x, 1] without exact terms, as one value, or as real and imaginary part if it is complex."""
    parts = _form_product(x, matrices, d)
    if terms.constant is None:
        return parts
    constants = np.stack([matrix[:, -1] for matrix in matrices])
    # the matrix M (m, d + 1) for which M [x, 1] are the exact terms
    carried = np.zeros_like(matrices[0])
    carried[:, -1] = constants.prod(axis=0)
    if terms.linear is not None:
        for q, matrix in enumerate(matrices):
            others = np.delete(constants, q, axis=0).prod(axis=0)
            carried[:, :-1] += others[:, None] * matrix[:, :-1]
    return [part - one for part, one in zip(parts, _form_product(x, [carried], d), strict=True)]


def _form_product(x: Value, matrices: Sequence[Array], n_features: int) -> list[Value]:
    """Return the entrywise product of M [x, 1] for matrices M (m, n_features + 1), or of M x for (m, n_features).

    It is one value for real matrices, or the real and the imaginary part for complex ones.
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


def _beside_terms(x: Value, terms: ExactTerms, parts: list[Value], left: int) -> Value:
    """Return the exact terms, then the other outputs, then `left` outputs of 0."""
    if left:
        parts = [*parts, same_in_all_rows(x, np.zeros(left))]
    return beside([*_carried(x, terms), *parts])


def _carried(x: Value, terms: ExactTerms) -> list[Value]:
    """Return the outputs that hold exact terms of the kernel: the constant and the linear ones, if there are any."""
    linear = [] if terms.linear is None else [x * terms.linear]
    constant = [] if terms.constant is None else [same_in_all_rows(x, np.array([terms.constant]))]
    return [*constant, *linear]


def _in_frequency(spectrum: list[Value], taken: Spectrum) -> Value:
    """Return the outputs in the frequency domain: Re P_k and Im P_k of the product P of spectra, for the chosen k."""
    places = taken.frequencies + taken.size * taken.imaginary
    return beside(spectrum).columns(places) * taken.amplitudes


def _in_time(spectrum: list[Value], taken: Spectrum) -> Value:
    """Return the outputs in the time domain by one matrix product. The sketch is real, so k ≥ 0 is enough."""
    D = taken.length
    spectrum[0].graph.reserve(2 * (D // 2 + 1), D)
    k = np.arange(D // 2 + 1)
    twice = np.where((k == 0) | (2 * k == D), 1.0, 2.0)[:, None] / D
    waves = twice * np.exp(2j * np.pi / D * (np.outer(k, np.arange(D)) % D))
    return beside(spectrum).matmul(np.vstack([waves.real, -waves.imag]))


def emit_tensor_srht(fitted: FittedStep, x: Value) -> Value:
    """Return products of sampled Hadamard transforms, each by multiplication with its matrix."""
    step, d = cast(TensorSrht, fitted.step), fitted.n_features_in
    matrices, terms = _hadamard_factors(x.graph, step, fitted), step.exact_terms(fitted.state)
    parts = _without_terms(x, matrices, terms, d)
    taken = len(parts) * fitted.state["rows"].shape[1] + terms.count(d)
    return _beside_terms(x, terms, parts, step.n_components - taken)


def _hadamard_factors(graph: Graph, step: TensorSrht, fitted: FittedStep) -> list[Array]:
    state, d = fitted.state, fitted.n_features_in
    graph.reserve(
        step.degree, 2 if step.complex_to_real else 1, state["rows"].shape[1], state["turns"].shape[-1]
    )
    return [written_out(*pair) for pair in zip(step.factors(state, d), state["rows"], strict=True)]
