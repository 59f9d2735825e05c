"""The compiled loop of TensorSketch: count sketches, Fourier transforms and their product, a few rows at a time.

The outputs are real and imaginary parts of the spectrum of a random sketch. Each frequency of a product of count
sketches gives an unbiased estimate of the kernel, and different frequencies are not correlated: over random buckets h
and h', E e^(−2πi(k − k')(h − h')/L) = 0. So any frequencies of any length L can be outputs. Powers of two are fastest.
Frequencies 0 and L/2 are real and have a larger variance, so they are used only if the number of outputs requires them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kafeat.compiled.library import ARRAY, FLAG, SIZE, Loop, address, aligned, loop, vector_bytes
from kafeat.contract.sparse_product import csr_addresses
from kafeat.contract.tile import Rows, SparseRows
from kafeat.types import Array, Floats

# The smallest length of a transform.
_LEAST = 8
# Codes in the C file: sketch all terms, all but the constant, or all but the constant and the linear terms.
_WHOLE, _BUT_CONSTANT, _BUT_LINEAR = 0, 1, 2


@dataclass(frozen=True)
class Spectrum:
    """The outputs of a sketch: `count` numbers Re P_k or Im P_k of the Fourier transform P of `length` real numbers."""

    count: int
    length: int

    @property
    def first(self) -> int:
        """The first frequency that is used, 0 or 1."""
        return int(self.count % 2 == 0 and self.count < self.length)

    @property
    def size(self) -> int:
        """The number of frequencies of a transform of `length` real numbers."""
        return self.length // 2 + 1

    @cached_property
    def frequencies(self) -> Array:
        """The frequency of each output."""
        return (np.arange(self.count) + 1 + self.first) // 2

    @cached_property
    def imaginary(self) -> Array:
        """True for each output that is an imaginary part."""
        return (self.frequencies > 0) & (np.arange(self.count) % 2 == self.first)

    @cached_property
    def amplitudes(self) -> Floats:
        """Factors (count,) that make dot products means over frequencies k: 0 and L/2 count once, all others twice."""
        k = self.frequencies
        real = (k == 0) | (2 * k == self.length)
        return np.sqrt(np.where(real, 1.0, 2.0) / self.count)


def spectrum_for(count: int) -> Spectrum:
    """Return a spectrum with `count` outputs. Its length is the smallest power of two with enough usable numbers."""
    if count >= _LEAST and count & (count - 1) == 0:
        return Spectrum(count, count)
    # the transform must also have frequency L/2 and, for an even count, frequency 0, which are not used
    needed = count + 1 + (count % 2 == 0)
    return Spectrum(count, max(_LEAST, 1 << (needed - 1).bit_length()))


class SketchLoop:
    """The compiled TensorSketch of [x, 1]. In sketch q, input i times factors[q, i] is added to buckets[q, i]."""

    def __init__(
        self, factors: Floats, buckets: Array, spectrum: Spectrum, dtype: np.dtype[Any], run: Loop
    ) -> None:
        self.degree, self.n_features_in = len(factors), factors.shape[1] - 1
        self.width, self.dtype, self._run, self._spectrum = spectrum.count, dtype, run, spectrum
        n = self._n = spectrum.length // 2
        amplitudes = np.ones(spectrum.size)
        amplitudes[spectrum.frequencies] = spectrum.amplitudes
        self._amplitudes, self._rest = amplitudes, _WHOLE
        self._numbers = (
            buckets.astype(np.int32, order="C"),
            # the C loop expects halves of the factors
            np.ascontiguousarray(0.5 * factors, dtype=dtype),
        )
        self._tables = (
            _turns(n, 2.0 * np.pi / n, dtype),
            _turns(n + 1, np.pi / n, dtype),
            places(n).astype(np.int32),
            amplitudes.astype(dtype),
        )
        # read only if terms are left out
        self._constants = self._below = np.zeros(0, dtype=dtype)

    def leave_out(self, constants: Iterable[Array], linear: bool) -> None:
        """Leave out the terms that other outputs carry: the constant one and, with `linear`, the linear ones.

        `constants` are the spectra (L//2 + 1,) of the constant 1 in each sketch. The `factors` of the constant must be
        0.
        """
        self._constants = np.empty((self.degree, self._n + 1, 2), self.dtype)
        self._below, below = np.empty_like(self._constants), self._amplitudes.astype(complex)
        for q, c in enumerate(constants):
            self._constants[q], self._below[q] = _interleaved(c, self.dtype), _interleaved(below, self.dtype)
            below *= c
        self._rest = _BUT_LINEAR if linear else _BUT_CONSTANT

    def scratch(self) -> Floats:
        """Return a buffer for one worker."""
        lanes = vector_bytes() // self.dtype.itemsize
        return aligned(lanes * (self.n_features_in + 6 * self._n + 4), self.dtype)

    def write(self, X: Rows, out: Floats, scratch: Floats) -> bool:
        """Write the outputs for rows X (n, d) into `out`. Return False if one of them is not finite."""
        if isinstance(X, SparseRows):
            addresses, kept = csr_addresses(X)
            rows: tuple[int | None, ...] = addresses
        else:
            kept = np.ascontiguousarray(X)
            rows = address(kept), None, None
        buckets, factors = (address(array) for array in self._numbers)
        tables = [address(array) for array in (*self._tables, self._constants, self._below)]
        by_row, by_output = (step // out.itemsize for step in out.strides)
        lost = self._run(
            *rows, *X.shape, buckets, factors, self.degree, self._n, *tables, self._rest, self._spectrum.first,
            self.width, address(scratch), address(out), by_row, by_output,
        )  # fmt: skip
        del kept
        return not lost


def sketch_loop(
    factors: Floats, buckets: Array, spectrum: Spectrum, dtype: np.dtype[Any]
) -> SketchLoop | None:
    """Return the compiled loop, or None if there is none for this length, which must be a power of two."""
    arguments = [ARRAY, ARRAY, ARRAY, SIZE, SIZE, ARRAY, ARRAY, SIZE, SIZE, *[ARRAY] * 6]
    arguments += [FLAG, SIZE, SIZE, ARRAY, ARRAY, SIZE, SIZE]
    run = loop(f"tensor_sketch_{vector_bytes()}", dtype, *arguments, result=FLAG)
    length = spectrum.length
    if run is None or length < _LEAST or length & (length - 1):
        return None
    return SketchLoop(factors, buckets, spectrum, dtype, run)


def places(n: int) -> Array:
    """Return the position of each frequency in the output of the C loop's transform (radix 4, then 2) of n numbers."""
    if n == 1:
        return np.zeros(1, dtype=np.int64)
    parts = 4 if n >= 4 else 2
    inner, place = places(n // parts), np.empty(n, dtype=np.int64)
    for part in range(parts):
        place[part::parts] = part * (n // parts) + inner
    return place


def _turns(count: int, angle: float, dtype: np.dtype[Any]) -> Floats:
    """Return e^(−i·angle·t) for t < count, as pairs of a real and an imaginary part."""
    t = angle * np.arange(count)
    return _interleaved(np.cos(t) - 1j * np.sin(t), dtype)


def _interleaved(numbers: Array, dtype: np.dtype[Any]) -> Floats:
    """Return complex numbers as pairs of a real and an imaginary part."""
    return np.stack([numbers.real, numbers.imag], axis=-1).astype(dtype)
