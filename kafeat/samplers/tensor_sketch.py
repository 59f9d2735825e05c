"""TensorSketch of polynomial kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from pydantic import model_validator

from kafeat.contract.checks import check_indices, refuse_infinite
from kafeat.contract.kernel_inputs import KernelInputs
from kafeat.contract.memory_order import is_feature_major
from kafeat.contract.sparse_rows import SparseRows
from kafeat.contract.step import Sample, Step, Transform, Width, parameter, refuse_parameter
from kafeat.maths.dot_products import DEGREE, GAMMA, Coef0, Degree, Gamma, fit_gamma, polynomial
from kafeat.types import Array, Floats, Shape, State

# Rows at a time: what a product and a transform allocate stays in the cache, and calls are long enough for two threads.
_STRIP = 128
# Of all sketches together: a strip of more would take 5 GB.
_MOST_BUCKETS = 10_000_000


class TensorSketch(Step):
    """TensorSketch: z(x)·z(y) ≈ (γ x·y + c₀)^p, unbiased.

    The p-fold outer product of u = [√γ x, √c₀] is hashed into D buckets without being formed: p independent count
    sketches of u (a bucket and a sign per entry) are multiplied in the Fourier domain. The variance of an entry is at
    most (3^p − 1)/2 · (‖u‖‖v‖)^{2p}·2/D, so the error falls like 1/√D. A Fourier transform keeps dot products, so
    the way back is left out unless it is asked for: the outputs are the spectrum's numbers, scaled.

    Source: Pham & Pagh 2013, algorithm 1.
    """

    degree: Degree = DEGREE
    gamma: Gamma = GAMMA
    coef0: Coef0 = parameter(1.0, "c₀")
    n_components: Width = parameter(1024, "D, the number of outputs")
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
        gamma = fit_gamma(self.gamma, sample.X, rng)
        shape = (self.degree, sample.X.shape[1] + 1)
        return {
            "buckets": rng.integers(self.n_components, size=shape, dtype=np.int64),
            "signs": rng.choice(np.array([-1, 1], dtype=np.int8), size=shape),
            "gamma": np.array(gamma),
        }

    def state_shapes(self, state: State, n_features_in: int) -> Mapping[str, Shape]:
        shape = (self.degree, n_features_in + 1)
        return {"buckets": shape, "signs": shape, "gamma": ()}

    @property
    def state_dtypes(self) -> Mapping[str, str]:
        return {"buckets": "int64", "signs": "int8"}

    def check_state(self, state: State, n_features_in: int) -> None:
        super().check_state(state, n_features_in)
        check_indices("state.buckets", state["buckets"], self.n_components)

    def n_features_out(self, state: State, n_features_in: int) -> int:
        return self.n_components

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return _SketchTransform(self, state, n_features_in, dtype)

    def exact(self, state: State, pair: KernelInputs) -> KernelInputs:
        return polynomial(pair, float(state["gamma"]), self.degree, self.coef0)


class _SketchTransform(Transform):
    """Sparse count sketches, real FFTs in the data's precision, and their product."""

    def __init__(self, recipe: TensorSketch, state: State, n_features: int, dtype: np.dtype[Any]) -> None:
        # scipy's FFT: NumPy's forward one took 8 to 20 times as long on a float32 tile.
        from scipy import fft
        from scipy.sparse import csr_array

        self.n_features_in, self.n_features_out = n_features, recipe.n_components
        scale = np.full(n_features + 1, np.sqrt(float(state["gamma"])))
        scale[-1] = np.sqrt(recipe.coef0)
        values, buckets = state["signs"] * scale, state["buckets"]
        # The sketches one below the other: one product and one FFT for all of them.
        below = np.arange(recipe.degree)[:, None] * recipe.n_components
        self._shape = (recipe.degree, recipe.n_components)
        self._sketches = csr_array(
            (
                values.ravel().astype(dtype),
                ((buckets + below).ravel(), np.tile(np.arange(n_features + 1), recipe.degree)),
            ),
            shape=(recipe.degree * recipe.n_components, n_features + 1),
        )
        self._buckets, self._values = buckets, values
        self._back = recipe.domain == "time"
        self._amplitudes = amplitudes(recipe.n_components).astype(dtype)
        self._dtype = dtype
        self._fft = fft

    def scratch(self, rows: int) -> tuple[Array, ...]:
        # The last input is the constant 1, which carries c₀.
        return (np.ones((self.n_features_in + 1, min(rows, _STRIP)), dtype=self._dtype),)

    def apply(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        # Transforms along the outputs, in their memory order: nothing is transposed after them.
        axis = 0 if is_feature_major(out) else 1
        for start in range(0, len(X), _STRIP):
            strip = X[start : start + _STRIP]
            inputs = scratch[0][:, : len(strip)]
            inputs[:-1] = strip.T
            sketched = (self._sketches @ inputs).reshape(*self._shape, -1)
            self._finish(sketched.swapaxes(1, 2) if axis else sketched, out[start : start + _STRIP], axis)
        refuse_infinite(out)

    @property
    def takes_sparse(self) -> bool:
        return True

    def apply_sparse(self, X: SparseRows, out: Floats, scratch: tuple[Array, ...]) -> None:
        axis = 0 if is_feature_major(out) else 1
        for start in range(0, len(X), _STRIP):
            strip = X[start : start + _STRIP]
            self._finish(self._counted(strip, axis), out[start : start + _STRIP], axis)
        refuse_infinite(out)

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
        spectrum = self._product(self._fft.rfft(sketched, axis=axis + 1))
        if self._back:
            sketch = self._fft.irfft(spectrum, n=self.n_features_out, axis=axis, overwrite_x=True)
            part[...] = sketch if axis else sketch.T
        else:
            self._write(spectrum if axis else spectrum.T, part)

    def _product(self, spectra: Array) -> Array:
        spectrum: Array = spectra[0]
        for other in spectra[1:]:
            spectrum *= other
        return spectrum

    def _write(self, spectrum: Array, out: Floats) -> None:
        """Re P₀, then Re P_k and Im P_k in turn; of the last one of an even number only the real part."""
        a, D = self._amplitudes, self.n_features_out
        np.multiply(spectrum[:, 0].real, a[0], out=out[:, 0])
        if spectrum.flags.c_contiguous:
            # The numbers lie there in the right order, after Im P₀ = 0.
            np.multiply(spectrum.view(self._dtype)[:, 2 : D + 1], a[1:], out=out[:, 1:])
        else:
            np.multiply(spectrum[:, 1:].real, a[1::2], out=out[:, 1::2])
            np.multiply(spectrum[:, 1 : (D + 1) // 2].imag, a[2::2], out=out[:, 2::2])


def amplitudes(D: int) -> Floats:
    """Σ_j x_j y_j = Σ_k Re(P_k conj Q_k)/D over all D frequencies, of which a real FFT gives one of each ±k."""
    found = np.full(D, np.sqrt(2.0 / D))
    found[0] = np.sqrt(1.0 / D)
    if D % 2 == 0:
        found[-1] = np.sqrt(1.0 / D)
    return found
