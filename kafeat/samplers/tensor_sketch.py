"""The polynomial kernel of low degree: random sums of products of columns, by count sketches and an FFT."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from kafeat.contract.checks import check_indices, refuse_infinite
from kafeat.contract.step import Sample, Transform, parameter, refuse_parameter
from kafeat.contract.tile import Rows, SparseRows
from kafeat.maths.dot_products import ExactTerms, PolynomialSketch, fit_gamma, rest_of_product
from kafeat.maths.sketch_loop import SketchLoop, Spectrum, sketch_loop, spectrum_for
from kafeat.types import Array, ArrayOf, Floats, Shapes, State

# The rows of a strip: few enough to stay in the cache, and enough to keep two threads busy.
_STRIP = 128
# The most buckets of all sketches together. Above this number, NumPy would need 10 GB for a strip.
_MOST_BUCKETS = 10_000_000


class TensorSketch(PolynomialSketch):
    """TensorSketch: z(x)·z(y) ≈ (γ x·y + c₀)^p, unbiased.

    The p-fold outer product of u = [√γ x, √c₀] is hashed into D buckets without being formed. To this end, p count
    sketches of u (a bucket and a sign per entry) are multiplied in the Fourier domain. The variance of an entry is at
    most (3^p − 1)(‖u‖‖v‖)^{2p}/D, so the error falls like 1/√D, or faster if buckets are balanced and few columns share
    a bucket. One output carries c₀^p exactly, and d outputs carry the linear part if that leaves less variance. All
    other outputs sketch the rest. A Fourier transform preserves dot products, so with `domain: frequency`, the inverse
    transform is left out, and the outputs are scaled numbers of the spectrum. More than D buckets may make the
    transform faster.

    Source: Pham & Pagh 2013, algorithm 1.
    """

    domain: Literal["frequency", "time"] = parameter(
        "frequency", "outputs are the spectrum of the sketch, or the sketch itself, which costs one more FFT"
    )

    def check_parameters(self) -> None:
        if self.degree * self.n_components > _MOST_BUCKETS:
            most = _MOST_BUCKETS // self.degree
            refuse_parameter(
                "n_components", f"at most {most:,} for the degree {self.degree}", self.n_components
            )

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        d = sample.X.shape[1]
        gamma = fit_gamma(self.gamma, sample.X, rng)
        carried = self.choose_terms(sample.X, gamma, least=1)
        state: dict[str, Array] = {**carried, "gamma": np.array(gamma)}
        if self.domain == "frequency":
            state["length"] = np.array(spectrum_for(self.n_sketched(state, d)).length)
        shape = (self.degree, d + 1)
        return {
            **state,
            "buckets": rng.integers(self.spectrum(state, d).length, size=shape, dtype=np.int64),
            "signs": rng.choice(np.array([-1, 1], dtype=np.int8), size=shape),
        }

    def spectrum(self, state: State, n_features_in: int) -> Spectrum:
        """Return which numbers of the Fourier transform become outputs, and the number of buckets.

        Without `length` in the state (early formats, scikit-learn, sketches in the time domain), every bucket is an
        output. A few outputs may stay 0, because the FFT is faster for some numbers of buckets.
        """
        sketched = self.n_sketched(state, n_features_in)
        if "length" in state:
            return Spectrum(sketched, int(state["length"]))
        length = sketched if self.exact_terms(state).constant is None else fast_length(sketched)
        return Spectrum(length, length)

    def state_shapes(self, state: State, n_features_in: int) -> Shapes:
        shape = (self.degree, n_features_in + 1)
        return {
            "buckets": ArrayOf(shape, "int64"),
            "signs": ArrayOf(shape, "int8"),
            "gamma": (),
            # maps of the first formats and of scikit-learn have neither `linear` nor `length`
            "linear": ArrayOf((), "bool", optional=True),
            "length": ArrayOf((), "int64", optional=True),
        }

    def check_state(self, state: State, n_features_in: int) -> None:
        super().check_state(state, n_features_in)
        spectrum = self.spectrum(state, n_features_in)
        if spectrum.count < 1:
            raise ValueError("state.linear: expected fewer exact outputs than there are outputs")
        if "length" in state and (self.domain == "time" or spectrum != spectrum_for(spectrum.count)):
            raise ValueError(
                f"state.length: expected the length of a transform that has {spectrum.count} numbers"
            )
        check_indices("state.buckets", state["buckets"], spectrum.length)

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        factors = self.factors(state)
        spectrum, terms = self.spectrum(state, n_features_in), self.exact_terms(state)
        sketch = _Sketch(state["buckets"], factors, spectrum, self.n_components, terms, self.domain == "time")
        return _SketchTransform(sketch, dtype)

    def factors(self, state: State) -> Floats:
        """Return the factor of each input, and of the constant 1 after them, in each sketch, (degree, d + 1)."""
        scale = np.full(state["signs"].shape[1], np.sqrt(float(state["gamma"])))
        scale[-1] = np.sqrt(self.coef0)
        return state["signs"] * scale


@dataclass(frozen=True)
class _Sketch:
    """A fitted TensorSketch: buckets and factors of the inputs and of the constant 1 after them, and its outputs."""

    buckets: Array
    factors: Floats
    spectrum: Spectrum
    n_outputs: int
    terms: ExactTerms
    in_time: bool

    @property
    def n_features_in(self) -> int:
        return len(self.factors[0]) - 1

    @property
    def outputs(self) -> slice:
        """The outputs that are sketched: after those of exact terms, and before those that are always 0."""
        start = self.terms.count(self.n_features_in)
        return slice(start, start + self.spectrum.count)

    @property
    def inputs(self) -> Floats:
        """The factors for the sketch. The constant's is 0 if the first outputs carry its terms exactly."""
        factors = self.factors.copy()
        factors[:, -1] *= self.terms.constant is None
        return factors

    @property
    def constants(self) -> Iterator[Array]:
        """The spectra of the constant's sketches, one at a time: all spectra together may be large."""
        return bucket_spectra(self.buckets[:, -1], self.factors[:, -1], self.spectrum.length)

    def carry(self, X: Rows, out: Floats) -> None:
        """Write the exact terms, and zeros after the sketched outputs."""
        self.terms.write(X, out)
        out[:, self.outputs.stop :] = 0.0

    def loop(self, dtype: np.dtype[Any]) -> SketchLoop | None:
        """Return the compiled loop, or None if NumPy has to compute."""
        if self.in_time:
            return None
        loop = sketch_loop(self.inputs, self.buckets, self.spectrum, dtype)
        if loop is not None and self.terms.constant is not None:
            loop.leave_out(self.constants, self.terms.linear is not None)
        return loop


