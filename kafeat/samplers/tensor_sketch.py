"""TensorSketch of polynomial kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kafeat.domain import check_indices
from kafeat.dot_products import DEGREE, GAMMA, Coef0, Degree, Gamma, fit_gamma, polynomial
from kafeat.pair import Pair
from kafeat.step import Sample, Step, Transform, Width, parameter
from kafeat.types import Array, Floats, Shape, State

# Rows at a time: what a product and a transform allocate then comes from memory at hand. At 256 rows it was mapped
# and given back each time, which took five times as long as the computing.
_STRIP = 64


class TensorSketch(Step):
    """TensorSketch: z(x)·z(y) ≈ (γ x·y + c₀)^p, unbiased.

    The p-fold outer product of u = [√γ x, √c₀] is hashed into D buckets without being formed: p independent count
    sketches of u (a bucket and a sign per entry) are multiplied in the Fourier domain. The variance of an entry is at
    most (3^p − 1)/2 · (‖u‖‖v‖)^{2p}·2/D, so the error falls like 1/√D.

    Source: Pham & Pagh 2013, algorithm 1.
    """

    degree: Degree = DEGREE
    gamma: Gamma = GAMMA
    coef0: Coef0 = parameter(1.0, "c₀")
    n_components: Width = parameter(1024, "D, the number of outputs")

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

    def check_state(self, state: State, n_features_in: int) -> None:
        check_indices("state.buckets", state["buckets"], self.n_components)

    def bind(self, state: State, n_features_in: int, dtype: np.dtype[Any]) -> Transform:
        return _SketchTransform(self, state, n_features_in, dtype)

    def exact(self, state: State, pair: Pair) -> Pair:
        return polynomial(pair, float(state["gamma"]), self.degree, self.coef0)


class _SketchTransform(Transform):
    """Sparse count sketches, real FFTs in the data's precision, their product, and one FFT back."""

    def __init__(self, recipe: TensorSketch, state: State, n_features: int, dtype: np.dtype[Any]) -> None:
        # scipy's FFT: NumPy's forward one took 8 to 20 times as long on a float32 tile.
        from scipy import fft
        from scipy.sparse import csr_array

        self.n_features_in, self.n_features_out = n_features, recipe.n_components
        scale = np.full(n_features + 1, np.sqrt(float(state["gamma"])))
        scale[-1] = np.sqrt(recipe.coef0)
        columns = np.arange(n_features + 1)
        self._sketches = [
            csr_array(
                ((signs * scale).astype(dtype), (buckets, columns)),
                shape=(recipe.n_components, n_features + 1),
            )
            for buckets, signs in zip(state["buckets"], state["signs"], strict=True)
        ]
        self._dtype = dtype
        self._fft = fft

    def scratch(self, rows: int) -> tuple[Array, ...]:
        # The last input is the constant 1, which carries c₀.
        return (np.ones((self.n_features_in + 1, min(rows, _STRIP)), dtype=self._dtype),)

    def apply(self, X: Floats, out: Floats, scratch: tuple[Array, ...]) -> None:
        # Transforms along the outputs, in their memory order: the way back then needs no transposition.
        feature_major = out.strides[0] < out.strides[1]
        for start in range(0, len(X), _STRIP):
            strip = X[start : start + _STRIP]
            inputs = scratch[0][:, : len(strip)]
            inputs[:-1] = strip.T
            features = self._features(inputs, axis=0 if feature_major else 1)
            out[start : start + _STRIP] = features.T if feature_major else features

    def _features(self, inputs: Floats, axis: int) -> Floats:
        first, *others = self._sketches
        spectrum = self._spectrum(first @ inputs, axis)
        for sketch in others:
            spectrum *= self._spectrum(sketch @ inputs, axis)
        result: Floats = self._fft.irfft(spectrum, n=self.n_features_out, axis=axis, overwrite_x=True)
        return result

    def _spectrum(self, sketched: Floats, axis: int) -> Array:
        spectrum: Array = self._fft.rfft(sketched if axis == 0 else sketched.T, axis=axis)
        return spectrum
