"""TensorSketch of polynomial kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from pydantic import model_validator

from kafeat.contract.checks import check_indices, refuse_infinite
from kafeat.contract.kernel_inputs import KernelInputs
from kafeat.contract.step import N_COMPONENTS, Sample, Step, Transform, Width, parameter, refuse_parameter
from kafeat.contract.tile import Rows, SparseRows, is_feature_major
from kafeat.maths.dot_products import DEGREE, GAMMA, Coef0, Degree, Gamma, fit_gamma, polynomial
from kafeat.maths.exact_terms import ExactTerms, choose_terms, exact_terms, rest_of_product
from kafeat.maths.sketch_loop import SketchLoop, sketch_loop
from kafeat.types import Array, Floats, Shape, State

# Rows at a time: what a product and a transform allocate stays in the cache, and calls are long enough for two threads.
_STRIP = 128
# Of all sketches together: a strip of more would take 5 GB.
_MOST_BUCKETS = 10_000_000


class TensorSketch(Step):
    """TensorSketch: z(x)·z(y) ≈ (γ x·y + c₀)^p, unbiased.

    The p-fold outer product of u = [√γ x, √c₀] is hashed into D buckets without being formed. To this end, count
    sketches of u (a bucket and a sign per entry), p of them, are multiplied in the Fourier domain. The variance of an
    entry is at most (3^p − 1)/2 · (‖u‖‖v‖)^{2p}·2/D, so the error falls like 1/√D. One output carries c₀^p exactly,
    and d outputs the linear part where that leaves less variance; the others sketch the rest. A Fourier transform
    keeps dot products, so the way back is left out unless it is asked for: the outputs are the spectrum's numbers,
    scaled.

    Source: Pham & Pagh 2013, algorithm 1.
    """

    degree: Degree = DEGREE
    gamma: Gamma = GAMMA
    coef0: Coef0 = parameter(1.0, "c₀")
    n_components: Width = N_COMPONENTS
    domain: Literal["frequency", "time"] = parameter(
        "frequency", "outputs are the spectrum of the sketch, or the sketch itself, which costs one more FFT"
    )

    @model_validator(mode="after")
    def _held(self) -> Self:
        if self.degree * self.n_components > _MOST_BUCKETS:
            most = _MOST_BUCKETS // self.degree
            refuse_parameter(
                "n_components", f"at most {most:,} for the degree {self.degree}", self.n_components
            )
        return self

    @property
    def needs_coordinates(self) -> bool:
        return False

    def fit(self, sample: Sample, rng: np.random.Generator) -> State:
        d = sample.X.shape[1]
        gamma = fit_gamma(self.gamma, sample.X, rng)
        carried = choose_terms(sample.X, gamma, self.degree, self.coef0, self.n_components, least=1)
        state = {**carried, "gamma": np.array(gamma)}
        shape = (self.degree, d + 1)
        return {
            **state,
            "buckets": rng.integers(self.n_buckets(state, d), size=shape, dtype=np.int64),
            "signs": rng.choice(np.array([-1, 1], dtype=np.int8), size=shape),
        }

    def exact_terms(self, state: State) -> ExactTerms | None:
        """The terms that the first outputs carry; None: the sketch is of the whole kernel."""
        return exact_terms(state, self.degree, self.coef0)

    def n_buckets(self, state: State, n_features_in: int) -> int:
        """The number of outputs that are a sketch: all that no term takes, but for a few where the FFT asks for it."""
        terms = self.exact_terms(state)
        if terms is None:
            return self.n_components
        return fast_length(self.n_components - terms.count(n_features_in))

    def state_shapes(self, state: State, n_features_in: int) -> Mapping[str, Shape]:
        shape = (self.degree, n_features_in + 1)
        # sketches of the first formats and of scikit-learn carry nothing
        carried: dict[str, Shape] = {"linear": ()} if "linear" in state else {}
        return {"buckets": shape, "signs": shape, "gamma": (), **carried}

    @property
    def state_dtypes(self) -> Mapping[str, str]:
        return {"buckets": "int64", "signs": "int8", "linear": "bool"}

    def check_state(self, state: State, n_features_in: int) -> None:
        super().check_state(state, n_features_in)
        n = self.n_buckets(state, n_features_in)
        if n < 1:
            raise ValueError("state.linear: expected fewer exact outputs than there are outputs")
        check_indices("state.buckets", state["buckets"], n)

    def n_features_out(self, state: State, n_features_in: int) -> int:
        return self.n_components

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        factors = self._factors(state)
        plain = self.domain == "frequency" and self.exact_terms(state) is None
        loop = sketch_loop(factors, state["buckets"], amplitudes(self.n_components), dtype) if plain else None
        return _SketchTransform(self, state, factors, dtype) if loop is None else _SketchLoopTransform(loop)

    def _factors(self, state: State) -> Floats:
        """Return the factor of each input, and of the constant 1 behind them, in each sketch."""
        scale = np.full(state["signs"].shape[1], np.sqrt(float(state["gamma"])))
        scale[-1] = np.sqrt(self.coef0)
        factors: Floats = state["signs"] * scale
        return factors

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        return polynomial(pair, float(state["gamma"]), self.degree, self.coef0)


class _SketchLoopTransform(Transform):
    """Everything in one compiled loop, for transforms of powers of two without exact terms."""

    def __init__(self, loop: SketchLoop) -> None:
        self.n_features_in, self.n_features_out, self._loop = loop.n_features_in, loop.width, loop

    def scratch(self, rows: int) -> Floats:
        return self._loop.scratch()

    def apply(self, X: Floats, out: Floats, scratch: Floats) -> None:
        self._write(X, out, scratch)

    @property
    def takes_sparse(self) -> bool:
        return True

    def apply_sparse(self, X: SparseRows, out: Floats, scratch: Floats) -> None:
        self._write(X, out, scratch)

    def _write(self, X: Rows, out: Floats, scratch: Floats) -> None:
        if not self._loop.write(X, out, scratch):
            refuse_infinite(out)


class _SketchTransform(Transform):
    """Sparse count sketches, real FFTs in the data's precision, and their product."""

    def __init__(self, recipe: TensorSketch, state: State, factors: Floats, dtype: np.dtype[Any]) -> None:
        # scipy's FFT: NumPy's forward one took 8 to 20 times as long on a float32 tile.
        from scipy import fft
        from scipy.sparse import csr_array

        n_features = factors.shape[1] - 1
        self.n_features_in, self.n_features_out = n_features, recipe.n_components
        D, buckets, values = recipe.n_buckets(state, n_features), state["buckets"], factors.copy()
        self._terms = recipe.exact_terms(state)
        start = 0 if self._terms is None else self._terms.count(n_features)
        self._sketched = slice(start, start + D)
        if self._terms is not None:
            self._constants = constant_spectra(buckets[:, -1], values[:, -1], D).astype(
                np.result_type(dtype, np.complex64)
            )
            values[:, -1] = 0.0
        # The sketches one below the other: one product and one FFT for all of them.
        below = np.arange(recipe.degree)[:, None] * D
        self._shape = (recipe.degree, D)
        self._sketches = csr_array(
            (
                values.ravel().astype(dtype),
                ((buckets + below).ravel(), np.tile(np.arange(n_features + 1), recipe.degree)),
            ),
            shape=(recipe.degree * D, n_features + 1),
        )
        self._buckets, self._values = buckets, values
        self._back = recipe.domain == "time"
        self._amplitudes = amplitudes(D).astype(dtype)
        self._dtype = dtype
        self._fft = fft

    def scratch(self, rows: int) -> Floats:
        # The last input is the constant 1, which carries c₀.
        return np.ones((self.n_features_in + 1, min(rows, _STRIP)), dtype=self._dtype)

    def apply(self, X: Floats, out: Floats, scratch: Floats) -> None:
        # Transforms along the outputs, in their memory order: nothing is transposed after them.
        axis = 0 if is_feature_major(out) else 1
        for start in range(0, len(X), _STRIP):
            strip, part = X[start : start + _STRIP], out[start : start + _STRIP]
            self._carry(strip, part)
            inputs = scratch[:, : len(strip)]
            inputs[:-1] = strip.T
            sketched = (self._sketches @ inputs).reshape(*self._shape, -1)
            self._finish(sketched.swapaxes(1, 2) if axis else sketched, part[:, self._sketched], axis)
        refuse_infinite(out)

    @property
    def takes_sparse(self) -> bool:
        return True

    def apply_sparse(self, X: SparseRows, out: Floats, scratch: Floats) -> None:
        axis = 0 if is_feature_major(out) else 1
        for start in range(0, len(X), _STRIP):
            strip, part = X[start : start + _STRIP], out[start : start + _STRIP]
            self._carry(strip, part)
            self._finish(self._counted(strip, axis), part[:, self._sketched], axis)
        refuse_infinite(out)

    def _carry(self, X: Floats | SparseRows, out: Floats) -> None:
        if self._terms is not None:
            self._terms.write(X, out)
            out[:, self._sketched.stop :] = 0.0

    def _counted(self, X: SparseRows, axis: int) -> Floats:
        """The sketches of sparse rows: each entry is added to its bucket, and the constant to its own."""
        degree, D = self._shape
        n = len(X)
        columns = np.append(X.columns, np.full(n, X.width))
        values, rows = np.append(X.values, np.ones(n)), np.append(X.row_of, np.arange(n))
        sketches = np.empty((degree, n, D) if axis else (degree, D, n), self._dtype)
        for sketch, buckets, signs in zip(sketches, self._buckets, self._values, strict=True):
            where = rows * D + buckets[columns] if axis else buckets[columns] * n + rows
            sketch.reshape(-1)[...] = np.bincount(where, values * signs[columns], n * D)
        return sketches

    def _finish(self, sketched: Floats, part: Floats, axis: int) -> None:
        """Sketches (degree, rows, D), or (degree, D, rows) where the axis is 0, to outputs."""
        spectrum = self._product(self._fft.rfft(sketched, axis=axis + 1), axis)
        if self._back:
            sketch = self._fft.irfft(spectrum, n=self._shape[1], axis=axis, overwrite_x=True)
            part[...] = sketch if axis else sketch.T
        else:
            self._write(spectrum if axis else spectrum.T, part)

    def _product(self, spectra: Array, axis: int) -> Array:
        if self._terms is not None:
            constants = list(self._constants if axis else self._constants[:, :, None])
            return rest_of_product(spectra, constants, self._terms.linear is not None)
        spectrum: Array = spectra[0]
        for other in spectra[1:]:
            spectrum *= other
        return spectrum

    def _write(self, spectrum: Array, out: Floats) -> None:
        """Re P₀, then Re P_k and Im P_k in turn; of the last one of an even number only the real part."""
        a, D = self._amplitudes, self._shape[1]
        np.multiply(spectrum[:, 0].real, a[0], out=out[:, 0])
        if spectrum.flags.c_contiguous:
            # The numbers lie there in the right order, after Im P₀ = 0.
            np.multiply(spectrum.view(self._dtype)[:, 2 : D + 1], a[1:], out=out[:, 1:])
        else:
            np.multiply(spectrum[:, 1:].real, a[1::2], out=out[:, 1::2])
            np.multiply(spectrum[:, 1 : (D + 1) // 2].imag, a[2::2], out=out[:, 2::2])


# Divisors up to which a length has fast transforms.
_SMOOTH = (2, 3, 5, 7, 11)


def fast_length(most: int) -> int:
    """Return the largest length of at most `most` whose Fourier transforms are fast, or `most` itself below 1."""
    for length in range(most, 0, -1):
        rest = length
        for prime in _SMOOTH:
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return length
    return most


def constant_spectra(buckets: Array, values: Floats, D: int) -> Array:
    """Return the Fourier transforms (p, D//2 + 1) of sketches of one number each, in these buckets (p,)."""
    # whole turns are taken out, so that the angle is exact to the last digits
    turns = np.outer(buckets, np.arange(D // 2 + 1)) % D
    spectra: Array = values[:, None] * np.exp(-2j * np.pi / D * turns)
    return spectra


def amplitudes(D: int) -> Floats:
    """Σ_j x_j y_j = Σ_k Re(P_k conj Q_k)/D over all D frequencies, of which a real FFT gives one of each ±k."""
    factors = np.full(D, np.sqrt(2.0 / D))
    factors[0] = np.sqrt(1.0 / D)
    if D % 2 == 0:
        factors[-1] = np.sqrt(1.0 / D)
    return factors