class _SketchTransform(Transform):
    """A transform by a compiled loop for lengths that are powers of two. Other lengths use sparse sketches and FFTs."""

    takes = (SparseRows,)

    def __init__(self, sketch: _Sketch, dtype: np.dtype[Any]) -> None:
        self.n_features_in, self.n_features_out = sketch.n_features_in, sketch.n_outputs
        self._sketch, self._dtype, self._loop = sketch, dtype, sketch.loop(dtype)

    @cached_property
    def _constants(self) -> list[Array]:
        terms, dtype = self._sketch.terms, np.result_type(self._dtype, np.complex64)
        return [] if terms.constant is None else [one.astype(dtype) for one in self._sketch.constants]

    @cached_property
    def _sketches(self) -> Any:
        """All sketches as one sparse matrix, for one product and one FFT."""
        from scipy.sparse import csr_array

        (degree, d), L = self._sketch.buckets.shape, self._sketch.spectrum.length
        places = self._sketch.buckets + np.arange(degree)[:, None] * L
        values = self._sketch.inputs.ravel().astype(self._dtype)
        return csr_array((values, (places.ravel(), np.tile(np.arange(d), degree))), shape=(degree * L, d))

    def scratch(self, rows: int) -> Floats:
        if self._loop:
            return self._loop.scratch()
        # The last input is the constant 1, which carries c₀.
        return np.ones((self.n_features_in + 1, min(rows, _STRIP)), dtype=self._dtype)

    def apply(self, X: Rows, out: Floats, scratch: Floats) -> None:
        self._sketch.carry(X, out)
        part = out[:, self._sketch.outputs]
        if self._loop and self._loop.write(X, part, scratch):
            return
        if not self._loop:
            for start in range(0, len(X), _STRIP):
                self._write(X[start : start + _STRIP], part[start : start + _STRIP], scratch)
        refuse_infinite(out)

    def _write(self, X: Rows, out: Floats, scratch: Floats) -> None:
        # scipy's FFT: NumPy's forward one was 8 to 20 times as slow on a float32 tile.
        from scipy import fft

        L = self._sketch.spectrum.length
        sketches = self._counted(X, L) if isinstance(X, SparseRows) else self._multiplied(X, L, scratch)
        spectrum = self._product(fft.rfft(sketches, axis=2))
        if self._sketch.in_time:
            out[...] = fft.irfft(spectrum, n=L, axis=1, overwrite_x=True)
            return
        taken, a = self._sketch.spectrum, self._sketch.spectrum.amplitudes.astype(self._dtype)
        # Real and imaginary parts alternate in memory, which is the order of the outputs, except for Im P₀ = 0.
        parts = spectrum.view(self._dtype)
        if not taken.first:
            np.multiply(parts[:, 0], a[0], out=out[:, 0])
            out, a = out[:, 1:], a[1:]
        np.multiply(parts[:, 2 : 2 + len(a)], a, out=out)

    def _multiplied(self, X: Floats, L: int, scratch: Floats) -> Floats:
        """Return the sketches (degree, n, L) of dense rows, by one matrix product."""
        inputs = scratch[:, : len(X)]
        inputs[:-1] = X.T
        sketched: Floats = (self._sketches @ inputs).reshape(-1, L, len(X))
        return sketched.swapaxes(1, 2)

    def _counted(self, X: SparseRows, L: int) -> Floats:
        """Return the sketches (degree, n, L) of sparse rows, by adding each entry, and the constant, to its bucket."""
        n = len(X)
        columns = np.append(X.columns, np.full(n, X.width))
        values, rows = np.append(X.values, np.ones(n)), np.append(X.row_of, np.arange(n))
        sketches = np.empty((len(self._sketch.buckets), n, L), self._dtype)
        for sketch, buckets, signs in zip(sketches, self._sketch.buckets, self._sketch.inputs, strict=True):
            where = rows * L + buckets[columns]
            sketch.reshape(-1)[...] = np.bincount(where, values * signs[columns], n * L)
        return sketches

    def _product(self, spectra: Array) -> Array:
        terms = self._sketch.terms
        if terms.constant is not None:
            return rest_of_product(spectra, self._constants, terms.linear is not None)
        spectrum: Array = spectra[0]
        for other in spectra[1:]:
            spectrum *= other
        return spectrum


# Lengths whose prime divisors are among these have fast transforms.
_SMOOTH = (2, 3, 5, 7, 11)


def fast_length(most: int) -> int:
    """Return the largest length up to `most` for which Fourier transforms are fast. If `most` is below 1, return it."""
    for length in range(most, 0, -1):
        rest = length
        for prime in _SMOOTH:
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return length
    return most


def bucket_spectra(buckets: Array, values: Floats, D: int) -> Iterator[Array]:
    """Yield for each bucket the Fourier transform (D//2 + 1,) of D numbers: its value there, and 0 elsewhere."""
    for bucket, value in zip(buckets, values, strict=True):
        # whole turns are removed, so that the angle is exact to the last digits
        turns = bucket * np.arange(D // 2 + 1) % D
        yield value * np.exp(-2j * np.pi / D * turns)
