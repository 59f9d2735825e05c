"""Numbers of the spectrum of a random sketch, as outputs.

Each frequency of a product of count sketches estimates a kernel without bias by itself, and different ones are not
correlated: over the buckets, E e^(−2πi(k − k')(h − h')/L) = 0. So the outputs can be numbers of a transform of any
length L that has so many. A power of two is the fastest. Frequency 0 (and L/2) is real: it has a larger
variance, and is taken only where the number of outputs asks for one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kafeat.types import Array, Floats

_LEAST = 8
"""The least length of the compiled transform."""


@dataclass(frozen=True)
class Spectrum:
    """The `count` outputs Re P_k, Im P_k, … that are taken of a transform of `length` real numbers."""

    count: int
    length: int

    @property
    def first(self) -> int:
        """The frequency that is taken first, 0 or 1."""
        return int(self.count % 2 == 0 and self.count < self.length)

    @property
    def size(self) -> int:
        """The number of frequencies that a real transform gives."""
        return self.length // 2 + 1

    @cached_property
    def frequencies(self) -> Array:
        """The frequency of each output."""
        return (np.arange(self.count) + 1 + self.first) // 2

    @cached_property
    def imaginary(self) -> Array:
        """True for each output that is an imaginary part."""
        imaginary: Array = (self.frequencies > 0) & (np.arange(self.count) % 2 == self.first)
        return imaginary

    @cached_property
    def amplitudes(self) -> Floats:
        """Factors (count,) with which dot products of outputs are means over the frequencies and their opposites."""
        k = self.frequencies
        real = (k == 0) | (2 * k == self.length)
        factors: Floats = np.sqrt(np.where(real, 1.0, 2.0) / self.count)
        return factors


def spectrum_for(count: int) -> Spectrum:
    """Return the shortest transform of a power of two that has so many numbers."""
    if count >= _LEAST and count & (count - 1) == 0:
        return Spectrum(count, count)
    # beside frequency L/2, and frequency 0 for an even count
    needed = count + 1 + (count % 2 == 0)
    return Spectrum(count, max(_LEAST, 1 << (needed - 1).bit_length()))
